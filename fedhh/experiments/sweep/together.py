"""Cells of a sweep that ask the same clients in the same rounds: each client is drawn once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from fedhh.clients.clients import Clients
from fedhh.clients.population import Population
from fedhh.experiments.config.schema import ExecutionConfig
from fedhh.experiments.run.follow import FollowedRun, follow
from fedhh.experiments.run.run import begin, check_config
from fedhh.experiments.run.workers import choose_workers, open_executor, seconds_of_run
from fedhh.experiments.sweep.directory import Record
from fedhh.experiments.sweep.execution import Drawn, record_of
from fedhh.experiments.sweep.plan import Cell
from fedhh.simulation.engine import attempt
from fedhh.validation import InputError

MOST_TOGETHER = 4
"""Runs that share clients at a time: each holds a tally of its own."""


def sharing_clients(
    cells: Sequence[Cell], drawn_of: Callable[[Cell], Drawn]
) -> Iterator[tuple[Cell, ...]]:
    """Yield all cells in groups that draw the same clients, round by round, in their order.

    Only clients that are drawn again when asked are worth sharing.

    Args:
        cells: Those of one population and seed in a row.
        drawn_of: Returns a cell's population.
    """
    left = list(cells)
    while left:
        first = left.pop(0)
        key = _rounds_of(first, drawn_of(first).population)
        group = [first]
        if key is not None:
            for cell in list(left):
                drawn = drawn_of(cell) if _is_beside(cell, first) else None
                if drawn is None or len(group) == MOST_TOGETHER:
                    break
                if _rounds_of(cell, drawn.population) == key:
                    group.append(cell)
                    left.remove(cell)
        yield tuple(group)


def run_together(cells: Sequence[Cell], drawn: Drawn, execution: ExecutionConfig) -> list[Record]:
    """Return the records of cells that share clients: the results are those of each alone.

    Seconds in a record are of all cells together.
    """
    started = time.perf_counter()
    population = drawn.population
    assert population is not None
    settled = [
        check_config(cell.config.model_copy(update={"execution": execution}), population)
        for cell in cells
    ]
    seconds = sum(seconds_of_run(config, each.plan, population) for config, each in settled)
    workers = choose_workers(execution, seconds)
    with open_executor(settled[0][0], population, workers) as clients:
        begun = [attempt(partial(begin, *each, population)) for each in settled]
        results = iter(follow([run for run in begun if isinstance(run, FollowedRun)], clients))
    seconds = time.perf_counter() - started
    return [
        record_of(
            drawn,
            next(results) if isinstance(run, FollowedRun) else run,
            seconds,
            delta=config.privacy.delta,
        )
        for run, (config, _) in zip(begun, settled, strict=True)
    ]


def _is_beside(cell: Cell, first: Cell) -> bool:
    same = ("population", "seed", "simulation")
    return all(getattr(cell.config, key) == getattr(first.config, key) for key in same)


def _rounds_of(cell: Cell, population: Population | None) -> tuple[Any, ...] | None:
    """Return whom a cell asks round by round; None where there is nothing to share."""
    if population is None or isinstance(population, Clients):
        return None
    if cell.config.adversary is not None:
        # Fake clients take places of honest ones, in each cell others.
        return None
    try:
        plan = check_config(cell.config, population)[1].plan
    except InputError:
        # Its record will say what is wrong.
        return None
    if plan.reuses_clients:
        return None
    return tuple(layer.num_clients for layer in plan.layers)
