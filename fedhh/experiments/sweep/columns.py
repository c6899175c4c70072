"""What a sweep's results hold: the settings that tell cells apart, and the columns of numbers.

Nothing here averages; a mean over seeds is one of a single setting only if all settings are keys.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fedhh.experiments.config.labels import short_label, value_text
from fedhh.experiments.config.toml_file import parse_toml
from fedhh.experiments.sweep.axes import SWEEP, Settings, by_path
from fedhh.validation import InputError, did_you_mean, require_choice

EXTRA = "extra"
"""Column of what a cell outside the grid sets; empty for cells of the grid."""

# Fewer values make no line; they are drawn as points next to each other.
FEWEST_VALUES = 3

MOST_LINES, MOST_PANELS = 7, 12
"""Of a figure: more lines cannot be distinguished, more panels cannot be read."""

_BESIDE = "beside_grid"
_ORACLE = "protocol.oracle"


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Which setting goes where.

    Attributes:
        x: The setting along the horizontal axis; empty if no setting is a number.
        by: Settings of which each combination is a line.
        facet: Settings of which each combination is a panel of its own.
    """

    x: str
    by: tuple[str, ...]
    facet: tuple[str, ...] = ()

    @property
    def settings(self) -> list[str]:
        """All settings, which together decide the cell."""
        return [*([self.x] if self.x else []), *self.by, *self.facet]


def choose_layout(
    table: pd.DataFrame,
    axes: Sequence[str],
    *,
    x: str | None = None,
    by: str | None = None,
    facet: Sequence[str] = (),
) -> Layout:
    """Return which setting goes where; settings that follow from others are left out.

    x, by and facet together always decide the cell, so that a mean never is one over settings:
    where ``by`` alone does not, the axes that are left make lines of their own. More than
    `MOST_LINES` lines are shared out among panels, unless ``facet`` says among which.
    """
    grid = table[~table[_BESIDE]]
    varying = [path for path in axes if grid[path].nunique(dropna=False) > 1]
    numeric = [path for path in varying if is_numeric(grid, path)]
    if x is not None:
        require_choice(numeric, x=x)
    if by is not None:
        require_choice(varying, by=by)
        if by == x:
            raise InputError(f"Expected two settings, got x={x!r} and by={by!r}; leave one out.")
    for each in facet:
        require_choice(varying, facet=each)
        if each in (x, by) or facet.count(each) > 1:
            raise InputError(f"Expected {each} in one place, got it in two; leave one out.")
    lines = [
        path
        for path in numeric
        if path not in (by, *facet) and grid[path].nunique() >= FEWEST_VALUES
    ]
    chosen = x or max(lines, key=lambda path: grid[path].nunique(), default="")
    kept = [path for path in (chosen, by, *facet) if path]
    asked = list(kept)
    for path in varying:
        if path not in kept and not follows(grid, kept, path):
            kept.append(path)
    # A setting that all others decide together says nothing new either.
    for path in list(kept):
        others = [other for other in kept if other != path]
        if path not in asked and others and follows(grid, others, path):
            kept = others
    left = tuple(path for path in kept if path != chosen and path not in facet)
    if not facet and chosen:
        facet = _panels(grid, tuple(path for path in left if path != by), left)
    return Layout(
        x=chosen, by=tuple(path for path in left if path not in facet), facet=tuple(facet)
    )


def num_combinations(table: pd.DataFrame, paths: Sequence[str]) -> int:
    """Return how many combinations of some settings there are; 1 of none."""
    return len(table[list(paths)].drop_duplicates()) if paths else 1


def _panels(grid: pd.DataFrame, free: Sequence[str], left: Sequence[str]) -> tuple[str, ...]:
    """Return which of the free settings become panels so that few enough lines are left.

    As few panels as can be; numbers before names, so that what has a name is compared in a panel.
    Nothing if no choice helps, or for one setting of numbers, which is a heat map's.
    """
    if num_combinations(grid, left) <= MOST_LINES or (len(left) == 1 and is_numeric(grid, left[0])):
        return ()
    for size in range(1, len(free) + 1):
        fitting = [
            chosen
            for chosen in itertools.combinations(free, size)
            if num_combinations(grid, chosen) <= MOST_PANELS
            and num_combinations(grid, [p for p in left if p not in chosen]) <= MOST_LINES
        ]
        if fitting:
            return min(
                fitting,
                key=lambda chosen: (
                    num_combinations(grid, chosen),
                    sum(not is_numeric(grid, path) for path in chosen),
                ),
            )
    return ()


def keep_where(table: pd.DataFrame, where: Sequence[str]) -> pd.DataFrame:
    """Return the rows of the grid with some values, and all cells outside it.

    Args:
        table: Results.
        where: ``KEY=VALUE`` each; several values of one key are alternatives.
    """
    wanted: dict[str, set[str]] = {}
    for condition in where:
        path, sign, value = (part.strip() for part in condition.partition("="))
        if not sign:
            raise InputError(f"Expected KEY=VALUE, got where={condition!r}.")
        require_choice(varied_settings(table), where=path)
        values = {_value_key(x): x for x in table[path][~table[_BESIDE]]}
        if _value_key(value) not in values:
            known = ", ".join(value_text(x) for x in values.values())
            raise InputError(f"No cell has {path}={value}; there are {known}.")
        wanted.setdefault(path, set()).add(_value_key(value))
    kept = table[_BESIDE].to_numpy(dtype=bool)
    chosen = ~kept
    for path, keys in wanted.items():
        chosen &= table[path].map(_value_key).isin(keys).to_numpy()
    if not chosen.any():
        raise InputError(f"No cell has {' and '.join(where)}.")
    left: pd.DataFrame = table.loc[chosen | kept]
    return left


def _value_key(value: Any) -> str:
    """Return what a value is found by: 8, 8.0 and "8" are one, and so are 1_000 and "1,000"."""
    text = str(value)
    try:
        return repr(float(text.replace(",", "").replace("_", "")))
    except ValueError:
        return text.lower() if isinstance(value, bool | np.bool_) else text


def varied_settings(table: pd.DataFrame) -> list[str]:
    """Return the columns of settings that differ between a sweep's cells, axes first."""
    columns = [str(column) for column in table.columns]
    return [path for path in columns[: columns.index(_BESIDE)] if path != "cell"]


def varying(table: pd.DataFrame) -> list[str]:
    """Return the settings that differ between some rows of a sweep's results."""
    return [path for path in varied_settings(table) if table[path].nunique(dropna=False) > 1]


def is_numeric(table: pd.DataFrame, path: str) -> bool:
    """Return whether a column holds numbers."""
    return bool(
        pd.api.types.is_numeric_dtype(table[path]) and not pd.api.types.is_bool_dtype(table[path])
    )


def has_numbers(table: pd.DataFrame, metric: str) -> bool:
    """Return whether some row has a column's value."""
    return metric in table and bool(table[metric].notna().any())


def require_numbers(table: pd.DataFrame, metrics: Sequence[str]) -> None:
    """Raise InputError, naming the nearest, unless the results have such columns of numbers."""
    columns = table.columns[list(table.columns).index(_BESIDE) + 1 :].drop("seed")
    numeric = [name for name in columns if is_numeric(table, name) and has_numbers(table, name)]
    for metric in metrics:
        if metric not in numeric:
            known = metric in table and metric != EXTRA
            what = "has no numbers of results" if known else "is unknown"
            raise InputError(f"Metric {metric!r} {what}{did_you_mean(metric, numeric)}")


def with_extras(table: pd.DataFrame, sweep: str) -> pd.DataFrame:
    """Return results with the column `EXTRA`, one text for each of ``sweep.extra``.

    Args:
        table: All results, failed cells included, in the order of the sweep.
        sweep: The sweep's file, which says what each extra sets.
    """
    section = parse_toml(sweep, SWEEP).get(SWEEP, {})
    listed = [dict(by_path(settings)) for settings in section.get("extra", [])]
    paths = varied_settings(table)
    # Lists are settings too, but no keys of a group.
    table = table.assign(
        **{path: table[path].map(_key) for path in paths if table[path].dtype == object}
    )
    seen: Counter[tuple[tuple[str, ...], int]] = Counter()
    keys: list[tuple[tuple[str, ...], int] | None] = []
    rows: dict[tuple[tuple[str, ...], int], dict[str, Any]] = {}
    for record in table.to_dict("records"):
        if not record[_BESIDE]:
            keys.append(None)
            continue
        row = {path: record[path] for path in paths}
        values = tuple(map(str, row.values()))
        # Where whole protocols vary, extras may differ in no column: the next one has a seed again.
        key = values, seen[values, record["seed"]]
        seen[values, record["seed"]] += 1
        keys.append(key)
        rows.setdefault(key, row)
    names = _names(rows, listed, table[~table[_BESIDE]])
    return table.assign(**{EXTRA: ["" if key is None else names[key] for key in keys]})


def _key(value: Any) -> Any:
    return ", ".join(map(str, value)) if isinstance(value, list | np.ndarray) else value


def _names(
    rows: dict[tuple[tuple[str, ...], int], dict[str, Any]],
    listed: Sequence[Settings],
    grid: pd.DataFrame,
) -> dict[tuple[tuple[str, ...], int], str]:
    """Return a text for each extra, no two alike."""
    alike = Counter(values for values, _ in rows)
    names: dict[tuple[tuple[str, ...], int], str] = {}
    used: Counter[str] = Counter()
    for (values, number), row in rows.items():
        candidates = _candidates(row, listed)
        if len(candidates) == alike[values]:
            settings = candidates[number]
        else:
            settings = {path: x for path, x in row.items() if x not in set(grid[path])}
        name = _name(settings)
        used[name] += 1
        names[values, number] = name if used[name] == 1 else f"{name} ({used[name]})"
    return names


def _candidates(row: dict[str, Any], listed: Sequence[Settings]) -> list[Settings]:
    """Return the extras that a row may be of: those that set most of what it has."""
    # "auto" stands for a number that the file does not state.
    fitting = [
        settings
        for settings in listed
        if all(row.get(path, x) == x or x == "auto" for path, x in settings.items())
    ]
    shared = [sum(path in row for path in settings) for settings in fitting]
    return [
        settings for settings, count in zip(fitting, shared, strict=True) if count == max(shared)
    ]


def _name(settings: Settings) -> str:
    parts = [
        "no LDP (true counts)"
        if (path, value) == (_ORACLE, "none")
        else f"{short_label(path)} {value_text(value)}"
        for path, value in settings.items()
    ]
    return ", ".join(parts) or "outside the grid"


def follows(table: pd.DataFrame, others: Sequence[str], path: str) -> bool:
    """Return whether the values of some settings decide another one's."""
    if not others:
        return False
    return bool((table.groupby(list(others), dropna=False)[path].nunique(dropna=False) == 1).all())
