"""Whom a worker asks, of more clients than an order of them all could be held for."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from fedhh.clients.population import Population
from fedhh.clients.worker import ClientWorker
from fedhh.questions.clients import ClientBlock
from fedhh.questions.cohort import Cohort
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.simulation import roster
from fedhh.simulation.roster import LARGEST_SHUFFLED, Arrangement
from fedhh.testing import LETTERS
from fedhh.words.lexicon import Lexicon
from tests.asked_clients import answered
from tests.thinned import thinned


class Listening(Population):
    """Clients without a word, who remember that they were asked."""

    name = "listening"
    unit = "client"
    lexicon = Lexicon(words=["a"])
    num_clients = 0

    def __init__(self, num_clients: int, *, arrangement: Arrangement = "any") -> None:
        self.num_clients = num_clients
        self.arrangement = arrangement
        self.asked: list[np.ndarray] = []

    def block(self, clients: np.ndarray) -> ClientBlock:
        self.asked.append(clients)
        nothing = np.zeros(0, dtype=np.int64)
        offsets = np.zeros(len(clients) + 1, dtype=np.int64)
        return ClientBlock(clients=clients, offsets=offsets, word_ids=nothing, counts=nothing)


def asked(
    population: Listening, cohort: Cohort, *, seed: int = 0, blocks: range | None = None
) -> np.ndarray:
    protocol = LdpTrieHH(alphabet=LETTERS, clients_per_layer=1, depth=1, oracle="oue")
    question = replace(protocol.next_question(protocol.initialize()), cohort=cohort)
    population.asked.clear()
    answered(ClientWorker(population, seed=seed), question, blocks or range(cohort.num_blocks))
    return np.concatenate(population.asked)


COHORT = Cohort(start=5, size=20_000, redraw=0)


@pytest.mark.slow("::test_on_both_sides_of_the_largest_shuffle_clients_are_spread_and_asked_once")
def test_a_billion_clients_are_asked_in_a_random_order_that_takes_no_memory():
    population = Listening(10**9, arrangement="independent")
    asked(population, replace(COHORT, size=1))
    tracemalloc.start()
    first = asked(population, COHORT)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20e6
    assert len(np.unique(first)) == 20_000
    assert 0 <= first.min() < 10**6 < 10**9 - 10**6 < first.max() < 10**9
    # The same whoever answers, and whatever else it answers for.
    assert np.array_equal(asked(population, COHORT, blocks=range(3, 4)), first[3 * 313 : 4 * 313])
    for other in (asked(population, replace(COHORT, redraw=1)), asked(population, COHORT, seed=1)):
        assert len(np.intersect1d(first, other)) < 10
    # Cohorts of one order are disjoint, in a population whose own order is no random one, too.
    told = Listening(10**9)
    groups = [asked(told, Cohort(start=start, size=20_000)) for start in (0, 20_000)]
    assert len(np.unique(np.concatenate(groups))) == 40_000


@pytest.mark.parametrize("beyond", [0, 1])
@pytest.mark.parametrize("largest", thinned([40_000, LARGEST_SHUFFLED]))
def test_on_both_sides_of_the_largest_shuffle_clients_are_spread_and_asked_once(
    monkeypatch, largest, beyond
):
    monkeypatch.setattr(roster, "LARGEST_SHUFFLED", largest)
    num_clients = largest + beyond
    clients = asked(Listening(num_clients), COHORT)
    assert len(np.unique(clients)) == 20_000
    assert clients.max() < num_clients
    cells = np.bincount(clients * 16 // num_clients, minlength=16)
    assert (abs(cells - 1_250) < 8 * 1_250**0.5).all()
