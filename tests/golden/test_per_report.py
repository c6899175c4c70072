"""Reports one by one give the bits that they always gave, for the same seed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from fedhh.clients.worker import ClientWorker
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.pem import Pem
from fedhh.server.sfp import Sfp
from fedhh.simulation.executor import InProcessExecutor
from fedhh.testing import LETTERS, small_population
from tests.asked_clients import answered

GOLDEN = json.loads(Path(__file__).with_name("ldp_triehh.json").read_text())

COMMON = {"alphabet": LETTERS, "clients_per_layer": 600, "max_items": 2, "local_epsilon": 4.0}
OUE = LdpTrieHH(
    alphabet=LETTERS, clients_per_layer=400, depth=4, passes=1, eta_max=9, max_items=3,
    local_epsilon=5.0, oracle="oue",
)  # fmt: skip
SFP = Sfp(**COMMON, length=4, word_hashes=4, fragment_hashes=4, hash_seed=5)
PEM = Pem(**COMMON, length=4, oracle="cms", num_hashes=2, hash_seed=5)


def tallies(protocol, population):
    worker = InProcessExecutor(ClientWorker(population, seed=1))
    state = protocol.initialize()
    while (question := protocol.next_question(state)) is not None:
        aggregate = answered(worker, question).aggregate
        yield aggregate.tally
        state = protocol.finish_round(state, question, aggregate)


def test_subset_selection_gives_the_recorded_tallies():
    protocol = LdpTrieHH(**GOLDEN["settings"])
    given = list(tallies(protocol, small_population(2_000)))
    assert len(given) == len(GOLDEN["rounds"])
    for tally, recorded in zip(given, GOLDEN["rounds"], strict=True):
        assert tally.tolist() == recorded["tally"]


@pytest.mark.parametrize(
    ("protocol", "recorded"),
    [(OUE, "c66b68f73963aa1e"), (SFP, "38817ff2d16fac6b"), (PEM, "2414ee2ab8f1582e")],
    ids=["oue", "sfp", "pem"],
)
def test_other_oracles_give_tallies_of_the_recorded_digest(protocol, recorded):
    digest = hashlib.sha256()
    for tally in tallies(protocol, small_population(4_000)):
        digest.update(np.asarray(tally, dtype="<i8").tobytes())
    assert digest.hexdigest()[:16] == recorded
