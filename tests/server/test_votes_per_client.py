"""Tries that count clients and not reports: estimates, claims, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from fedhh.accounting.amplification import LINKED
from fedhh.accounting.bounds.clones import Clones
from fedhh.accounting.bounds.composition import disjoint_epsilon
from fedhh.accounting.bounds.selection import subset_selection_blanket
from fedhh.accounting.terms import PrivacyTerms
from fedhh.oracles import OracleSpec, make_pure_oracle
from fedhh.oracles.client_votes import ClientVotes
from fedhh.server.adaptive.adaptive_triehh import AdaptiveTrieHH
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.simulation.fidelity import EXACT_TALLY, Fidelity
from fedhh.testing import LETTERS
from fedhh.validation import InputError
from fedhh.words.known_words import named_list
from tests.asked_clients import Recording
from tests.questions_of_each_kind import sending
from tests.zipf_words import final_state

SMALL = LdpTrieHH(
    alphabet=LETTERS,
    clients_per_layer=400,
    depth=6,
    passes=1,
    eta_max=25,
    max_items=6,
    local_epsilon=6.0,
    votes_per_client="one",
)


@pytest.mark.parametrize("oracle", ["ss", "grr"])
def test_estimates_are_within_five_standard_deviations_of_the_cohorts_truth(population, oracle):
    protocol = replace(SMALL, oracle=oracle)
    clients = Recording(population)
    state = final_state(protocol, clients)
    discovered = protocol.discoveries(state)
    first_layer = state.history[0].layer
    for word, layer, estimate in zip(
        discovered.words, discovered.layer.tolist(), discovered.estimate, strict=True
    ):
        summary = next(s for s in state.history if s.layer == layer)
        assert summary.num_reports == 400 * 6
        start = (layer - first_layer) * 400
        rows = population.block(clients.asked[start : start + 400])
        word_id = int(population.lexicon.ids([word])[0])
        held = int((rows.word_ids == word_id).sum()) if word_id >= 0 else 0
        assert abs(estimate - held) < 5 * summary.noise_std + 5
    assert len(discovered) > 10


def test_a_trie_of_clients_votes_ends_in_a_validation_round_of_them(population):
    protocol = AdaptiveTrieHH(
        alphabet=LETTERS,
        clients_per_layer=400,
        depth=6,
        eta_max=25,
        max_items=6,
        local_epsilon=8.0,
        known_words=named_list("none"),
        votes_per_client="one",
    ).settle(num_clients=population.num_clients, seed=0)
    state = final_state(protocol, Recording(population))
    words = protocol.discoveries(state).words
    assert len(words) > 10
    assert set(words) <= set(population.lexicon.words)
    last = state.history[-1]
    assert last.kept_by == "evidence"
    oracle = make_pure_oracle(protocol.validation_oracle, last.domain_size)
    votes = ClientVotes(oracle=oracle, max_items=6)
    variance = float(votes.variance(0, last.num_clients))
    assert last.noise_std == pytest.approx(math.sqrt(variance))


def test_amplification_by_shuffling_does_not_hold_for_votes_of_clients():
    # All other clients contribute x, and one contributes x or a dummy. Votes for x are a sum of
    # independent Bernoullis. With B = 10 reports of 3 values, two reports in three are for a value
    # whose vote is cast already: they hide nothing, and bounds for N B shuffled reports are wrong.
    epsilon, size, items, clients, delta = 3.0, 3, 10, 200, 1e-6
    oracle = make_pure_oracle(OracleSpec(name="ss", epsilon=epsilon), size)
    votes = ClientVotes(oracle=oracle, max_items=items)
    others = stats.binom.pmf(np.arange(clients), clients - 1, votes.p)
    with_x, without = (np.convolve(others, [1 - chance, chance]) for chance in (votes.p, votes.q))
    reports = clients * items
    bounds = [
        Clones(local_epsilon=epsilon, num_reports=reports),
        subset_selection_blanket(
            local_epsilon=epsilon, num_reports=reports, domain_size=size, subset_size=oracle.d
        ),
    ]
    for bound in bounds:
        stated = disjoint_epsilon([bound], delta=delta)
        assert isinstance(stated, float)
        gap = np.maximum(with_x - math.exp(stated) * without, 0).sum()
        assert gap > 1.09 * delta


def test_such_a_run_claims_its_local_epsilon_against_all(population):
    settled = SMALL.settle(num_clients=population.num_clients, seed=0)
    report = settled.plan.report(
        PrivacyTerms(num_clients=population.num_clients, delta=1e-6, alpha=0.95)
    )
    central = [each for each in report.guarantees if each.trust == "central"]
    assert {each.unit: each.epsilon for each in central} == {"item": 6.0, "user": 36.0}
    assert all(LINKED in each.assumptions for each in central)
    amplified = replace(settled, votes_per_client="all").plan.report(
        PrivacyTerms(num_clients=population.num_clients, delta=1e-6, alpha=0.95)
    )
    assert all(LINKED not in each.assumptions for each in amplified.guarantees)


def test_a_plan_of_votes_of_reports_refuses_to_count_clients(population):
    settled = SMALL.settle(num_clients=population.num_clients, seed=0)
    question = settled.next_question(settled.initialize())
    settled.plan.check_question(question)
    for plan, asked in (
        (replace(settled.plan, votes_per_client="all"), question),
        (settled.plan, sending(question, votes_per_client="all")),
    ):
        with pytest.raises(InputError, match="Expected votes_per_client="):
            plan.check_question(asked)


def test_what_has_no_known_distribution_is_refused(population):
    with pytest.raises(InputError, match="pad=true with votes_per_client='one'"):
        replace(SMALL, pad=False)
    with pytest.raises(InputError, match="use ss or grr"):
        replace(SMALL, oracle="oue")
    settled = SMALL.settle(num_clients=population.num_clients, seed=0)
    with pytest.raises(InputError, match="exact-tally"):
        Fidelity(name=EXACT_TALLY).check(settled)
