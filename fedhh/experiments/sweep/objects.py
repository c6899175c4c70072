"""Sweeps over objects: protocols and a population made in Python, axes as a mapping."""

from __future__ import annotations

import hashlib
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import numpy as np
import pandas as pd

from fedhh.clients.populations.population import Population
from fedhh.experiments.config.fidelity import Fidelity
from fedhh.experiments.run.privacy import DEFAULT_ALPHA, DEFAULT_DELTA
from fedhh.experiments.run.result import MetricSettings, RunResult
from fedhh.experiments.run.run import check_cluster, simulate
from fedhh.experiments.sweep import directory as results
from fedhh.experiments.sweep.axes import PROTOCOL, Settings
from fedhh.experiments.sweep.directory import Record
from fedhh.experiments.sweep.execution import (
    Drawn,
    Listener,
    ProgressLines,
    Silence,
    draw,
    fits_beside_others,
    recorded,
    side_by_side,
)
from fedhh.experiments.sweep.totals import (
    COHORT,
    TOTAL,
    Asked,
    check_equal,
    cohort_of,
    total_line,
)
from fedhh.protocol import AnyProtocol, DiscoveryProtocol
from fedhh.settings import AUTO, alternatives, config_path, settings_of
from fedhh.validation import InputError, did_you_mean, shown

_ORIGIN = "sweep_over"
_SEED = "seed"
_SECTIONS = ("population", PROTOCOL, "privacy")
"""Of a configuration, in its order: columns stand as in the results of one."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run: all that a worker needs beside the population.

    Attributes:
        protocol: The settings.
        seed: The run's seed.
        options: Further arguments of `simulate`.
    """

    protocol: AnyProtocol
    seed: int
    options: dict[str, Any]

    def run(self, population: Population) -> RunResult:
        """Return the run's result."""
        return simulate(self.protocol, population, seed=self.seed, **self.options)


@dataclass(frozen=True, kw_only=True)
class ObjectCell:
    """A protocol with one seed.

    Attributes:
        job: What runs.
        asked: What it asks of the clients.
        settled: The protocol, every "auto" decided.
        label: What the sweep calls the protocol; empty if there is one alone.
        varied: The values that differ between cells, by path.
        beside_grid: Never; cells of a configuration may stand beside the grid.
    """

    job: Job
    asked: Asked
    settled: AnyProtocol
    label: str
    varied: Settings
    beside_grid: bool = field(default=False, init=False)

    @property
    def seed(self) -> int:
        """The run's seed."""
        return self.job.seed

    @property
    def id(self) -> str:
        """Hexadecimal hash of the settings and the seed."""
        content = repr((self.settled, self.seed, sorted(self.job.options.items())))
        return hashlib.sha256(content.encode()).hexdigest()[:16]


def sweep_over(
    protocols: AnyProtocol | Mapping[str, AnyProtocol],
    population: Population | Callable[[int], Population],
    *,
    axes: Mapping[str, Iterable[Any]] | None = None,
    seeds: int | Iterable[int] = 1,
    workers: int = 0,
    ray_address: str = "",
    fidelity: Fidelity | None = None,
    settings: MetricSettings | None = None,
    delta: float = DEFAULT_DELTA,
    alpha: float = DEFAULT_ALPHA,
    unequal_clients: bool = False,
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
        seeds: How many, from 0; or which.
        workers: Runs side by side on Ray; 0 for one after the other in this process. Populations
            that are not held in memory are shared among the workers instead, run by run.
        ray_address: ``HOST:PORT`` of a running Ray cluster, or ``auto`` for this machine's; a
            local Ray if empty.
        fidelity: How faithfully to simulate clients; every report if None.
        settings: What to measure against.
        delta: Of central guarantees.
        alpha: Of approximate k-anonymity.
        unequal_clients: Let protocols whose ``clients_per_layer`` is set ask different numbers of
            clients in all.
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
    listed = _listed(protocols)
    store = _Store(population)
    numbers = _seeds(seeds)
    options = {
        "fidelity": fidelity, "settings": settings, "delta": delta, "alpha": alpha,
    }  # fmt: skip
    check_cluster(workers, ray_address)
    values = {name: _values(name, each) for name, each in (axes or {}).items()}
    _check_axes(values, listed)
    cells = _cells(listed, values, numbers, store.num_clients(numbers[0]), options)
    paths = [_path(name, next(iter(listed.values()))) for name in values]
    several = len(listed) > 1
    asked = [cell.asked for cell in cells]
    if several and not unequal_clients:
        check_equal(asked, _ORIGIN, meant="unequal_clients=True")
    description = {
        "schema_version": results.SCHEMA_VERSION,
        "title": title,
        "axes": [*([PROTOCOL] if isinstance(protocols, Mapping) else []), *paths],
        "best": "coverage",
        "clients": total_line(asked, protocols=several),
        "sweep": "",
    }
    listener: Listener[ObjectCell] = Silence()
    if progress:
        listener = ProgressLines()
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
        self._seed: int | None = None
        self._drawn: Drawn | None = None
        self._size = 0

    def get(self, seed: int) -> Drawn:
        """Return the clients of a seed."""
        is_other = seed != self._seed and not isinstance(self._given, Population)
        if self._drawn is None or is_other:
            self._drawn = None  # Two populations at a time may be more than fits.
            self._drawn, self._seed = draw(lambda: self._made(seed)), seed
        return self._drawn

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


def _listed(protocols: Any) -> dict[str, AnyProtocol]:
    """Return the protocols by label; the label of one alone is empty."""
    listed = dict(protocols) if isinstance(protocols, Mapping) else {"": protocols}
    if not listed:
        raise InputError("Expected a protocol, or several by label, got none.")
    for label, protocol in listed.items():
        named = isinstance(label, str) and bool(label) == isinstance(protocols, Mapping)
        if not (named and isinstance(protocol, DiscoveryProtocol)):
            raise InputError(
                "Expected a protocol such as fedhh.LdpTrieHH(...), or several by label, got "
                f"{shown(label)}: {shown(protocol)}."
            )
    return listed


def _seeds(seeds: Any) -> list[int]:
    is_count = isinstance(seeds, int) and not isinstance(seeds, bool)
    listed = [_plain(x) for x in (range(max(seeds, 0)) if is_count else seeds)]
    whole = all(isinstance(x, int) and not isinstance(x, bool) and x >= 0 for x in listed)
    if not (listed and whole) or len(set(listed)) < len(listed):
        raise InputError(
            f"Expected seeds as a number of at least 1 or as different integers >= 0, got "
            f"seeds={shown(seeds)}."
        )
    return listed


def _values(name: str, values: Any) -> list[Any]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InputError(f"Expected axis {name} as a list of values, got {shown(values)}.")
    listed = [_plain(x) for x in values]
    if not listed:
        raise InputError(f"Expected axis {name} as a list of values, got none.")
    return listed


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _check_axes(axes: Mapping[str, Sequence[Any]], listed: Mapping[str, AnyProtocol]) -> None:
    """Raise InputError unless every protocol has the field that an axis names."""
    for name in axes:
        for protocol in listed.values():
            known = [
                *(f for f, a in settings_of(type(protocol)).items() if config_path(a) != _SEED),
                TOTAL,
            ]
            if name not in known:
                cure = "; give seeds" if name in (_SEED, "hash_seed") else did_you_mean(name, known)
                raise InputError(f"Unknown axis {name!r} of {protocol.title}{cure}")
    if TOTAL in axes and COHORT in axes:
        raise InputError(f"Axis {TOTAL} sets {COHORT}; vary one of the two.")


def _cells(
    listed: Mapping[str, AnyProtocol],
    axes: Mapping[str, Sequence[Any]],
    seeds: Sequence[int],
    num_clients: int,
    options: dict[str, Any],
) -> list[ObjectCell]:
    """Return all cells, every one of them checked, in the order of the grid."""
    cells: list[ObjectCell] = []
    for label, protocol in listed.items():
        for values in itertools.product(*axes.values()):
            chosen = dict(zip(axes, values, strict=True))
            named = {PROTOCOL: label} if label else {}
            where = ", ".join(f"{name}={shown(x)}" for name, x in {**named, **chosen}.items())
            try:
                changed = _changed(protocol, chosen)
                settled = [changed.settle(num_clients=num_clients, seed=seed) for seed in seeds]
                (options["fidelity"] or Fidelity()).check(settled[0])
            except InputError as error:
                raise InputError(f"{_ORIGIN}, {where or 'the protocol'}: {error}") from None
            cells += [
                ObjectCell(
                    job=Job(protocol=changed, seed=seed, options=options),
                    asked=Asked.of(
                        each,
                        label=label,
                        is_set=getattr(changed, COHORT, AUTO) != AUTO,
                        beside=(*map(repr, values), seed),
                    ),
                    settled=each,
                    label=label,
                    varied=named
                    | {_path(n, changed): _at(changed, n, x) for n, x in chosen.items()},
                )
                for seed, each in zip(seeds, settled, strict=True)
            ]
    seen: set[str] = set()
    for cell in cells:
        if cell.id in seen:
            raise InputError(f"{_ORIGIN}: {cell.varied} repeats a cell; leave it out.")
        seen.add(cell.id)
    return cells if any(listed) else _with_decided(cells)


def _changed(protocol: AnyProtocol, chosen: Settings) -> AnyProtocol:
    """Return a protocol with some fields changed."""
    settings: Any = protocol
    fields = {
        name: _of_kind(value, settings_of(type(protocol))[name])
        for name, value in chosen.items()
        if name != TOTAL
    }
    changed: Any = replace(settings, **fields)
    if TOTAL in chosen:
        changed = replace(changed, **{COHORT: cohort_of(changed, chosen[TOTAL])})
    made: AnyProtocol = changed
    return made


def _of_kind(value: Any, annotation: Any) -> Any:
    """Return a whole number as floating point where a field is, as a configuration has it."""
    kinds = [(get_args(member) or (member,))[0] for member in alternatives(annotation)]
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if is_whole and float in kinds and int not in kinds else value


def _at(protocol: AnyProtocol, name: str, value: Any) -> Any:
    return value if name == TOTAL else getattr(protocol, name)


def _path(name: str, protocol: AnyProtocol) -> str:
    """Return where a configuration keeps a field."""
    if name == TOTAL:
        return TOTAL
    return config_path(settings_of(type(protocol))[name]) or f"{PROTOCOL}.{name}"


def _with_decided(cells: Sequence[ObjectCell]) -> list[ObjectCell]:
    """Return the cells with those values, too, that "auto" decides differently among them."""
    dumps = [
        {_path(name, each): getattr(each, name) for name in settings_of(type(each))}
        for each in (cell.settled for cell in cells)
    ]
    differ = [
        path
        for path in dumps[0]
        if path != _SEED and len({repr(dump.get(path)) for dump in dumps}) > 1
    ]
    differ.sort(key=lambda path: _SECTIONS.index(path.partition(".")[0]))
    return [
        replace(cell, varied={**cell.varied, **{path: dump[path] for path in differ}})
        for cell, dump in zip(cells, dumps, strict=True)
    ]


def _run(
    cells: Sequence[ObjectCell],
    store: _Store,
    listener: Listener[ObjectCell],
    workers: int,
    ray_address: str,
) -> dict[str, Record]:
    """Return the records of all cells by their ids."""
    # Cells of one population follow each other, so that it is drawn once.
    order = {seed: number for number, seed in enumerate(dict.fromkeys(c.seed for c in cells))}
    ordered = sorted(cells, key=lambda cell: order[cell.seed])
    listener.start(ordered, 0)
    finished: Iterator[tuple[ObjectCell, Record]]
    if workers > 0 and fits_beside_others(store.get(ordered[0].seed).population):
        finished = side_by_side(
            ordered,
            run_job,
            job=lambda cell: cell.job,
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
        listener.finish(cell, record)
    return records


def _in_turn(
    cells: Sequence[ObjectCell],
    store: _Store,
    listener: Listener[ObjectCell],
    sharing: dict[str, Any],
) -> Iterator[tuple[ObjectCell, Record]]:
    for cell in cells:
        listener.begin(cell)
        job = replace(cell.job, options={**cell.job.options, **sharing})
        yield cell, run_job(job, store.get(cell.seed))
