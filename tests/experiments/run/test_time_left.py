"""The time left is right: played with a clock that costs what layers cost."""

from __future__ import annotations

import pytest

from fedhh.clients.drawn import DrawnClients
from fedhh.clients.synthetic import synthetic_population
from fedhh.experiments.run.layers import LayerRow
from fedhh.experiments.run.time_left import AFTER_LAYERS, FinishedRound, TimeLeft, work_of
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.sfp import Sfp
from fedhh.simulation.fidelity import PER_REPORT
from tests.every import every

GBOARD = LdpTrieHH(
    clients_per_layer=10_000,
    depth=15,
    passes=1,
    eta_max=10_000,
    max_items=60,
    local_epsilon=10.0,
    alphabet="printable",
    skip_free_layers=False,
)
CALLS = 16


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Played:
    """A run whose layers take ``first`` or ``later`` seconds, and the first one ``start`` more.

    Half of that before the first answer, half after the last; later layers wait ``wait`` like that.
    """

    def __init__(
        self,
        *,
        first: float,
        later: float,
        start: float,
        wait: float = 0.0,
        num_clients: int = 10_000,
    ):
        self.clock = Clock()
        self.left = TimeLeft(self.clock)
        self.seconds = [first] + [later] * 14
        self.waiting = [start] + [wait] * 14
        self.num_clients = num_clients

    def truth(self, layer: int) -> float:
        return sum(self.seconds[layer:]) + sum(self.waiting[layer:]) + AFTER_LAYERS

    def play(self, layer: int, calls: int = CALLS) -> None:
        self.clock.now += self.waiting[layer] / 2
        for _ in range(calls):
            self.clock.now += self.seconds[layer] / CALLS
            self.left.advance(self.num_clients // CALLS)
        if calls == CALLS:
            self.clock.now += self.waiting[layer] / 2
            self.left.finish("", FinishedRound(row(layer, self.num_clients), None))


def row(layer: int, num_clients: int) -> LayerRow:
    """What Gboard's setting has in a layer: small reports in the first, of 46 values later."""
    domain, size, kept = (9_901, 1, 9_900) if layer == 0 else (1_000_001, 46, 10_000)
    return LayerRow(
        pass_index=0, layer=layer + 1, num_prefixes=100, num_candidates=domain - 1,
        domain_size=domain, num_clients=num_clients, num_reports=60 * num_clients, threshold=1,
        threshold_z=1.0, noise_std=1.0, num_kept=kept, num_finished=0, report_bits=1.0,
        download_bits=1.0, subset_size=size, dummies=0, clients_with_items=0, coverage=0.0,
        missed_mass=0.0, fidelity=PER_REPORT,
    )  # fmt: skip


@pytest.fixture(scope="module")
def virtual():
    return DrawnClients("keyboard60d", 150_000, seed=0)


# Seconds of 10^6 clients in the first layer and later on, and of 200,000; as measured.
@every(("first", "later", "wait"), [(2.8, 4.3, 0.1), (5.5, 10.5, 0.2), (0.55, 0.85, 0.08)])
@every("start", [0.5, 6.0])
def test_the_time_left_is_right_within_30_percent_after_the_first_layer(
    virtual, first, later, wait, start
):
    run = Played(first=first, later=later, start=start, wait=wait)
    run.left.start(work_of(GBOARD, virtual, clients_done=0))
    assert run.left.seconds() is None
    run.play(0)
    assert run.left.seconds() == pytest.approx(run.truth(1), rel=0.3)
    for layer in range(1, 15):
        run.play(layer)
        left = run.left.seconds()
        assert left == pytest.approx(run.truth(layer + 1), rel=0.15), layer


def test_a_quarter_of_the_second_layer_is_better_than_any_model(virtual):
    run = Played(first=3.0, later=30.0, start=1.0)
    run.left.start(work_of(GBOARD, virtual, clients_done=0))
    run.play(0)
    assert run.left.seconds() < 0.5 * run.truth(1)
    run.play(1, calls=CALLS // 4)
    assert run.left.seconds() == pytest.approx(run.truth(1) - 7.5, rel=0.1)


def test_the_time_left_runs_down_between_answers_and_not_below_zero(virtual):
    run = Played(first=3.0, later=4.5, start=1.0)
    run.left.start(work_of(GBOARD, virtual, clients_done=0))
    run.play(0)
    run.play(1)
    before = run.left.seconds()
    run.clock.now += 2.0
    assert run.left.seconds() == pytest.approx(before - 2.0)
    run.clock.now += 1e6
    assert run.left.seconds() == 0.0


def test_a_resumed_run_counts_the_layers_that_are_left(virtual):
    run = Played(first=4.0, later=4.0, start=1.0)
    run.left.start(work_of(GBOARD, virtual, clients_done=100_000))
    for layer in (10, 11):
        run.play(layer)
    assert run.left.seconds() == pytest.approx(run.truth(12), rel=0.15)


def test_a_protocol_of_one_round_knows_from_its_own_answers():
    clock = Clock()
    left = TimeLeft(clock)
    clients = synthetic_population("chat", 100, seed=0)
    left.start(work_of(Sfp(clients_per_layer=16_000), clients))
    clock.now += 5.0
    left.advance(1_000)
    assert left.seconds() is None
    for _ in range(7):
        clock.now += 2.0
        left.advance(1_000)
    assert left.seconds() == pytest.approx(8 * 2.0 + AFTER_LAYERS)
