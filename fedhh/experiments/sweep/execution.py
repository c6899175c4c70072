"""How the cells of a sweep become records: one after the other, or in parallel on Ray."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from fedhh.clients.clients import Clients
from fedhh.clients.population import Population
from fedhh.experiments.config.labels import is_share, short_label, value_text
from fedhh.experiments.run.flat_result import flat_result
from fedhh.experiments.run.result import RunResult
from fedhh.experiments.study.callbacks import Callbacks, Work
from fedhh.experiments.sweep import directory as results
from fedhh.experiments.sweep.directory import DONE, FAILED, AnyCell, Record
from fedhh.plugins import without_exit
from fedhh.system.machine import memory_bytes
from fedhh.validation import InputError, printable

# A row of a population: int32 word and int32 count.
_BYTES_PER_ROW = 8
# A population, its copy in the object store or the next one, and what runs need besides it.
_COPIES = 3

CellT = TypeVar("CellT", bound=AnyCell)

Call = tuple[Callable[..., "Drawn"], tuple[Any, ...]]
"""A function that is importable on every node, and its arguments."""


class ProgressLines(Callbacks):
    """Writes a line to standard error for each finished cell."""

    def __init__(self) -> None:
        self._done = self._total = 0

    def start(self, work: Work) -> None:
        self._done, self._total = work.done, work.total

    def finish(self, unit: str, result: Any) -> None:
        self._done += 1
        record: Record = result.record
        flat = record["result"]
        what = f"coverage {flat['coverage']:.1%}" if flat else f"failed: {record['error']}"
        sys.stderr.write(printable(f"{self._done} of {self._total}: {unit}: {what}") + "\n")


class FinishedCell(NamedTuple):
    """What a sweep's callbacks get of a cell."""

    cell: AnyCell
    record: Record


def settings_text(cell: AnyCell) -> str:
    """Return what varies of a cell, and its values."""
    return ", ".join(f"{short_label(path)} {value_text(x)}" for path, x in cell.varied.items())


def unit_of(cell: AnyCell) -> str:
    """Return what varies of a cell, with its values, and its seed."""
    settings = settings_text(cell)
    return f"{settings}, seed {cell.seed}" if settings else f"seed {cell.seed}"


def metric_text(metric: str, value: float) -> str:
    """Return a metric's value as text, a share in percent."""
    return f"{value:.1%}" if is_share(metric) else f"{value:,.4g}"


class Standing:
    """How a sweep stands: what failed, the best cell so far, and what cells took."""

    def __init__(self, metric: str) -> None:
        self._metric, self._failed, self._best = metric, 0, -math.inf
        self._seconds = 0.0
        self._where = ""

    def after(self, cell: AnyCell, record: Record) -> str:
        """Return it in a line, with one more cell."""
        self._failed += record["status"] == FAILED
        self._seconds += record["timings"].get("seconds", 0.0)
        value = record["result"].get(self._metric)
        if isinstance(value, int | float) and value > self._best:
            self._best = value
            self._where = f"best so far: {metric_text(self._metric, value)} at {unit_of(cell)}"
        failed = f"{self._failed} failed" if self._failed else ""
        spent = f"cells took {self._seconds:,.0f} s"
        return "; ".join(part for part in (failed, self._where, spent) if part)


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawn:
    """A population that is ready, or the reason why it is not.

    Attributes:
        population: The clients.
        error: Why there is no population.
        seconds: What it took.
    """

    population: Population | None
    error: str
    seconds: float


def draw(make: Callable[[], Population]) -> Drawn:
    """Return what a function draws or reads; what goes wrong is part of it."""
    started = time.perf_counter()
    population, error = None, ""
    try:
        with without_exit():
            population = make()
    except Exception as problem:  # Recorded with every cell of this population.
        error = str(problem) if isinstance(problem, InputError) else _one_line(problem)
    return Drawn(population=population, error=error, seconds=time.perf_counter() - started)


def recorded(drawn: Drawn, run: Callable[[Population], RunResult], *, delta: float) -> Record:
    """Return the record of one run over a population; what goes wrong is part of it."""
    started = time.perf_counter()
    result: dict[str, Any] = {}
    timings: dict[str, float] = {}
    error = drawn.error
    try:
        with without_exit():
            if drawn.population is not None:
                outcome = run(drawn.population)
                result = flat_result(outcome, delta=delta)
                timings = dict(outcome.timings)
    except Exception as problem:  # A cell's fault must not end the sweep.
        error = _one_line(problem)
    seconds = time.perf_counter() - started
    return {
        "status": FAILED if error else DONE,
        "error": error,
        "result": result,
        "versions": results.versions(),
        "timings": {
            "seconds": seconds,
            "population_seconds": drawn.seconds,
            **timings,
        },
    }


def side_by_side(
    cells: Sequence[CellT],
    run: Callable[[Any, Drawn], Record],
    *,
    job: Callable[[CellT], Any],
    population: Callable[[CellT], Any],
    draw: Callable[[CellT], Drawn],
    draw_apart: Callable[[CellT], Call | None] = lambda cell: None,
    cost: Callable[[CellT], float] = lambda cell: 1.0,
    listener: Callbacks,
    workers: int | None,
    ray_address: str,
) -> Iterator[tuple[CellT, Record]]:
    """Yield cells with their records as they finish on Ray, so many at a time.

    Cells of one population follow each other, so that it is drawn once, and are handed out when a
    worker is free: the population with the longest cell first, and so the cells of each. What is
    drawn apart is begun while the cells of the population before it run.

    Args:
        cells: What to run.
        run: Returns a job's record; importable on every node.
        job: Returns what ``run`` needs of a cell.
        population: Returns a key of a cell's population.
        draw: Returns a cell's population.
        draw_apart: Returns the call that draws it on the cluster; None for one drawn here.
        cost: Returns about what a cell takes, by what is known when it is asked.
        listener: Callbacks: which cell begins.
        workers: How many at a time; None for one on each core of the cluster that is free.
        ray_address: See `fedhh.experiments.sweep.sweep.sweep`.
    """
    from fedhh.simulation.ray.cluster import stored
    from fedhh.simulation.ray.tasks import computed, map_on_ray

    groups: dict[Any, list[CellT]] = {}
    for cell in cells:
        groups.setdefault(population(cell), []).append(cell)
    begun: list[CellT] = []

    def next_group() -> tuple[list[CellT], Any]:
        """Return the cells of the next population, which begins to be drawn if that is apart."""
        if not groups:
            return [], None
        group = groups.pop(max(groups, key=lambda key: max(map(cost, groups[key]))))
        call = draw_apart(group[0])
        return group, None if call is None else computed(call[0], *call[1])

    def calls() -> Iterator[tuple[Any, ...]]:
        group, drawn_apart = next_group()
        while group:
            drawn = stored(draw(group[0])) if drawn_apart is None else drawn_apart
            following, drawn_apart = next_group()
            while group:
                begun.append(group.pop(group.index(max(group, key=cost))))
                listener.begin(unit_of(begun[-1]))
                yield job(begun[-1]), drawn
            group = following

    for number, outcome in map_on_ray(run, calls(), num_workers=workers, address=ray_address):
        yield begun[number], _lost(outcome) if isinstance(outcome, Exception) else outcome


def fits_with_others(population: Population | None) -> bool:
    """Return whether a population leaves room for runs next to it.

    One that is mapped does, and one in memory may. A virtual population counts its words once for
    evaluation; cells in parallel would each count again.
    """
    if not isinstance(population, Clients):
        return False
    return population.table.is_mapped or rows_fit(int(population.items.offsets[-1]))


def rows_fit(rows: float) -> bool:
    """Return whether a population of so many rows (client, word) leaves room for other runs."""
    return _COPIES * _BYTES_PER_ROW * rows < memory_bytes()


def _lost(error: Exception) -> Record:
    """Return the record of a cell whose worker gave no answer."""
    return {
        "status": FAILED,
        "error": _one_line(error),
        "result": {},
        "versions": results.versions(),
        "timings": {},
    }


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
