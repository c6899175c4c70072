"""How the cells of a sweep become records: one after the other, or side by side on Ray."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from fedhh.clients.populations.population import Population, StoredPopulation
from fedhh.experiments.config.labels import short_label, value_text
from fedhh.experiments.run.result import RunResult
from fedhh.experiments.sweep import directory as results
from fedhh.experiments.sweep.directory import DONE, FAILED, AnyCell, Record
from fedhh.plugin_errors import PluginError, naming_plugins
from fedhh.system.machine import memory_bytes
from fedhh.validation import InputError, printable

# A row of a population: int32 word and int32 count.
_BYTES_PER_ROW = 8
# The population itself, its copy in the object store, and what runs need beside it.
_COPIES = 3

CellT = TypeVar("CellT", bound=AnyCell)
_Heard_contra = TypeVar("_Heard_contra", bound=AnyCell, contravariant=True)


class Listener(Protocol[_Heard_contra]):
    """Follows a sweep; the command line shows what it hears."""

    def start(self, cells: Sequence[_Heard_contra], done: int) -> None:
        """Hear which cells are about to run, and how many were done before."""

    def begin(self, cell: _Heard_contra) -> None:
        """Hear that a cell runs."""

    def finish(self, cell: _Heard_contra, record: Record) -> None:
        """Hear a cell's record."""


class Silence:
    """A listener that does nothing."""

    def start(self, cells: Sequence[AnyCell], done: int) -> None:
        """Ignore."""

    def begin(self, cell: AnyCell) -> None:
        """Ignore."""

    def finish(self, cell: AnyCell, record: Record) -> None:
        """Ignore."""


class ProgressLines(Silence):
    """A listener that writes a line to standard error for each finished cell."""

    def __init__(self) -> None:
        self._done = self._total = 0

    def start(self, cells: Sequence[AnyCell], done: int) -> None:
        """Count the cells."""
        self._done, self._total = done, done + len(cells)

    def finish(self, cell: AnyCell, record: Record) -> None:
        """Write what a cell was, and its coverage or its error."""
        self._done += 1
        settings = [f"{short_label(path)} {value_text(x)}" for path, x in cell.varied.items()]
        where = ", ".join([*settings, f"seed {cell.seed}"])
        result = record["result"]
        what = f"coverage {result['coverage']:.1%}" if result else f"failed: {record['error']}"
        sys.stderr.write(printable(f"{self._done} of {self._total}: {where}: {what}") + "\n")


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
        with naming_plugins():
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
    if drawn.population is not None:
        try:
            with naming_plugins():
                made = run(drawn.population)
            result = results.flat_result(made, delta=delta)
            timings = dict(made.timings)
        except Exception as problem:  # A cell's fault must not end the sweep.
            error = _one_line(problem)
    return {
        "status": FAILED if error else DONE,
        "error": error,
        "result": result,
        "versions": results.versions(),
        "timings": {
            "seconds": time.perf_counter() - started,
            "population_seconds": drawn.seconds,
            **timings,
        },
    }


def side_by_side(
    cells: Sequence[CellT],
    run: Callable[[Any, Drawn], Record],
    *,
    job: Callable[[CellT], Any],
    draw: Callable[[CellT], Drawn],
    listener: Listener[CellT],
    workers: int | None,
    ray_address: str,
) -> Iterator[tuple[CellT, Record]]:
    """Yield cells with their records as they finish on Ray, so many at a time.

    Args:
        cells: Those of one population in a row.
        run: Returns a job's record; importable on every node.
        job: Returns what ``run`` needs of a cell.
        draw: Returns a cell's population, the same object as long as it stays the same.
        listener: Hears which cell begins.
        workers: How many at a time; None for one on each core of the cluster that is free.
        ray_address: See `fedhh.experiments.sweep.sweep.sweep`.
    """
    from fedhh.simulation.ray.tasks import Shared, map_on_ray

    def calls() -> Iterator[tuple[Any, ...]]:
        shared: Shared | None = None
        for cell in cells:
            drawn = draw(cell)
            if shared is None or shared.value is not drawn:
                shared = Shared(value=drawn)
            listener.begin(cell)
            yield job(cell), shared

    for number, outcome in map_on_ray(run, calls(), num_workers=workers, address=ray_address):
        yield cells[number], _lost(outcome) if isinstance(outcome, Exception) else outcome


def fits_beside_others(population: Population | None) -> bool:
    """Return whether a population is held in memory and leaves room for runs beside it.

    A virtual population counts its words once for whoever measures; cells side by side would each
    count again.
    """
    if not isinstance(population, StoredPopulation):
        return False
    return rows_fit(int(population.items.offsets[-1]))


def rows_fit(rows: float) -> bool:
    """Return whether a population of so many rows (client, word) leaves room for runs beside it."""
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
    if isinstance(error, PluginError):
        return str(error)
    return " ".join(f"{type(error).__name__}: {error}".split())
