"""A sweep's file: a base configuration and `[sweep]`, which says what varies.

All cells are made and checked here, before the first one runs.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import tomli_w
from pydantic import ValidationError

from fedhh.experiments.config.load import explain, parse_config, put_settings
from fedhh.experiments.config.population import check_known, check_population, says_its_size
from fedhh.experiments.config.protocol import build_protocol, settle
from fedhh.experiments.config.schema import Config
from fedhh.experiments.config.section import DEFAULT_PROTOCOL, switch_protocol
from fedhh.experiments.config.toml_file import literal
from fedhh.experiments.run.equal_privacy import OutOfReachError
from fedhh.experiments.study.callbacks import Callbacks
from fedhh.experiments.study.request import Request
from fedhh.experiments.study.source import load_source
from fedhh.experiments.sweep.axes import (
    NO_AXES,
    NO_KEYS,
    NO_RESULT,
    PROTOCOL,
    SWEEP,
    Axis,
    Settings,
    SweepSection,
    axes_of,
    by_path,
    combinations,
    in_written_order,
)
from fedhh.experiments.sweep.central_target import Choices, target_of, without_effect
from fedhh.experiments.sweep.totals import COHORT, TOTAL, Asked, cohort_of, total_line
from fedhh.validation import InputError, did_you_mean

SKIP_RULES = {
    "too-few-clients": "the population has fewer clients than the cohorts need",
    "out-of-reach": "no settings of the protocol have the central epsilon",
    "duplicate": "an earlier cell has the same configuration",
}
"""Reasons for which a sweep may leave out cells; without the rule they are errors."""

NAMES_PROTOCOLS = {PROTOCOL, f"{PROTOCOL}.name"}
"""Paths whose values are names of protocols."""
_SOURCE = "population.source"

MOST_CELLS = 10_000
"""Settings times seeds; each is checked before the first one runs."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One configuration of a sweep with one seed.

    Attributes:
        config: Everything resolved, cohorts included; its ``result_key`` names the cell.
        varied: The values that differ between the sweep's cells, by path.
        protocol: Label of the protocol, in a sweep that lists protocols.
        beside_grid: Whether the cell is one of ``sweep.extra``.
        skipped: Name of the rule that leaves the cell out; empty for cells that run.
        why: What the rule found.
        total: Its value of the axis `totals.TOTAL`; None without one.
        target: Its value of an axis of `central_target.TARGETS`, by the axis.
        asked: What it asks of the clients; None where that is not known yet.
    """

    config: Config
    varied: Settings
    protocol: str = ""
    beside_grid: bool = False
    skipped: str = ""
    why: str = ""
    total: int | None = None
    target: Settings = field(default_factory=dict)
    asked: Asked | None = None

    @property
    def seed(self) -> int:
        return self.config.seed

    @property
    def id(self) -> str:
        """Hexadecimal hash of everything that makes the cell's result, the seed included."""
        return self.config.result_key


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """All cells of a sweep, in the order of its grid, seeds innermost.

    Attributes:
        title: Heading of tables and figures.
        axes: Paths of what the file varies, the seed apart, in its order.
        cells: Every cell, skipped ones too.
        best: The metric to rank by.
        table: The file's content, with all changes applied, its axes in an order that a file keeps.
    """

    title: str
    axes: tuple[str, ...]
    cells: tuple[Cell, ...]
    best: str
    table: dict[str, Any]

    @property
    def to_run(self) -> list[Cell]:
        """The cells that no rule skips."""
        return [cell for cell in self.cells if not cell.skipped]

    @property
    def clients_line(self) -> str:
        """How many clients the cells ask in all, as a sentence; empty where it is not known."""
        asked = [cell.asked for cell in self.to_run if cell.asked is not None]
        return total_line(asked, protocols=bool(NAMES_PROTOCOLS & set(self.axes)))

    @property
    def key(self) -> str:
        """Hexadecimal hash of all cells: two sweeps with one key are the same sweep."""
        content = [[cell.id, cell.skipped] for cell in self.cells]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]

    def to_toml(self) -> str:
        return tomli_w.dumps(self.table)

    def to_result_toml(self) -> str:
        """Return the part of the file that makes the results."""
        kept = {key: part for key, part in self.table.items() if key not in NO_RESULT}
        return tomli_w.dumps(kept)


def load_sweep_table(
    source: str | Path, *, settings: Sequence[str] = (), data: Path | None = None
) -> tuple[dict[str, Any], str]:
    """Return the content of a preset or a file, see `Request.source`, and its name for errors."""
    request = Request(source=source, settings=settings, data=data)
    found = load_source(request, kind=SWEEP)
    return found.table, found.origin


def drop_populations(table: dict[str, Any]) -> None:
    """Take the axes over populations out of a sweep's table, where a file is to be the clients.

    With an axis over ``population.source`` goes all that is linked with it.
    """
    sweep = _without_axes(table, [_SOURCE])
    if isinstance(sweep.get("linked"), list):
        sweep["linked"] = [
            group
            for group in sweep["linked"]
            if not (isinstance(group, dict) and _SOURCE in dict(by_path(group)))
        ]


def fix_axes(table: dict[str, Any], paths: Sequence[str]) -> None:
    """Take the axes over paths that a command gives a value out of a sweep's table.

    Raises:
        InputError: Such a path is varied together with others.
    """
    sweep = _without_axes(table, paths)
    linked = sweep.get("linked")
    for group in linked if isinstance(linked, list) else ():
        varied = [path for path, _ in by_path(group)] if isinstance(group, dict) else []
        if given := next((path for path in paths if path in varied), ""):
            others = ", ".join(path for path in varied if path != given)
            raise InputError(
                f"Expected no --set {given}, since the sweep varies it together with {others}; "
                "remove it, or change the sweep's file."
            )


def _without_axes(table: dict[str, Any], paths: Sequence[str]) -> dict[str, Any]:
    """Return `[sweep]` of a table, whose axes over some paths are taken out; empty if none."""
    sweep = table.get(SWEEP)
    if not isinstance(sweep, dict):
        return {}
    if isinstance(sweep.get("axes"), dict):
        axes = dict(by_path(sweep["axes"]))
        if not axes.keys().isdisjoint(paths):
            sweep["axes"] = {path: values for path, values in axes.items() if path not in paths}
    return sweep


def parse_sweep(
    table: dict[str, Any],
    origin: str,
    *,
    num_clients: Callable[[Config], int] | None = None,
    callbacks: Callbacks | None = None,
) -> Sweep:
    """Return all cells of a parsed file, every one of them checked.

    Args:
        table: The file's content.
        origin: Names it in errors.
        num_clients: Returns the size of a configuration's population that is in a file; without
            it, cells on whole files keep "auto" cohorts and are not checked for size.
        callbacks: Hear how far it is.

    Raises:
        InputError: One line about the first thing that is wrong, with the cell it is in.
    """
    base = copy.deepcopy(table)
    section = _parse_section(base.pop(SWEEP, None), origin)
    if "baseline" in base:
        raise InputError(
            f"{origin}: [baseline] belongs to fedhh run; list protocols in [sweep.protocols]."
        )
    first_seed = parse_config(base, origin).seed
    axes = axes_of(section, origin, protocols=_unnamed_protocols(base, section))
    _check_number(axes, section, origin)
    cells: list[Cell] = []
    seen: set[str] = set()
    choices = Choices()
    grid = list(combinations(axes))
    extra = [dict(by_path(settings)) for settings in section.extra]
    compared = {path for group in axes for path in group[0] if NAMES_PROTOCOLS & set(group[0])}
    for number, settings in enumerate([*grid, *extra]):
        if callbacks is not None:
            what = "choosing each cell's epsilon" if target_of(settings) else "checking each cell"
            callbacks.phase(what, number, len(grid) + len(extra))
        for seed in range(first_seed, first_seed + section.seeds):
            cell = _cell(
                base,
                {**settings, "seed": seed},
                section,
                origin,
                num_clients,
                compared=compared,
                choices=choices,
            )
            cell = replace(cell, beside_grid=number >= len(grid))
            if not cell.skipped and cell.id in seen:
                cell = _skip(
                    cell, "duplicate", f"{_where(settings)} repeats a cell.", section, origin
                )
            seen.add(cell.id)
            cells.append(cell)
    if all(cell.skipped for cell in cells):
        raise InputError(f"{origin}: every cell is skipped; nothing is left to run.")
    return Sweep(
        title=section.title,
        axes=tuple(dict.fromkeys(path for group in axes for path in group[0])),
        cells=_with_varied(cells, axes),
        best=section.best,
        table={**table, SWEEP: in_written_order(table[SWEEP], origin)},
    )


def _check_number(axes: Sequence[Axis], section: SweepSection, origin: str) -> None:
    settings = math.prod(len(rows) for _, rows in axes) + len(section.extra)
    if settings * section.seeds > MOST_CELLS:
        raise InputError(
            f"{origin}: expected at most {MOST_CELLS:,} cells, settings times seeds, got "
            f"{settings * section.seeds:,}; give fewer sweep.seeds or shorter axes."
        )


def _parse_section(content: Any, origin: str) -> SweepSection:
    if not isinstance(content, dict):
        raise InputError(
            f"{origin}: expected a table [sweep] that says what varies, got none; give the "
            "configuration of one run to fedhh run."
        )
    try:
        section = SweepSection.model_validate(content)
    except ValidationError as error:
        raise InputError(f"{origin}: {explain(error, SweepSection, SWEEP)}") from None
    for rule in section.skip:
        if rule not in SKIP_RULES:
            raise InputError(
                f"{origin}: unknown rule {rule!r} in sweep.skip{did_you_mean(rule, SKIP_RULES)}"
            )
    return section


def _cell(
    base: dict[str, Any],
    settings: Settings,
    section: SweepSection,
    origin: str,
    num_clients: Callable[[Config], int] | None,
    *,
    compared: Container[str],
    choices: Choices,
) -> Cell:
    """Return one checked cell, its cohorts resolved; ``compared`` are axes that name protocols."""
    where = f"{origin}, cell {_where(settings)}"
    table = copy.deepcopy(base)
    try:
        if label := settings.get(PROTOCOL, ""):
            table[PROTOCOL] = listed_protocol(table, section.protocols[label])
        no_keys = (PROTOCOL, *NO_KEYS)
        put_settings(table, {path: x for path, x in settings.items() if path not in no_keys})
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    config = parse_config(table, where)
    total = settings.get(TOTAL)
    try:
        protocol = build_protocol(config)
        if total is not None:
            section_of = config.protocol.changed({COHORT: cohort_of(protocol, total)})
            config = config.model_copy(update={PROTOCOL: section_of})
        check_population(config.population)
        check_known(config.population)
        clients = config.population.clients
        if num_clients is not None and not says_its_size(config.population):
            clients = num_clients(config)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    target = target_of(settings, config.privacy)
    cell = Cell(config=config, varied={}, protocol=label, total=total, target=target)
    if clients is None and not target:
        return cell
    try:
        if target:
            config = choices.chosen(config, clients, target)
        settled, protocol = settle(config, cast(int, clients))
    except OutOfReachError as error:
        return _skip(cell, "out-of-reach", str(error), section, where)
    except InputError as error:
        return _skip(cell, "too-few-clients", str(error), section, where)
    asked = Asked.of(
        protocol,
        label=label,
        shared=_where({path: x for path, x in settings.items() if path not in compared}),
    )
    return replace(cell, config=settled, asked=asked)


def _unnamed_protocols(base: dict[str, Any], section: SweepSection) -> list[str]:
    """Return the protocols that a sweep has from files, by their "module:Class"."""
    tables = [base.get(PROTOCOL, {}), *section.protocols.values()]
    names = [table.get("name") for table in tables]
    for varied in (section.axes, *section.linked, *section.extra):
        for path, values in by_path(varied):
            if path == f"{PROTOCOL}.name":
                names.extend(values if isinstance(values, list) else [values])
    return [name for name in names if isinstance(name, str) and ":" in name]


def _skip(cell: Cell, rule: str, why: str, section: SweepSection, origin: str) -> Cell:
    if rule not in section.skip:
        raise InputError(f'{origin}: {why} Or leave such cells out: sweep.skip = ["{rule}"].')
    return replace(cell, skipped=rule, why=why)


def listed_protocol(base: dict[str, Any], listed: dict[str, Any]) -> dict[str, Any]:
    """Return the `[protocol]` of one of `SweepSection.protocols`."""
    name = listed.get("name", base.get(PROTOCOL, {}).get("name", DEFAULT_PROTOCOL))
    return {**switch_protocol(base.get(PROTOCOL, {}), name), **listed}


def _where(settings: Settings) -> str:
    return ", ".join(f"{path}={literal(value)}" for path, value in settings.items())


LANGUAGE = "population.language"
_BY_LANGUAGE = ("population.known", "population.alphabet", "population.alphabet_source")
"""What a language brings with it."""


def _with_varied(cells: list[Cell], axes: list[Axis]) -> tuple[Cell, ...]:
    """Return the cells with the values that the file varies or that differ between them."""
    dumps = [
        {
            PROTOCOL: cell.protocol,
            TOTAL: cell.total,
            **cell.target,
            **dict(by_path(cell.config.model_dump(mode="json"))),
            **without_effect(cell.config, cell.target),
        }
        for cell in cells
    ]
    paths = [path for group in axes for path in group[0]]
    by_language = _BY_LANGUAGE if LANGUAGE in paths else ()
    for path in dict.fromkeys(path for dump in dumps for path in dump):
        section = path.split(".")[0]
        if section in NO_AXES or path in (*paths, *by_language) or (section == PROTOCOL in paths):
            # Where whole protocols vary, their labels stand for their settings.
            continue
        if len({json.dumps(dump.get(path)) for dump in dumps}) > 1:
            paths.append(path)
    return tuple(
        replace(cell, varied={path: dump.get(path) for path in paths})
        for cell, dump in zip(cells, dumps, strict=True)
    )
