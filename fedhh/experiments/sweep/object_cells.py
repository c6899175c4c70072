"""Cells of a sweep over objects: what runs in each, made from axes and checked before it runs."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import numpy as np

from fedhh.clients.population import Population
from fedhh.experiments.run.arguments import require_protocol
from fedhh.experiments.run.calendar import check_devices
from fedhh.experiments.run.equal_privacy import at_central_epsilon
from fedhh.experiments.run.result import RunResult
from fedhh.experiments.run.run import simulate
from fedhh.experiments.sweep.axes import PROTOCOL, Settings
from fedhh.experiments.sweep.central_target import (
    TARGETS,
    check_one_target,
    require_epsilon_of,
    target_of,
)
from fedhh.experiments.sweep.totals import COHORT, TOTAL, Asked, cohort_of
from fedhh.protocol import DiscoveryProtocol
from fedhh.settings import alternatives, config_path, settings_of
from fedhh.simulation.fidelity import Fidelity
from fedhh.validation import InputError, did_you_mean, shown

ORIGIN = "sweep_over"
_SEED = "seed"
_NO_FIELDS = (TOTAL, *TARGETS)
_SECTIONS = ("population", PROTOCOL, "privacy")
"""Of a configuration, in its order: columns stand as in the results of one."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run: all that a worker needs besides the population.

    Attributes:
        protocol: The settings.
        seed: The run's seed.
        options: Further arguments of `simulate`.
    """

    protocol: DiscoveryProtocol
    seed: int
    options: dict[str, Any]

    def run(self, population: Population) -> RunResult:
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
        beside_grid: Never; cells of a configuration may stand outside the grid.
    """

    job: Job
    asked: Asked
    settled: DiscoveryProtocol
    label: str
    varied: Settings
    beside_grid: bool = field(default=False, init=False)

    @property
    def seed(self) -> int:
        return self.job.seed

    @property
    def id(self) -> str:
        """Hexadecimal hash of the settings and the seed."""
        content = repr((self.settled, self.seed, sorted(self.job.options.items())))
        return hashlib.sha256(content.encode()).hexdigest()[:16]


def listed_protocols(protocols: Any) -> dict[str, DiscoveryProtocol]:
    """Return the protocols by label; the label of one alone is empty."""
    listed = dict(protocols) if isinstance(protocols, Mapping) else {"": protocols}
    if not listed:
        raise InputError("Expected a protocol, or several by label, got none.")
    for label, protocol in listed.items():
        require_protocol(protocol)
        if not (isinstance(label, str) and bool(label) == isinstance(protocols, Mapping)):
            raise InputError(f"Expected protocols by label, got the label {shown(label)}.")
    return listed


def listed_seeds(seeds: Any) -> list[int]:
    """Return the seeds of a number of them, or those given."""
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


def listed_axes(
    axes: Mapping[str, Iterable[Any]], listed: Mapping[str, DiscoveryProtocol]
) -> dict[str, list[Any]]:
    """Return each axis's values; every protocol has the field that it names."""
    values = {name: _values(name, each) for name, each in axes.items()}
    for name in axes:
        for protocol in listed.values():
            known = [
                *(f for f, a in settings_of(type(protocol)).items() if config_path(a) != _SEED),
                *_NO_FIELDS,
            ]
            if name not in known:
                cure = "; give seeds" if name in (_SEED, "hash_seed") else did_you_mean(name, known)
                raise InputError(f"Unknown axis {name!r} of {protocol.title}{cure}")
    check_one_target(list(axes), ORIGIN)
    if TOTAL in axes and COHORT in axes:
        raise InputError(f"Axis {TOTAL} sets {COHORT}; vary one of the two.")
    return values


def make_cells(
    listed: Mapping[str, DiscoveryProtocol],
    axes: Mapping[str, Sequence[Any]],
    seeds: Sequence[int],
    num_clients: int,
    options: dict[str, Any],
) -> list[ObjectCell]:
    """Return all cells, every one of them checked, in the order of the grid."""
    cells: list[ObjectCell] = []
    if "adversary" in options:
        num_clients += sum(options["adversary"].fakes(num_clients))
    for label, protocol in listed.items():
        for values in itertools.product(*axes.values()):
            chosen = dict(zip(axes, values, strict=True))
            named = {PROTOCOL: label} if label else {}
            where = ", ".join(f"{name}={shown(x)}" for name, x in {**named, **chosen}.items())
            try:
                changed = _changed(protocol, chosen)
                if target := target_of(chosen):
                    changed = at_central_epsilon(
                        changed,
                        num_clients,
                        unit=TARGETS[next(iter(target))],
                        epsilon=require_epsilon_of(target),
                        delta=options["delta"],
                        devices=options.get("devices"),
                    )
                settled = [changed.settle(num_clients=num_clients, seed=seed) for seed in seeds]
                (options["fidelity"] or Fidelity()).check(settled[0])
                check_devices(options.get("devices"), settled[0].plan)
            except InputError as error:
                raise InputError(f"{ORIGIN}, {where or 'the protocol'}: {error}") from None
            cells += [
                ObjectCell(
                    job=Job(protocol=changed, seed=seed, options=options),
                    asked=Asked.of(
                        each,
                        label=label,
                        shared=(*map(repr, values), seed),
                    ),
                    settled=each,
                    label=label,
                    varied=named
                    | {path_of(n, changed): _at(changed, n, x) for n, x in chosen.items()},
                )
                for seed, each in zip(seeds, settled, strict=True)
            ]
    seen: set[str] = set()
    for cell in cells:
        if cell.id in seen:
            raise InputError(f"{ORIGIN}: {cell.varied} repeats a cell; leave it out.")
        seen.add(cell.id)
    return cells if any(listed) else _with_decided(cells)


def _changed(protocol: DiscoveryProtocol, chosen: Settings) -> DiscoveryProtocol:
    """Return a protocol with some fields changed."""
    settings: Any = protocol
    fields = {
        name: _of_kind(value, settings_of(type(protocol))[name])
        for name, value in chosen.items()
        if name not in _NO_FIELDS
    }
    changed: Any = replace(settings, **fields)
    if TOTAL in chosen:
        changed = replace(changed, **{COHORT: cohort_of(changed, chosen[TOTAL])})
    made: DiscoveryProtocol = changed
    return made


def _of_kind(value: Any, annotation: Any) -> Any:
    """Return a whole number as floating point where a field is, as a configuration has it."""
    kinds = [(get_args(member) or (member,))[0] for member in alternatives(annotation)]
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if is_whole and float in kinds and int not in kinds else value


def _at(protocol: DiscoveryProtocol, name: str, value: Any) -> Any:
    return value if name in _NO_FIELDS else getattr(protocol, name)


def path_of(name: str, protocol: DiscoveryProtocol) -> str:
    """Return where a configuration keeps a field."""
    if name in _NO_FIELDS:
        return name
    return config_path(settings_of(type(protocol))[name]) or f"{PROTOCOL}.{name}"


def _with_decided(cells: Sequence[ObjectCell]) -> list[ObjectCell]:
    """Return the cells with those values, too, that "auto" decides differently among them."""
    dumps = [
        {path_of(name, each): getattr(each, name) for name in settings_of(type(each))}
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
