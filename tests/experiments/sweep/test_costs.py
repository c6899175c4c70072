"""What cells should take: their order on workers, where clients are drawn, and progress."""

from __future__ import annotations

import re

import pytest

from fedhh.experiments.study.callbacks import Callbacks
from fedhh.experiments.sweep import sweep
from fedhh.experiments.sweep.costs import Costs
from tests.experiments.sweep.test_sweep import TABLE, plan_of


class Heard(Callbacks):
    def __init__(self):
        self.work, self.units, self.steps, self.notes = None, [], [], []

    def start(self, work):
        self.work = work

    def begin(self, unit):
        self.units.append(unit)

    def advance(self, steps):
        self.steps.append(steps)

    def note(self, text):
        self.notes.append(text)


def test_workers_get_the_longest_cells_first_those_of_a_population_together(
    tmp_path, monkeypatch, ray_here
):
    linked = {
        "population.clients": [2_000, 8_000, 4_000],
        "protocol.clients_per_layer": [100, 900, 400],
    }
    plan = plan_of({"seeds": 2, "linked": [linked], "axes": {"protocol.passes": [1, 2]}})
    drawn = []
    monkeypatch.setattr(
        sweep,
        "build_population",
        lambda config, *, seed: drawn.append((len(heard.units), config.clients, seed)) or 1 / 0,
    )
    monkeypatch.setattr(sweep, "_fits_with_others", lambda *_: True)
    heard = Heard()
    sweep.run_sweep(plan, tmp_path / "out", workers=2, callbacks=[heard])
    unit = "passes {}, clients {:,}, clients per layer {}, seed {}"
    populations = [(size, seed) for size in (8_000, 4_000, 2_000) for seed in (5, 6)]
    per_layer = {2_000: 100, 8_000: 900, 4_000: 400}
    assert heard.units == [
        unit.format(passes, size, per_layer[size], seed)
        for size, seed in populations
        for passes in (2, 1)
    ]
    # Each is drawn on the cluster, and begun before the first cell of the one before it.
    begun = [0, 0, 2, 4, 6, 8]
    assert drawn == [(n, *which) for n, which in zip(begun, populations, strict=True)]


@pytest.mark.slow("::test_workers_get_the_longest_cells_first_those_of_a_population_together")
def test_a_population_that_needs_a_file_is_drawn_where_the_file_is(tmp_path, monkeypatch, ray_here):
    from fedhh.simulation.ray import tasks

    begun = []
    monkeypatch.setattr(tasks, "computed", begun.append)
    (tmp_path / "known.txt").write_text("lol\n")
    population = {"source": "chat", "clients": 600, "known": str(tmp_path / "known.txt")}
    protocol = {**TABLE["protocol"], "clients_per_layer": 100}
    plan = plan_of({"seeds": 2}, population=population, protocol=protocol)
    table = sweep.run_sweep(plan, tmp_path / "out", workers=2)
    assert set(table["status"]) == {"done"}
    assert not begun


def test_what_cells_took_says_what_others_of_their_protocol_should_take(tmp_path):
    protocols = {"A": {"max_items": 1}, "B": {"max_items": 2}}
    plan = plan_of({"seeds": 3, "protocols": protocols})
    slow, fast = ([c for c in plan.cells if c.protocol == label] for label in "AB")
    costs = Costs(plan.cells)
    before = costs.seconds(slow[0])
    assert costs.share_done == 0
    costs.learn(slow[0], 10 * before)
    assert costs.seconds(slow[1]) == pytest.approx(10 * before)
    assert costs.seconds(fast[1]) == pytest.approx(before)
    costs.learn(slow[1], 30 * before)
    assert costs.seconds(slow[2]) == pytest.approx(20 * before)
    assert costs.seconds_left == pytest.approx(23 * before)
    assert costs.share_done == pytest.approx(40 / 63)
    # What says nothing of others, such as a failure, is done.
    for cell in (slow[2], *fast):
        costs.learn(cell, None)
    assert costs.seconds_left == 0
    assert costs.share_done == 1


@pytest.mark.slow("::test_what_cells_took_says_what_others_of_their_protocol_should_take")
def test_progress_is_by_what_cells_should_take(tmp_path, monkeypatch):
    linked = {"population.clients": [900, 9_000], "protocol.clients_per_layer": [100, 1_000]}
    plan = plan_of({"linked": [linked]})
    heard = Heard()
    monkeypatch.setattr(Costs, "learn", of_the_planned_seconds)
    sweep.run_sweep(plan, tmp_path / "out", workers=0, callbacks=[heard])
    short, long = heard.steps
    assert short < long
    assert (heard.work.steps, heard.work.steps_done) == (short + long, 0)
    assert re.search(r"; cells took [0-9,]+ s$", heard.notes[-1])
    # One that is there already is done before.
    cell = next(iter((tmp_path / "out" / "cells").glob(f"{plan.cells[1].id}*.json")))
    cell.unlink()
    again = Heard()
    sweep.run_sweep(plan, tmp_path / "out", workers=0, resume=True, callbacks=[again])
    assert (again.work.steps, again.work.steps_done, again.steps) == (short + long, short, [long])


def of_the_planned_seconds(costs, cell, seconds, *, learn=Costs.learn):
    """As if every cell took what was planned."""
    learn(costs, cell, None)
