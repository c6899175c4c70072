"""LDP TrieHH from layer to layer: which are skipped, who is asked, what is voted on once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedhh.clients.worker import ClientWorker
from fedhh.experiments.run.truth import Truth
from fedhh.questions.question import Aggregate, Question
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.simulation.engine import rounds
from fedhh.simulation.executor import InProcessExecutor
from fedhh.testing import LETTERS
from fedhh.validation import InputError
from tests.asked_clients import Recording

# Six letters and the end symbol: layer 1 has 6 * 7 = 42 candidates, layer 2 has 36 * 7 and the six
# words of one letter.
SMALL = LdpTrieHH(
    alphabet=LETTERS, clients_per_layer=200, depth=6, passes=1, eta_max=25, max_items=4
)


def first_question(eta_max: int) -> Question:
    protocol = replace(SMALL, eta_max=eta_max)
    question = protocol.next_question(protocol.initialize())
    assert question is not None
    return question


@pytest.mark.parametrize(
    ("eta_max", "layer", "num_candidates"),
    [(41, 1, 42), (42, 2, 258), (257, 2, 258), (258, 3, 216 * 7 + 42)],
)
def test_a_layer_is_free_if_all_of_its_candidates_can_be_kept(eta_max, layer, num_candidates):
    question = first_question(eta_max)
    assert (question.layer, question.num_candidates) == (layer, num_candidates)


def test_short_words_are_voted_on_once():
    protocol = replace(SMALL, eta_max=42)
    state = protocol.initialize()
    question = protocol.next_question(state)
    assert question is not None
    assert len(question.names.finished) == 6
    votes = Aggregate(
        tally=np.arange(question.domain_size)[::-1].astype(np.int64),
        num_reports=800,
        num_clients=200,
    )
    following = protocol.next_question(protocol.finish_round(state, question, votes))
    assert following is not None
    assert len(following.names.finished) == 0
    assert following.num_candidates == following.names.num_extensions


def test_every_layer_draws_reused_clients_afresh(population):
    protocol = replace(SMALL, participation="every-round", clients_per_layer=3_000)
    clients = Recording(population)
    num_rounds = len(list(rounds(protocol, InProcessExecutor(ClientWorker(clients, seed=0)))))
    cohorts = np.sort(clients.asked.reshape(num_rounds, 3_000), axis=1)
    assert len(np.unique(cohorts, axis=0)) == num_rounds == 6
    assert (np.diff(cohorts, axis=1) > 0).all()


def test_found_words_are_not_missed(population):
    # Without noise and with room for all, every word is found or still in the trie.
    protocol = replace(
        SMALL, oracle="none", eta_max=10**6, skip_free_layers=False, max_items=100,
        clients_per_layer=population.num_clients, participation="every-round",
    )  # fmt: skip
    truth = Truth(population, protocol.symbols, protocol.longest_word)
    followed = list(rounds(protocol, InProcessExecutor(ClientWorker(population, seed=0))))
    seen = []
    for finished in followed:
        discoveries = protocol.discoveries(finished.state)
        seen.append(truth.observe(finished.question, finished.state.kept, discoveries))
    assert [row.missed_mass for row in seen] == [0.0] * 6
    coverage = [row.coverage for row in seen]
    assert 0 < coverage[0] < coverage[-1] == pytest.approx(1.0)


@pytest.mark.parametrize("change", [{"depth": 1_001}, {"passes": 101}, {"eta_max": 10**8}])
def test_what_no_run_could_plan_is_refused(change):
    # Every layer is planned before the run: without bounds, a large number takes all memory.
    name, value = next(iter(change.items()))
    with pytest.raises(InputError, match=f"got {name}={value}"):
        replace(SMALL, **change)
