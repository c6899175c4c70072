"""Sweeps over objects: protocols and a population made in Python, axes as a mapping."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from fedhh.adversary import Adversary
from fedhh.clients.population import Population
from fedhh.devices import Devices
from fedhh.experiments.run.privacy import DEFAULT_ALPHA, DEFAULT_DELTA
from fedhh.experiments.run.result import MetricSettings
from fedhh.experiments.run.workers import check_cluster
from fedhh.experiments.study.callbacks import Callbacks, Work
from fedhh.experiments.sweep import directory as results
from fedhh.experiments.sweep.axes import PROTOCOL
from fedhh.experiments.sweep.directory import Record
from fedhh.experiments.sweep.execution import (
    Drawn,
    FinishedCell,
    ProgressLines,
    draw,
    fits_with_others,
    recorded,
    side_by_side,
    unit_of,
)
from fedhh.experiments.sweep.object_cells import (
    Job,
    ObjectCell,
    listed_axes,
    listed_protocols,
    listed_seeds,
    make_cells,
    path_of,
)
from fedhh.experiments.sweep.totals import total_line
from fedhh.protocol import DiscoveryProtocol
from fedhh.simulation.fidelity import Fidelity
from fedhh.validation import InputError, shown


def sweep_over(
    protocols: DiscoveryProtocol | Mapping[str, DiscoveryProtocol],
    population: Population | Callable[[int], Population],
    *,
    axes: Mapping[str, Iterable[Any]] | None = None,
    seeds: int | Iterable[int] = 1,
    workers: int = 0,
    ray_address: str = "",
    fidelity: Fidelity | None = None,
    devices: Devices | None = None,
    adversary: Adversary | None = None,
    settings: MetricSettings | None = None,
    delta: float = DEFAULT_DELTA,
    alpha: float = DEFAULT_ALPHA,
    title: str = "",
    progress: bool = False,
) -> pd.DataFrame:
    """Run protocols over a population for all combinations of some settings, and several seeds.

    Every combination is made and checked before the first one runs. Rows and columns are those of
    `fedhh.sweep`: a field's column is its path in a configuration ("local_epsilon" is
    ``privacy.local_epsilon``, "passes" is ``protocol.passes``), and a run that fails is a row with
    ``status`` "failed" and its ``error``. The same settings, clients and seed give the same numbers
    as there; only ``cell``, a hash of what was given, differs. `fedhh.table` and `fedhh.plot` show
    the result.

    Args:
        protocols: A protocol, or several by label.
        population: The clients of every run; or a function that returns those of a seed, always as
            many: ``lambda seed: fedhh.synthetic_population("chat", 50_000, seed=seed)``.
        axes: Values by name of a protocol's field, which all protocols must have, all combined with
            one another. "total_clients" is how many clients a protocol asks in all its layers.
            "item_central_epsilon" and "user_central_epsilon" choose every protocol's epsilons, see
            `fedhh.at_central_epsilon`.
        seeds: How many, from 0; or which.
        workers: Runs in parallel on Ray; 0 for one after the other in this process. Populations
            that are not held in memory are shared among the workers instead, run by run.
        ray_address: ``HOST:PORT`` of a running Ray cluster, or ``auto`` for this machine's; a
            local Ray if empty.
        fidelity: How faithfully to simulate clients; every report if None.
        devices: When clients' devices are there; if None, all of them always answer at once.
        adversary: Fake clients, or clients that collude, of every run; if None, all are honest.
        settings: What to measure against.
        delta: Of central guarantees.
        alpha: Of approximate k-anonymity.
        title: Heading of tables and figures.
        progress: Write a line to standard error for each finished run.

    Returns:
        A row for each combination and seed, seeds innermost.

    Raises:
        InputError: The sweep cannot run as it is; nothing has run.

    >>> import fedhh
    >>> population = fedhh.synthetic_population("chat", 2_000, seed=0)
    >>> protocol = fedhh.LdpTrieHH(depth=4, passes=1, eta_max=50, max_items=1)
    >>> results = fedhh.sweep_over(protocol, population, axes={"local_epsilon": [2, 8]}, seeds=2)
    >>> results[["privacy.local_epsilon", "seed", "status"]].values.tolist()
    [[2.0, 0, 'done'], [2.0, 1, 'done'], [8.0, 0, 'done'], [8.0, 1, 'done']]
    """
    listed = listed_protocols(protocols)
    store = _Store(population)
    numbers = listed_seeds(seeds)
    options = {
        "fidelity": fidelity, "settings": settings, "delta": delta, "alpha": alpha,
        **({} if devices is None else {"devices": devices}),
        **({} if adversary is None else {"adversary": adversary}),
    }  # fmt: skip
    check_cluster(workers, ray_address)
    values = listed_axes(axes or {}, listed)
    cells = make_cells(listed, values, numbers, store.num_clients(numbers[0]), options)
    paths = [path_of(name, next(iter(listed.values()))) for name in values]
    asked = [cell.asked for cell in cells]
    description = {
        "schema_version": results.SCHEMA_VERSION,
        "title": title,
        "axes": [*([PROTOCOL] if isinstance(protocols, Mapping) else []), *paths],
        "best": "coverage",
        "clients": total_line(asked, protocols=len(listed) > 1),
        "sweep": "",
    }
    listener = ProgressLines() if progress else Callbacks()
    if progress:
        sys.stderr.write(f"{description['clients']}\n")
    records = _run(cells, store, listener, workers, ray_address)
    frame = pd.DataFrame([results.result_row(cell, records[cell.id]) for cell in cells])
    frame.attrs[results.DESCRIPTION] = description
    return frame


def run_job(job: Job, drawn: Drawn) -> Record:
    """Return the record of one run; what goes wrong is part of it."""
    return recorded(drawn, job.run, delta=job.options["delta"])


class _Store:
    """Holds the clients of all seeds, or those of the last one."""

    def __init__(self, population: Population | Callable[[int], Population]) -> None:
        if not (isinstance(population, Population) or callable(population)):
            raise InputError(
                "Expected a population, or a function that returns that of a seed, got "
                f"{shown(population)}."
            )
        self._given = population
        self._key: int | None = None
        self._drawn: Drawn | None = None
        self._size = 0

    def get(self, seed: int) -> Drawn:
        """Return the clients of a seed."""
        if self._drawn is None or self.key(seed) != self._key:
            self._drawn = None  # Two populations at a time may be more than fits.
            self._drawn, self._key = draw(lambda: self._made(seed)), self.key(seed)
        return self._drawn

    def key(self, seed: int) -> int | None:
        """Return what is equal for seeds that have the same clients."""
        return None if isinstance(self._given, Population) else seed

    def num_clients(self, seed: int) -> int:
        """Return how many clients there are, for every seed."""
        drawn = self.get(seed)
        if drawn.population is None:
            raise InputError(drawn.error)
        self._size = drawn.population.num_clients
        return self._size

    def _made(self, seed: int) -> Population:
        if isinstance(self._given, Population):
            return self._given
        population = self._given(seed)
        if not isinstance(population, Population):
            raise InputError(f"Expected a population of seed {seed}, got {shown(population)}.")
        if self._size not in (0, population.num_clients):
            raise InputError(
                f"Expected {self._size:,} clients for every seed, got {population.num_clients:,} "
                f"for seed {seed}."
            )
        return population


def _run(
    cells: Sequence[ObjectCell], store: _Store, listener: Callbacks, workers: int, ray_address: str
) -> dict[str, Record]:
    """Return the records of all cells by their ids."""
    # Cells of one population follow each other, so that it is drawn once.
    order = {seed: number for number, seed in enumerate(dict.fromkeys(c.seed for c in cells))}
    ordered = sorted(cells, key=lambda cell: order[cell.seed])
    listener.start(Work(noun="cells", total=len(ordered)))
    finished: Iterator[tuple[ObjectCell, Record]]
    if workers > 0 and fits_with_others(store.get(ordered[0].seed).population):
        finished = side_by_side(
            ordered,
            run_job,
            job=lambda cell: cell.job,
            population=lambda cell: store.key(cell.seed),
            draw=lambda cell: store.get(cell.seed),
            listener=listener,
            workers=workers,
            ray_address=ray_address,
        )
    else:
        sharing = {"workers": workers, "ray_address": ray_address}
        finished = _in_turn(ordered, store, listener, sharing)
    records = {}
    for cell, record in finished:
        records[cell.id] = record
        listener.finish(unit_of(cell), FinishedCell(cell, record))
    return records


def _in_turn(
    cells: Sequence[ObjectCell], store: _Store, listener: Callbacks, sharing: dict[str, Any]
) -> Iterator[tuple[ObjectCell, Record]]:
    for cell in cells:
        listener.begin(unit_of(cell))
        job = replace(cell.job, options={**cell.job.options, **sharing})
        yield cell, run_job(job, store.get(cell.seed))
