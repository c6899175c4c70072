"""A metric of a sweep as lines over a setting, or as points where no setting makes a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedhh.experiments.config.labels import axis_label
from fedhh.experiments.report.gboard import Published
from fedhh.experiments.report.panels import (
    ROW_LENGTH,
    combination,
    finish,
    label_axes,
    letters,
    open_figure,
    panels_of,
    put_legend,
    scale_x,
    scale_y,
)
from fedhh.experiments.report.style import BLACK, BLUE, GREY, SIZE, STYLE, VERMILION, series
from fedhh.experiments.report.titles import NOTE, letters_wide, name_panel, shown_labels
from fedhh.experiments.sweep.columns import EXTRA, MOST_LINES, Layout, has_numbers
from fedhh.experiments.sweep.intervals import GAIN, SAMPLER, summarize
from fedhh.validation import InputError

# Cells beside the grid: greys, each line with its own dashes.
_GREYS, _GREY_DASHES = (GREY, "#333333", "#ABABAB"), ("--", ":", "-.", (0, (8, 2, 1, 2, 1, 2)))
_REFERENCES = tuple((_GREYS[i % 3], _GREY_DASHES[i % 4]) for i in range(12))
# What others state: hollow marks that no line of a sweep has.
_PUBLISHED = (("*", VERMILION, 13), ("h", BLACK, 9), ("p", NOTE, 7))
_LONGEST_TICK = 36
_TURNED, _ROOM_FOR_TICKS = 0.055, 1.0
"""Inches of height that a letter of a turned tick takes, and that a figure has for them."""
_ALL = "all"
_OURS = "this sweep"
_ASIDE = 0.13
"""By how much marks of others stand aside, of the distance of two points."""


def draw_metric(
    table: pd.DataFrame,
    layout: Layout,
    metric: str,
    *,
    title: str,
    failed: int = 0,
    beside: Sequence[Published] = (),
) -> Figure:
    """Return a figure of a metric's mean and interval over seeds.

    Args:
        table: Results of the grid and of cells beside it.
        layout: Which setting goes where.
        metric: A column of numbers.
        title: What is shown; further lines say of whom.
        failed: How many cells are missing because they failed.
        beside: What others state for the same cells.

    Raises:
        InputError: There are too many lines or panels for one figure.
    """
    with mpl.rc_context(STYLE):
        grid = table[~table["beside_grid"]].assign(**{_ALL: _ALL})
        rows = summarize(grid, layout.settings or [_ALL], metric)
        parts = list(panels_of(rows, layout))
        # One name has one look in all panels.
        names = list(dict.fromkeys(_names(rows, layout)))
        if layout.x and len(names) > MOST_LINES:
            raise InputError(
                f"{len(names)} lines are too many for one figure of {layout.x} (at most "
                f"{MOST_LINES}): one for each combination of {', '.join(layout.by)}; choose "
                "panels with --facet SETTING, cells with --where KEY=VALUE, another --x, or use "
                "fedhh show DIR --table summary."
            )
        figure, panels = open_figure(len(parts), sharex=True, sharey=True)
        seeds = list(rows["seeds"])
        for axes, (label, part) in zip(panels, parts, strict=True):
            unnamed = _OURS if beside else None
            if layout.x:
                _draw_lines(axes, part, layout, names, unnamed=unnamed)
            else:
                _draw_points(axes, part, layout, label=unnamed)
            seeds += _draw_references(axes, _of_panel(table, part, layout), metric)
            _draw_published(axes, part, layout, beside)
            if label:
                name_panel(axes, label)
        if layout.x:
            scale_x(panels, grid[layout.x].unique())
        label_axes(panels, axis_label(layout.x) if layout.x else "", axis_label(metric))
        scale_y(panels, metric)
        put_legend(figure, layout)
        finish(figure, seeds, title, failed)
    return figure


def draw_gains(gains: pd.DataFrame, layout: Layout, *, title: str, failed: int = 0) -> Figure:
    """Return a figure of how much better random sampling is than greedy, paired by seed."""
    others = Layout(
        x=layout.x,
        by=tuple(path for path in layout.by if path != SAMPLER),
        facet=tuple(path for path in layout.facet if path != SAMPLER),
    )
    figure = draw_metric(gains.assign(beside_grid=False), others, GAIN, title=title, failed=failed)
    for axes in figure.axes:
        axes.axhline(0, color=GREY, linewidth=1)
    return figure


def lines_of(rows: pd.DataFrame, layout: Layout) -> list[tuple[str | None, pd.DataFrame]]:
    """Return a label and the rows for each line, in the order of the file."""
    if not layout.by:
        return [(None, rows)]
    parts = [part for _, part in rows.groupby(list(layout.by), sort=False, dropna=False)]
    labels = [combination(part.iloc[0].to_dict(), layout.by) for part in parts]
    # A legend leaves out what begins with an underscore.
    return [
        (f" {label}" if label.startswith("_") else label, part)
        for label, part in zip(labels, parts, strict=True)
    ]


def _names(rows: pd.DataFrame, layout: Layout) -> list[str | None]:
    return [label for label, _ in lines_of(rows, layout)]


def _draw_lines(
    axes: Axes,
    rows: pd.DataFrame,
    layout: Layout,
    names: Sequence[str | None],
    *,
    unnamed: str | None,
) -> None:
    """Draw a line for each combination of settings, with a band for its intervals."""
    for label, part in lines_of(rows, layout):
        ordered = part.sort_values(layout.x)
        look = series(names.index(label), len(names))
        axes.plot(ordered[layout.x], ordered["mean"], label=label or unnamed, **look)
        axes.fill_between(
            ordered[layout.x], ordered["low"], ordered["high"], color=look["color"], alpha=0.18,
            linewidth=0,
        )  # fmt: skip


def _draw_points(axes: Axes, rows: pd.DataFrame, layout: Layout, *, label: str | None) -> None:
    """Draw a point for each combination of settings without an order."""
    names = ["all seeds"]
    if layout.by:
        settings = rows.to_dict("records")
        names = shown_labels((combination(row, layout.by) for row in settings), _LONGEST_TICK)
    error = np.nan_to_num([rows["mean"] - rows["low"], rows["high"] - rows["mean"]])
    axes.errorbar(
        range(len(rows)), rows["mean"], yerr=error, fmt="o", color=BLUE, markersize=6, capsize=4,
        label=label,
    )  # fmt: skip
    broken = [name.replace(", ", "\n") for name in names]
    length = letters([max(name.split("\n"), key=len) for name in broken])
    figure = axes.figure
    assert isinstance(figure, Figure)
    if len(figure.axes) == 1 and (length <= ROW_LENGTH or len(layout.by) > 1):
        axes.set_xticks(range(len(rows)), broken)
        figure.set_size_inches(SIZE[0] * max(1.0, length / ROW_LENGTH), SIZE[1])
    else:
        axes.set_xticks(range(len(rows)), names, rotation=40, ha="right", rotation_mode="anchor")
        if len(figure.axes) == 1:
            needed = _TURNED * max(map(letters_wide, names))
            figure.set_size_inches(SIZE[0], SIZE[1] + max(needed - _ROOM_FOR_TICKS, 0.0))
    axes.set_xlim(-0.6, len(rows) - 0.4)
    axes.grid(visible=False, axis="x")


def _of_panel(table: pd.DataFrame, part: pd.DataFrame, layout: Layout) -> pd.DataFrame:
    """Return the cells beside the grid of a panel; those that belong to none are in all."""
    beside, grid = table[table["beside_grid"]], table[~table["beside_grid"]]
    if beside.empty or not layout.facet:
        return beside
    facet = list(layout.facet)
    own, all_panels = (set(map(tuple, frame[facet].to_numpy().tolist())) for frame in (part, grid))
    kept = [
        key in own or key not in all_panels for key in map(tuple, beside[facet].to_numpy().tolist())
    ]
    return beside[kept]


def _draw_references(axes: Axes, table: pd.DataFrame, metric: str) -> list[int]:
    """Draw cells beside the grid as horizontal lines; return over how many seeds each is."""
    if table.empty or not has_numbers(table, metric):
        return []
    # There is no place for an infinite epsilon.
    finite = table[np.isfinite(table[metric].astype(float))]
    rows = summarize(finite, [EXTRA], metric).to_dict("records")
    if len(rows) > len(_REFERENCES):
        raise InputError(
            f"{len(rows)} lines for cells beside the grid are too many for one figure (at most "
            f"{len(_REFERENCES)}); use fedhh show DIR --table summary, or run a sweep with fewer "
            "sweep.extra."
        )
    for row, (color, dashes) in zip(rows, _REFERENCES, strict=False):
        label = row[EXTRA].replace(" (", "\n(").replace(", ", ",\n")
        axes.axhline(row["mean"], color=color, linestyle=dashes, linewidth=1.5, label=label)
    return [row["seeds"] for row in rows]


def _draw_published(
    axes: Axes, rows: pd.DataFrame, layout: Layout, beside: Sequence[Published]
) -> None:
    """Draw what others state for cells of a panel, where these are on its axis."""
    settings: list[dict[Any, Any]] = rows.to_dict("records")
    for number, (published, look) in enumerate(zip(beside, _PUBLISHED, strict=False), start=1):
        marker, color, size = look
        found = []
        for where, value in published.values:
            if list(where) == [layout.x]:
                x = where[layout.x]
                found += [(x, value)] * bool(rows[layout.x].min() <= x <= rows[layout.x].max())
            elif not layout.x:
                found += [
                    (place + _ASIDE * number, value)
                    for place, row in enumerate(settings)
                    if all(row.get(path) == x for path, x in where.items())
                ]
        if found:
            axes.plot(
                *zip(*sorted(found), strict=True), marker=marker, color=color, markersize=size,
                markerfacecolor="none", linestyle=":" if layout.x and len(found) > 1 else "none",
                linewidth=1, label=published.label.replace(", ", ",\n"), zorder=4,
            )  # fmt: skip
