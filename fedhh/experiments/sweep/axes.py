"""`[sweep]`: what varies, as axes of values by path."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import tomli_w
from pydantic import BaseModel, Field

from fedhh.experiments.config.schema import Config
from fedhh.experiments.config.section import (
    Section,
    known_sections,
    section_class,
    table_in,
)
from fedhh.experiments.config.toml_file import literal
from fedhh.experiments.sweep.central_target import TARGETS, check_one_target
from fedhh.experiments.sweep.totals import COHORT, TOTAL
from fedhh.settings import Count
from fedhh.validation import InputError, did_you_mean

Settings = dict[str, Any]
"""Values by path, such as ``{"protocol.eta_max": 500}``."""

SWEEP = "sweep"

PROTOCOL = "protocol"
"""The axis of `SweepSection.protocols`; its values are their labels."""

NO_RESULT = ("execution", "output")
"""Sections that change no result."""

NO_AXES = (*NO_RESULT, "seed", "baseline", SWEEP)
"""What cannot be an axis; seeds have a key of their own."""

NO_KEYS = (TOTAL, *TARGETS)
"""Axes that are no keys of a configuration, but decide some."""

_LARGEST_AXIS = 10_000


class SweepSection(Section):
    """What varies.

    Attributes:
        title: Heading of tables and figures.
        seeds: Every cell runs with so many seeds: ``seed``, ``seed + 1``, ...
        protocols: An axis of whole protocols: a table of `[protocol]` settings for each label. A
            table with the name of the base's protocol changes it; another one keeps of the base
            what a client contributes and by what rule words are returned
            (`section.SHARED_SETTINGS`).
        axes: Values by path, all combined with one another: a list, or ``{from, to, step}``.
        linked: Groups of axes that go together: lists of one length, taken row by row.
        extra: Cells outside the grid: settings on top of the base alone.
        skip: Names of `SKIP_RULES` that may leave out cells.
        best: The metric that the live table and the summary rank by.
    """

    title: str = ""
    seeds: Count = 1
    protocols: dict[str, dict[str, Any]] = Field(default_factory=dict)
    axes: dict[str, Any] = Field(default_factory=dict)
    linked: list[dict[str, Any]] = Field(default_factory=list)
    extra: list[dict[str, Any]] = Field(default_factory=list)
    skip: list[str] = Field(default_factory=list)
    best: str = "coverage"


Axis = tuple[tuple[str, ...], list[tuple[Any, ...]]]
"""Paths that vary together, and the rows of their values."""


def axes_of(section: SweepSection, origin: str, *, protocols: Sequence[str] = ()) -> list[Axis]:
    """Return the independent axes, then the linked groups.

    Args:
        section: What varies.
        origin: Names the sweep in errors.
        protocols: Protocols of the sweep that have no name without a file: an axis may be a key of
            theirs.
    """
    axes: list[Axis] = []
    if section.protocols:
        axes.append(((PROTOCOL,), [(label,) for label in section.protocols]))
    for path, values in by_path(section.axes):
        axes.append(((path,), [(value,) for value in _values(path, values, origin)]))
    for number, group in enumerate(section.linked, start=1):
        columns = {path: _values(path, values, origin) for path, values in by_path(group)}
        sizes = {len(values) for values in columns.values()}
        if len(sizes) != 1:
            lengths = ", ".join(f"{path} has {len(values)}" for path, values in columns.items())
            raise InputError(
                f"{origin}: sweep.linked group {number}: expected lists of one length, got "
                f"{lengths or 'no axis'}."
            )
        axes.append((tuple(columns), list(zip(*columns.values(), strict=True))))
    paths = [path for group in axes for path in group[0]]
    for path in paths:
        if paths.count(path) > 1:
            raise InputError(f"{origin}: sweep varies {path} twice; keep one of its axes.")
    for settings in section.extra:
        paths.extend(path for path, _ in by_path(settings))
    for path in paths:
        if path not in NO_KEYS and (path != PROTOCOL or not section.protocols):
            _check_path(path, origin, protocols)
    check_one_target(paths, origin)
    if TOTAL in paths and f"{PROTOCOL}.{COHORT}" in paths:
        raise InputError(f"{origin}: {TOTAL} sets protocol.{COHORT}; vary one of the two.")
    return axes


def combinations(axes: list[Axis]) -> Iterator[Settings]:
    """Yield the settings of every cell of the grid, in the order of the file."""
    for rows in itertools.product(*(values for _, values in axes)):
        yield {
            path: value
            for (paths, _), row in zip(axes, rows, strict=True)
            for path, value in zip(paths, row, strict=True)
        }


def by_path(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield values by path; both ``"a.b" = [1]`` and ``a.b = [1]`` in TOML give ``a.b``."""
    for key, value in table.items():
        path = f"{prefix}{key}"
        if isinstance(value, dict) and "from" not in value:
            yield from by_path(value, f"{path}.")
        else:
            yield path, value


def in_written_order(content: dict[str, Any], origin: str) -> dict[str, Any]:
    """Return `[sweep]` so that its axes keep their order when they are written as TOML.

    A writer puts tables behind plain values. Axes that this would move, such as a range before a
    list, become lists by path; all others stay as they are.
    """

    def ordered(axes: dict[str, Any]) -> dict[str, Any]:
        paths = [path for path, _ in by_path(axes)]
        if paths == [path for path, _ in by_path(tomllib.loads(tomli_w.dumps(axes)))]:
            return axes
        return {path: _values(path, values, origin) for path, values in by_path(axes)}

    kept = dict(content)
    if "axes" in kept:
        kept["axes"] = ordered(kept["axes"])
    if "linked" in kept:
        kept["linked"] = [ordered(group) for group in kept["linked"]]
    return kept


def _values(path: str, values: Any, origin: str) -> list[Any]:
    if isinstance(values, dict):
        values = _range(path, values, origin)
    if not isinstance(values, list) or not values:
        raise InputError(
            f"{origin}: sweep axis {path} = {literal(values)}: expected a list of values or "
            "{from = 1, to = 12, step = 1}."
        )
    return values


def _range(path: str, parts: dict[str, Any], origin: str) -> list[Any]:
    """Return from, from + step, ... up to and including ``to``; decimal, so that 0.1 stays 0.1."""
    numbers = [parts.get(key) for key in ("from", "to", "step")]
    if set(parts) == {"from", "to", "step"} and all(
        isinstance(x, int | float) and not isinstance(x, bool) for x in numbers
    ):
        first, last, step = (Decimal(str(x)) for x in numbers)
        finite = all(x.is_finite() for x in (first, last, step))
        if finite and step > 0 and first <= last:
            count = int((last - first) / step) + 1
            if count <= _LARGEST_AXIS:
                whole = all(isinstance(x, int) for x in numbers)
                exact = [first + i * step for i in range(count)]
                return [int(x) if whole else float(x) for x in exact]
    raise InputError(
        f"{origin}: sweep axis {path} = {literal(parts)}: expected finite numbers "
        f"from <= to and step > 0 that give at most {_LARGEST_AXIS:,} values."
    )


def _check_path(path: str, origin: str, protocols: Sequence[str]) -> None:
    """Raise InputError unless a path names a key that makes the result."""
    first, *_ = path.split(".")
    if first in NO_AXES:
        cure = "set sweep.seeds" if first == "seed" else "it changes no result"
        raise InputError(f"{origin}: {path} cannot be a sweep axis; {cure}.")
    if (target := path.removeprefix("privacy.")) != path and target in TARGETS:
        raise InputError(f"{origin}: {path} is varied by the axis {target}; name it so.")
    if first == PROTOCOL:
        _check_protocol_path(path, origin, protocols)
        return
    section: Any = Config
    known = [*(name for name in Config.model_fields if name not in NO_AXES), *NO_KEYS]
    for key in path.split("."):
        if not (isinstance(section, type) and issubclass(section, BaseModel)):
            raise InputError(f"{origin}: sweep axis {path} goes below a value.")
        if key not in section.model_fields:
            names = known if section is Config else list(section.model_fields)
            raise InputError(f"{origin}: unknown sweep axis {path}{did_you_mean(key, names)}")
        section = table_in(section.model_fields[key].annotation)
    if isinstance(section, type) and issubclass(section, BaseModel):
        raise InputError(f"{origin}: sweep axis {path} is a table; vary one of its keys.")


def _check_protocol_path(path: str, origin: str, protocols: Sequence[str]) -> None:
    """Raise InputError unless some protocol has the key; whether a cell's has is checked there."""
    sections = [*known_sections().values(), *(section_class(name) for name in protocols)]
    keys = {key for section in sections for key in section.model_fields}
    if path == PROTOCOL:
        raise InputError(
            f"{origin}: sweep axis {path} is a table; vary one of its keys, or list whole "
            "protocols in [sweep.protocols]."
        )
    key, *below = path.removeprefix(f"{PROTOCOL}.").split(".")
    if key in keys and below:
        raise InputError(f"{origin}: sweep axis {path} goes below a value.")
    if key not in keys:
        raise InputError(f"{origin}: unknown sweep axis {path}{did_you_mean(key, keys)}")
