"""Cells that share clients: each client is drawn once, and nothing else changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedhh.clients.drawn import DrawnClients
from fedhh.clients.population import client_order
from fedhh.clients.worker import ClientWorker
from fedhh.experiments.config.load import parse_config
from fedhh.experiments.config.population import build_population
from fedhh.experiments.config.schema import ExecutionConfig
from fedhh.experiments.run.flat_result import flat_result
from fedhh.experiments.run.run import run_config
from fedhh.experiments.sweep import sweep
from fedhh.experiments.sweep.directory import read_results
from fedhh.experiments.sweep.execution import Drawn
from fedhh.experiments.sweep.plan import Cell, Sweep, parse_sweep
from fedhh.experiments.sweep.together import run_together, sharing_clients
from fedhh.protocol import AnyProtocol, Discoveries
from fedhh.questions.clients import ClientBlock
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.simulation.engine import Round, Walk, together
from fedhh.simulation.executor import InProcessExecutor
from fedhh.simulation.fidelity import Fidelity
from fedhh.simulation.roster import Roster
from fedhh.testing import LETTERS, small_population
from tests.asked_clients import Recording

pytestmark = pytest.mark.usefixtures("virtual_lexicon")

TABLE = {
    "seed": 3,
    "population": {"source": "chat", "clients": 9_000, "virtual": True},
    "protocol": {"depth": 3, "eta_max": 50, "max_items": 1},
    "execution": {"workers": 0},
}
# As in Table 1: the first two ask the same clients in the same rounds, the third others.
LINKED = {
    "protocol.sampler": ["greedy", "random", "random"],
    "protocol.passes": [1, 1, 2],
    "protocol.clients_per_layer": [3_000, 3_000, 1_500],
}


def plan() -> Sweep:
    return parse_sweep({**TABLE, "sweep": {"linked": [LINKED]}}, "test")


@dataclass
class Draws:
    """Clients drawn to answer, counted."""

    clients: int = 0


@pytest.fixture
def draws(monkeypatch: pytest.MonkeyPatch) -> Draws:
    drawn, block = Draws(), DrawnClients.block

    def counted(self: DrawnClients, clients: Any) -> ClientBlock:
        drawn.clients += len(clients)
        return block(self, clients)

    monkeypatch.setattr(DrawnClients, "block", counted)
    return drawn


def population(clients: int = 9_000) -> DrawnClients:
    config = parse_config({**TABLE, "population": {**TABLE["population"], "clients": clients}}, "t")
    built = build_population(config.population, seed=3)[0]
    assert isinstance(built, DrawnClients)
    return built


def found_together(
    protocols: Sequence[AnyProtocol], clients: Any, *, seed: int, fidelity: Fidelity | None = None
) -> list[Discoveries]:
    """Return what settled protocols find over the same clients in lockstep."""
    roster = Roster(client_order(clients, seed=seed))
    walks = [Walk(each, roster=roster, fidelity=fidelity) for each in protocols]
    states = [each.initialize() for each in protocols]
    executor = InProcessExecutor(ClientWorker(clients, seed=seed))
    for number, finished in together(walks, executor):
        if isinstance(finished, Round):
            states[number] = finished.state
        else:
            assert finished is None
    return [each.discoveries(state) for each, state in zip(protocols, states, strict=True)]


def test_two_small_runs_that_share_clients_give_the_bits_of_each_alone():
    clients = small_population(400)
    sizes = {"alphabet": LETTERS, "clients_per_layer": 100, "passes": 1, "eta_max": 10}
    protocols = [
        LdpTrieHH(**sizes, depth=depth, max_items=items) for depth, items in ((3, 1), (2, 2))
    ]
    settled = [each.settle(num_clients=400, seed=7) for each in protocols]
    drawn = Recording(clients)
    found = found_together(settled, drawn, seed=7)
    # Each client of the layers that both have is drawn once.
    assert len(drawn.asked) == 300
    for protocol, shared in zip(settled, found, strict=True):
        (alone,) = found_together([protocol], clients, seed=7)
        assert len(alone.words)
        assert shared.words == alone.words
        assert np.array_equal(shared.estimate, alone.estimate)


@pytest.mark.slow("::test_two_small_runs_that_share_clients_give_the_bits_of_each_alone")
def test_a_sweep_groups_what_asks_the_same_clients_and_its_rows_are_those_of_single_runs(
    tmp_path: Path, draws: Draws
):
    sweep.run_sweep(plan(), tmp_path / "sweep", workers=0)
    shared = draws.clients
    table, _ = read_results(tmp_path / "sweep")
    draws.clients = 0
    clients = population()
    for (_, row), cell in zip(table.iterrows(), plan().cells, strict=True):
        _, result = run_config(cell.config, clients)
        for name in ("coverage", "precision", "recall", "f1"):
            assert row[name] == result.metrics.to_dict()[name]
        assert row["reports"] == result.cost["reports"] == 9_000
    # Two of three runs shared 9,000 clients. What samples the lexicon draws besides, too.
    assert draws.clients - shared == pytest.approx(9_000, abs=1)
    assert shared >= 18_000


def test_cells_share_clients_only_where_the_rounds_are_the_same():
    cells, drawn = plan().cells, Drawn(population=population(), error="", seconds=0.0)
    groups = list(sharing_clients(cells, lambda cell: drawn))
    assert [len(group) for group in groups] == [2, 1]
    other = parse_sweep({**TABLE, "seed": 4, "sweep": {"linked": [LINKED]}}, "test").cells
    mixed = list(sharing_clients([cells[0], other[1]], lambda cell: drawn))
    assert [len(group) for group in mixed] == [1, 1]
    nobody = Drawn(population=None, error="there is no such file", seconds=0.0)
    assert [len(group) for group in sharing_clients(cells, lambda cell: nobody)] == [1, 1, 1]


@pytest.mark.slow("::test_two_small_runs_that_share_clients_give_the_bits_of_each_alone")
def test_cells_that_share_clients_ask_the_same_devices_as_each_alone():
    """One of them stops early: its devices are given more time to no avail."""
    devices = {"check_in": "papaya", "eligible": 0.8, "dropout": 0.1, "when_missed": "stop"}
    linked = {**LINKED, "devices.least_share": [0.5, 0.5, 0.685]}
    table = {**TABLE, "devices": devices, "sweep": {"linked": [linked]}}
    cells = parse_sweep(table, "test").cells
    drawn = Drawn(population=population(), error="", seconds=0.0)
    records = run_together(cells, drawn, ExecutionConfig(workers=0))
    for cell, record in zip(cells, records, strict=True):
        assert record["error"] == ""
        _, alone = run_config(cell.config, population())
        found = flat_result(alone, delta=cell.config.privacy.delta)
        for name in ("coverage", "reports", "clients_asked", "days", "share_served"):
            assert record["result"][name] == found[name]
    assert records[0]["result"]["clients_asked"] < 0.75 * 9_000


@pytest.mark.slow("::test_two_small_runs_that_share_clients_give_the_bits_of_each_alone")
def test_a_run_that_fails_does_not_stop_its_neighbour(monkeypatch: pytest.MonkeyPatch):
    cells: list[Cell] = list(plan().cells[:2])
    drawn = Drawn(population=population(), error="", seconds=0.0)
    finish = LdpTrieHH.finish_round

    def fails(self: LdpTrieHH, state: Any, question: Any, aggregate: Any) -> Any:
        if self.sampler == "greedy" and question.layer == 2:
            raise RuntimeError("lost")
        return finish(self, state, question, aggregate)

    monkeypatch.setattr(LdpTrieHH, "finish_round", fails)
    failed, done = run_together(cells, drawn, ExecutionConfig(workers=0))
    assert failed["error"] == "RuntimeError: lost"
    assert done["error"] == ""
    _, alone = run_config(cells[1].config, population())
    assert done["result"]["coverage"] == alone.metrics.coverage


@pytest.mark.slow("::test_two_small_runs_that_share_clients_give_the_bits_of_each_alone")
@pytest.mark.parametrize("fidelity", ["per-report", "exact-tally"])
def test_runs_of_different_rounds_and_items_give_the_bits_of_each_alone(fidelity: str):
    """One ends earlier, and their second rounds ask other cohorts."""
    clients = population(2_000)
    protocols = [
        LdpTrieHH(
            alphabet="lower", depth=4, clients_per_layer=400, eta_max=20, max_items=3, passes=1
        ),
        LdpTrieHH(
            alphabet="lower", depth=2, clients_per_layer=400, eta_max=30, pad=False, passes=1
        ),
        LdpTrieHH(
            alphabet="lower", depth=3, clients_per_layer=500, eta_max=30, max_items=2, passes=1
        ),
    ]
    settled = [each.settle(num_clients=2_000, seed=7) for each in protocols]
    chosen = Fidelity(name=fidelity)
    for protocol, shared in zip(
        settled, found_together(settled, clients, seed=7, fidelity=chosen), strict=True
    ):
        (alone,) = found_together([protocol], clients, seed=7, fidelity=chosen)
        assert len(alone.words)
        assert shared.words == alone.words
        assert np.array_equal(shared.estimate, alone.estimate)
