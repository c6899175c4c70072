"""Whole discoveries: crafted reports bring a word in that nobody holds, random reports do not."""

from __future__ import annotations

import numpy as np
import pytest

from fedhh.clients.worker import ClientWorker
from fedhh.questions.answer import Answer
from fedhh.questions.question import Aggregate
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.pem import Pem
from fedhh.server.rappor_unknown import RapporUnknown
from fedhh.server.sfp import Sfp
from fedhh.simulation.engine import rounds
from fedhh.simulation.executor import InProcessExecutor
from fedhh.testing import LETTERS
from tests.questions_of_each_kind import Fakes
from tests.thinned import thinned

TARGET = "feedba"
NUM_FAKES = 250

PROTOCOLS = {
    "ldp-triehh": LdpTrieHH(
        alphabet=LETTERS, clients_per_layer=700, depth=6, local_epsilon=6.0, max_items=4
    ),
    "pem": Pem(alphabet=LETTERS, clients_per_layer=1_200, length=6, step=1, keep=30, max_items=4),
    "sfp": Sfp(
        alphabet=LETTERS,
        clients_per_layer=6_000,
        length=6,
        max_items=4,
        num_puzzles=16,
        word_hashes=64,
        word_cells=256,
        fragment_hashes=64,
        fragment_cells=256,
    ),
    "rappor-unknown": RapporUnknown(
        alphabet=LETTERS,
        clients_per_layer=6_000,
        max_items=2,
        local_epsilon=15.0,
        ngram_bits=4,
        ngram_cohorts=16,
        bloom_cohorts=16,
    ),
}


class WithFakes(InProcessExecutor):
    """Adds what fake clients send to every round's answer."""

    def __init__(self, worker, way: str) -> None:
        super().__init__(worker)
        self._way = way

    def answer(self, broadcast, progress=None):
        honest = super().answer(broadcast, progress)
        question = broadcast.question
        crafter = Fakes(question, [TARGET])
        tally = np.zeros(question.tally_size, dtype=np.int64)
        rng = np.random.default_rng([question.pass_index, question.layer])
        if self._way == "random-reports":
            counts = crafter.add_random_reports(NUM_FAKES, rng=rng, tally=tally)
        else:
            counts = crafter.add([0], NUM_FAKES, goal="promote", rng=rng, tally=tally)
        fake = Aggregate(
            tally=tally,
            num_reports=counts.num_reports,
            num_clients=0,
            messages=counts.messages,
        )
        return honest.merge(Answer(aggregate=fake))


@pytest.mark.parametrize("way", thinned(["promote", "random-reports"]))
@pytest.mark.parametrize("name", PROTOCOLS)
def test_crafted_reports_bring_a_word_in(name, way, population):
    assert TARGET not in population.lexicon.words
    protocol = PROTOCOLS[name].settle(num_clients=6_000, seed=1)
    executor = WithFakes(ClientWorker(population, seed=1), way)
    *_, last = rounds(protocol, executor)
    found = protocol.discoveries(last.state).words
    assert (TARGET in found) == (way == "promote")
