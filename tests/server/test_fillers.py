"""Rounds that are filled up to a least number of values, which amplify more."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from fedhh.accounting.bounds.selection import reachable_blanket
from fedhh.accounting.guarantees import NotApplicable
from fedhh.accounting.terms import PrivacyTerms
from fedhh.clients.worker import ClientWorker
from fedhh.server.adaptive.adaptive_triehh import AdaptiveTrieHH
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.simulation.engine import rounds
from fedhh.simulation.executor import Broadcast, InProcessExecutor
from fedhh.testing import LETTERS, small_population
from fedhh.validation import InputError

NUM_CLIENTS = 4_000
FEWEST = 150
SMALL = {
    "alphabet": LETTERS,
    "depth": 6,
    "eta_max": 25,
    "max_items": 1,
    "local_epsilon": 6.0,
    "false_discovery_rate": 0.1,
    "participation": "every-round",
    "fewest_candidates": FEWEST,
}
TRIE = LdpTrieHH(passes=1, **SMALL)
FILLED = [TRIE, replace(TRIE, participation="one-round", max_items=3), AdaptiveTrieHH(**SMALL)]


@pytest.fixture(scope="module")
def clients():
    return small_population(NUM_CLIENTS)


def run(protocol, population):
    settled = protocol.settle(num_clients=population.num_clients, seed=0)
    executor = InProcessExecutor(ClientWorker(population, seed=0))
    return settled, list(rounds(settled, executor))


@pytest.mark.parametrize("protocol", FILLED, ids=["every round", "one round", "adaptive"])
def test_each_round_has_the_fewest_values_and_no_client_says_a_filler(clients, protocol):
    settled, done = run(protocol, clients)
    planned = {each.layer: each for each in settled.plan.layers}
    filled = 0
    for each in done:
        question = each.question
        names, size = question.names, question.domain_size
        assert size == max(names.num_candidates, FEWEST) + 1
        layer = planned[question.layer]
        assert FEWEST + 1 <= layer.smallest_domain <= size <= layer.largest_domain
        told = question.download_bits - names.download_bits(question.alphabet)
        has_fillers = names.num_candidates < FEWEST
        assert told == pytest.approx(math.log2(size) if has_fillers else 0, abs=1e-9)
        filled += has_fillers
        executor = InProcessExecutor(ClientWorker(clients, seed=9))
        answer = executor.answer(Broadcast.to_all(replace(question, counts_only=True)))
        counts = answer.aggregate.tally
        assert len(counts) == size
        assert counts.sum() == question.cohort.size * question.max_items
        assert not counts[names.nothing + 1 :].any()
        assert counts[: names.nothing].sum() > 0
    assert filled > 1
    assert done[-1].question.layer == settled.plan.layers[-1].layer
    words = settled.discoveries(done[-1].state).words
    assert set(words) & set(clients.lexicon.words)
    assert max(map(len, words)) <= 6


def test_votes_for_fillers_are_those_of_chance(clients):
    _, done = run(TRIE, clients)
    question = done[-1].question
    fillers = slice(question.names.nothing + 1, None)
    assert question.names.num_candidates < FEWEST - 20
    executor = InProcessExecutor(ClientWorker(clients, seed=5))
    answer = executor.answer(Broadcast.to_all(question))
    votes, oracle = answer.aggregate.tally[fillers], question.channel.pure
    mean = answer.aggregate.num_reports * oracle.q
    assert abs(votes.mean() - mean) < 6.2 * math.sqrt(mean / len(votes))


def test_claims_are_those_of_the_domains_that_the_fillers_leave():
    def user(protocol):
        plan = protocol.settle(num_clients=300_000, seed=0).plan
        return plan, plan.central_epsilon("user", PrivacyTerms(num_clients=300_000, delta=1e-10))

    plan, filled = user(replace(TRIE, fewest_candidates=2_000))
    _, plain = user(replace(TRIE, fewest_candidates=1))
    assert filled < 0.9 * plain
    assert plan.domains == (2_001, 2_001)
    one = replace(TRIE, participation="epochs", cohorts="secret", fewest_candidates=2_000)
    blanket = reachable_blanket(
        local_epsilon=6.0, num_reports=300_000, smallest_domain=2_001, largest_domain=2_001
    )
    plan = one.settle(num_clients=300_000, seed=0).plan
    assert plan.fewest_answers > 299_990
    found = plan.central_epsilon("user", PrivacyTerms(num_clients=300_000, delta=1e-10))
    assert found == pytest.approx(blanket.epsilon(delta=1e-10), rel=1e-3)


def test_a_round_with_fewer_values_than_planned_is_refused(clients, monkeypatch):
    votes_question = LdpTrieHH.votes_question

    def without_fillers(self, names, oracle, *, fewest=None):
        return votes_question(self, names, oracle, fewest=1)

    monkeypatch.setattr(LdpTrieHH, "votes_question", without_fillers)
    with pytest.raises(InputError, match="Expected a domain of 151 to 1"):
        run(TRIE, clients)


def test_votes_of_a_layer_with_fillers_say_nothing_of_k(clients):
    protocol = replace(TRIE, false_discovery_rate=0.0, local_epsilon=2.0)
    settled, done = run(protocol, clients)
    terms = PrivacyTerms(num_clients=NUM_CLIENTS, delta=1e-6)
    report = settled.plan.report(terms, done[-1].state.history)
    sizes = [each.num_candidates + 1 < each.domain_size for each in done[-1].state.history]
    assert any(sizes)
    for claim in report.anonymity[:-1]:
        filled = sizes[claim.layer - done[0].question.layer]
        assert filled == (isinstance(claim.k, NotApplicable) and "fillers" in str(claim.k))


def test_where_the_number_of_values_amplifies_nothing_fillers_are_refused():
    with pytest.raises(InputError) as refused:
        replace(TRIE, oracle="grr")
    assert str(refused.value) == (
        "Expected fewest_candidates=1 where the number of values amplifies nothing, got "
        "fewest_candidates=150 with oracle='grr'; set fewest_candidates=1, or oracle='ss'."
    )
    with pytest.raises(InputError, match="fewest_candidates >= 1, got fewest_candidates=0"):
        replace(TRIE, fewest_candidates=0)
