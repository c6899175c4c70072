"""Clients that are drawn when asked are counted as they answer, and measured as if before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedhh.clients.populations.virtual import VirtualPopulation
from fedhh.clients.worker import ClientWorker
from fedhh.experiments.run.run import simulate
from fedhh.experiments.study.callbacks import Callbacks
from fedhh.questions.answer import Counted
from fedhh.questions.cohort import Cohort
from fedhh.server.ldp_triehh import LdpTrieHH
from tests.asked_clients import answered
from tests.thinned import thinned

pytestmark = pytest.mark.usefixtures("virtual_lexicon")

PROTOCOL = LdpTrieHH(
    alphabet="lower", clients_per_layer=300, depth=4, passes=2, eta_max=200, max_items=3
)


def population(**changes):
    return VirtualPopulation("chat", 3_000, seed=5, **changes)


@pytest.fixture(scope="module")
def counted_first():
    clients = population()
    clients.count()
    return simulate(PROTOCOL, clients, seed=4)


class Steps(Callbacks):
    """Hears what a run counts and which coverage it shows; stops it in a round, if asked to."""

    def __init__(self, stop_in: int = 0) -> None:
        self.to_count: list[int] = []
        self.coverage: list[float] = []
        self._stop_in = stop_in

    def phase(self, text, done=0, of=0) -> None:
        self.to_count += [of] if of else []

    def finish(self, unit, result) -> None:
        self.coverage.append(result.row.coverage)
        if len(self.coverage) == self._stop_in:
            raise KeyboardInterrupt


def same(one, other) -> bool:
    return (
        one.discoveries.equals(other.discoveries)
        and one.layers.equals(other.layers)
        and one.metrics == other.metrics
        and one.population == other.population
    )


@pytest.mark.slow("::test_a_census_of_parts_is_the_census")
def test_measures_are_those_of_clients_counted_before(counted_first):
    steps = Steps()
    assert same(simulate(PROTOCOL, population(), seed=4, callbacks=[steps]), counted_first)
    # Only who was not asked is drawn once more.
    asked = counted_first.layers["num_clients"].sum()
    assert set(steps.to_count) == {3_000 - asked}
    assert np.isnan(steps.coverage).all()
    assert counted_first.layers["coverage"].iloc[-1] > 0.05


@pytest.mark.slow("::test_a_census_of_parts_is_the_census")
def test_a_resumed_run_measures_the_rounds_before_it_stopped(tmp_path, counted_first):
    for stop_in in (3, 2):
        steps = Steps(stop_in)
        with pytest.raises(KeyboardInterrupt):
            simulate(PROTOCOL, population(), seed=4, log_in=tmp_path, callbacks=[steps])
    again = simulate(PROTOCOL, population(), seed=4, log_in=tmp_path)
    assert same(again, counted_first)


@pytest.mark.slow("::test_a_census_of_parts_is_the_census")
def test_clients_who_may_answer_twice_are_counted_before():
    reused = LdpTrieHH(
        alphabet="lower",
        clients_per_layer=300,
        depth=3,
        eta_max=200,
        max_items=3,
        participation="every-round",
    )
    steps = Steps()
    simulate(reused, population(), seed=4, callbacks=[steps])
    assert set(steps.to_count) == {3_000}
    assert not np.isnan(steps.coverage).any()


def counts_of(clients, *cohorts: Cohort) -> Counted:
    """What workers count that answer for cohorts, each in two parts."""
    state = PROTOCOL.settle(num_clients=3_000, seed=4)
    question = state.next_question(state.initialize())
    total = None
    for cohort in cohorts:
        for blocks in (range(0, cohort.num_blocks, 2), range(1, cohort.num_blocks, 2)):
            worker = ClientWorker(clients, seed=4, counts=True)
            part = answered(worker, replace(question, cohort=cohort), blocks)
            counted = part.diagnostics.counted
            total = counted if total is None else total.merge(counted)
    return total


@pytest.fixture(scope="module", params=[None, 1_100])
def whole(request):
    return population(counted_clients=request.param)


@pytest.mark.parametrize(
    "cohorts",
    thinned(
        [
            [Cohort(start=0, size=1_000)],
            [Cohort(start=2_000, size=700), Cohort(start=500, size=900)],
            # A client in two of them: all are counted anew.
            [Cohort(start=0, size=800), Cohort(start=700, size=300)],
        ]
    ),
)
def test_a_census_of_parts_is_the_census(cohorts, whole):
    clients = population(counted_clients=whole.counted_clients)
    clients.count(counted=counts_of(clients, *cohorts))
    for name in ("words", "beyond", "sample", "sample_counts", "squares"):
        assert np.array_equal(getattr(clients.census, name), getattr(whole.census, name))
