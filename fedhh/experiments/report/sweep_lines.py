"""A sweep as lines: a metric over a setting, or as points, and coverage by central epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from fedhh.arrays import Floats
from fedhh.experiments.config.labels import axis_label
from fedhh.experiments.report.gboard import Published
from fedhh.experiments.report.panels import (
    LOG_SPAN,
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
from fedhh.experiments.report.style import (
    BLACK,
    BLUE,
    GREY,
    SIZE,
    VERMILION,
    log_scale,
    looks,
    styled,
)
from fedhh.experiments.report.titles import NOTE, letters_wide, name_panel, shown_labels
from fedhh.experiments.sweep.columns import EXTRA, MOST_LINES, Layout, has_numbers
from fedhh.experiments.sweep.intervals import GAIN, SAMPLER, summarize
from fedhh.validation import InputError

# Cells outside the grid: greys, each line with its own dashes.
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
_CENTRAL = "central_epsilon_before_run"
_LOCAL = "privacy.local_epsilon"


@styled
def draw_metric(
    table: pd.DataFrame,
    layout: Layout,
    metric: str,
    *,
    title: str,
    failed: int = 0,
    to_compare: Sequence[Published] = (),
) -> Figure:
    """Return a figure of a metric's mean and interval over seeds."""
    grid = table[~table["beside_grid"]].assign(**{_ALL: _ALL})
    rows = summarize(grid, layout.settings or [_ALL], metric)
    parts = list(panels_of(rows, layout))
    # One name has one look in all panels.
    names = list(dict.fromkeys(label for label, _ in _lines_of(rows, layout)))
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
        unnamed = _OURS if to_compare else None
        if layout.x:
            _draw_lines(axes, part, layout, names, unnamed=unnamed)
        else:
            _draw_points(axes, part, layout, label=unnamed)
        seeds += _draw_references(axes, _of_panel(table, part, layout), metric)
        _draw_published(axes, part, layout, to_compare)
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


def has_tradeoff(grid: pd.DataFrame) -> bool:
    """Return whether there are finite central epsilons that differ by more than a percent."""
    if _CENTRAL not in grid:
        return False
    finite = grid[_CENTRAL][np.isfinite(grid[_CENTRAL].astype(float))]
    return bool(len(finite) and finite.max() > 1.01 * finite.min())


@styled
def draw_tradeoff(table: pd.DataFrame, layout: Layout, *, title: str, failed: int = 0) -> Figure:
    """Return coverage against central epsilon, one line per combination of ``layout.by``."""
    finite = table[np.isfinite(table[_CENTRAL].astype(float)) & ~table["beside_grid"]]
    rows = summarize(finite, layout.settings, "coverage")
    rows["central"] = summarize(finite, layout.settings, _CENTRAL)["mean"]
    names = [label for label, _ in _lines_of(rows, layout)]
    if len(names) > MOST_LINES:
        raise InputError(
            f"{len(names)} kinds of points are too many for one figure (at most {MOST_LINES}); "
            "choose panels with --facet SETTING or cells with --where KEY=VALUE."
        )
    look_of = dict(zip(names, looks(names), strict=True))
    parts = list(panels_of(rows, layout))
    figure, panels = open_figure(len(parts), sharex=True, sharey=True)
    for axes, (panel, part) in zip(panels, parts, strict=True):
        for label, line in _lines_of(part, layout):
            ordered = line.sort_values("central")
            look = dict(look_of[label])
            # Along other settings central epsilon hardly moves, and a line would only zigzag.
            if layout.x != _LOCAL:
                look["linestyle"] = "none"
            axes.errorbar(
                ordered["central"], ordered["mean"], yerr=_reach(ordered), fmt="none",
                elinewidth=0.8, color=look["color"], alpha=0.6,
            )  # fmt: skip
            axes.plot(ordered["central"], ordered["mean"], label=label, **look)
        if panel:
            name_panel(axes, panel)
    least, most = rows["central"].min(), rows["central"].max()
    for axes in panels:
        if most >= LOG_SPAN * least > 0:
            log_scale(axes.xaxis)
        else:
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.4g}"))
    deltas = ", ".join(f"{delta:g}" for delta in sorted(finite["delta"].unique()))
    label_axes(panels, f"{axis_label(_CENTRAL)} (delta = {deltas})", axis_label("coverage"))
    scale_y(panels, "coverage")
    put_legend(figure, layout)
    finish(figure, rows["seeds"], title, failed)
    return figure


def _lines_of(rows: pd.DataFrame, layout: Layout) -> list[tuple[str | None, pd.DataFrame]]:
    if not layout.by:
        return [(None, rows)]
    parts = [part for _, part in rows.groupby(list(layout.by), sort=False, dropna=False)]
    labels = [combination(part.iloc[0].to_dict(), layout.by) for part in parts]
    # A legend leaves out what begins with an underscore.
    return [
        (f" {label}" if label.startswith("_") else label, part)
        for label, part in zip(labels, parts, strict=True)
    ]


def _draw_lines(
    axes: Axes,
    rows: pd.DataFrame,
    layout: Layout,
    names: Sequence[str | None],
    *,
    unnamed: str | None,
) -> None:
    """Draw a line for each combination of settings, with a band for its intervals."""
    look_of = dict(zip(names, looks(names), strict=True))
    for label, part in _lines_of(rows, layout):
        ordered = part.sort_values(layout.x)
        look = look_of[label]
        axes.plot(ordered[layout.x], ordered["mean"], label=label or unnamed, **look)
        axes.fill_between(
            ordered[layout.x], ordered["low"], ordered["high"], color=look["color"], alpha=0.18,
            linewidth=0,
        )  # fmt: skip


def _draw_points(axes: Axes, rows: pd.DataFrame, layout: Layout, *, label: str | None) -> None:
    names = ["all seeds"]
    if layout.by:
        settings = rows.to_dict("records")
        names = shown_labels((combination(row, layout.by) for row in settings), _LONGEST_TICK)
    axes.errorbar(
        range(len(rows)), rows["mean"], yerr=_reach(rows), fmt="o", color=BLUE, markersize=6,
        capsize=4, label=label,
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


def _reach(rows: pd.DataFrame) -> Floats:
    return np.nan_to_num([rows["mean"] - rows["low"], rows["high"] - rows["mean"]])


def _of_panel(table: pd.DataFrame, part: pd.DataFrame, layout: Layout) -> pd.DataFrame:
    """Return the cells outside the grid of a panel; those that belong to none are in all."""
    extra, grid = table[table["beside_grid"]], table[~table["beside_grid"]]
    if extra.empty or not layout.facet:
        return extra
    facet = list(layout.facet)
    of_each, own, all_panels = (
        list(map(tuple, frame[facet].to_numpy().tolist())) for frame in (extra, part, grid)
    )
    return extra[[key in own or key not in all_panels for key in of_each]]


def _draw_references(axes: Axes, table: pd.DataFrame, metric: str) -> list[int]:
    """Draw cells outside the grid as horizontal lines; return over how many seeds each is."""
    if table.empty or not has_numbers(table, metric):
        return []
    # There is no place for an infinite epsilon.
    finite = table[np.isfinite(table[metric].astype(float))]
    rows = summarize(finite, [EXTRA], metric).to_dict("records")
    if len(rows) > len(_REFERENCES):
        raise InputError(
            f"{len(rows)} lines for cells outside the grid are too many for one figure (at most "
            f"{len(_REFERENCES)}); use fedhh show DIR --table summary, or run a sweep with fewer "
            "sweep.extra."
        )
    for row, (color, dashes) in zip(rows, _REFERENCES, strict=False):
        label = row[EXTRA].replace(" (", "\n(").replace(", ", ",\n")
        axes.axhline(row["mean"], color=color, linestyle=dashes, linewidth=1.5, label=label)
    return [row["seeds"] for row in rows]


def _draw_published(
    axes: Axes, rows: pd.DataFrame, layout: Layout, to_compare: Sequence[Published]
) -> None:
    settings: list[dict[Any, Any]] = rows.to_dict("records")
    for number, (published, look) in enumerate(zip(to_compare, _PUBLISHED, strict=False), start=1):
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
