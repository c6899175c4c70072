"""A metric of a sweep as a map over two settings, or several maps with one scale.

Where coverage is 0 in every seed, nothing was found: a line parts these cells from the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedhh.arrays import Bools
from fedhh.experiments.config.labels import axis_label, is_share, value_text
from fedhh.experiments.report.panels import finish, label_axes, open_figure, panels_of
from fedhh.experiments.report.style import SIZE, STYLE, VERMILION, in_percent
from fedhh.experiments.report.titles import name_panel
from fedhh.experiments.sweep.columns import (
    FEWEST_VALUES,
    MOST_PANELS,
    Layout,
    is_numeric,
    num_combinations,
)
from fedhh.experiments.sweep.intervals import summarize

_LONGEST_TICK = 4
_OF_FOUND_WORDS = ("coverage", "recall")
"""Metrics that are 0 where no held word was found."""
_NOTHING = "red line: on its dark side no seed found a word that is held"


def map_layout(grid: pd.DataFrame, layout: Layout, *, asked: bool) -> Layout | None:
    """Return the layout of a map, by its one number; the other settings are panels.

    Args:
        grid: Results.
        layout: That of the lines.
        asked: Whether the user asked for its panels, which the map then has, too.

    Returns:
        None if there is no second number, or there are several.
    """
    settings = layout.by if asked else (*layout.by, *layout.facet)
    numbers = [path for path in settings if is_numeric(grid, path)]
    if not layout.x or len(numbers) != 1 or (asked and len(layout.by) > 1):
        return None
    others = tuple(path for path in (*layout.by, *layout.facet) if path not in numbers)
    if others and (
        grid[numbers[0]].nunique() < FEWEST_VALUES or num_combinations(grid, others) > MOST_PANELS
    ):
        return None
    return Layout(x=layout.x, by=(numbers[0],), facet=others)


def draw_map(
    grid: pd.DataFrame,
    layout: Layout,
    metric: str,
    *,
    title: str,
    failed: int = 0,
    beside: Sequence[tuple[str, pd.DataFrame]] = (),
) -> Figure:
    """Return a heat map of a metric's mean over ``layout.x`` and the one setting of ``by``.

    Args:
        grid: Results without cells outside the grid.
        layout: See `map_layout`.
        metric: A column.
        title: Of the figure.
        failed: How many cells have no result.
        beside: Names of further panels, and their values: a row for each value of ``by``, a column
            for each of ``layout.x``, NaN where there is none.
    """
    y = layout.by[0]
    rows = summarize(grid, layout.settings, metric)
    maps = [(label, _pivot(part, layout.x, y)) for label, part in panels_of(rows, layout)]
    has_line = False
    num_results = len(maps)
    maps.extend(beside)
    across, along = (max(means.shape[i] for _, means in maps) for i in (1, 0))
    with mpl.rc_context({**STYLE, "axes.grid": False}):
        size = (max(1.0 + 0.5 * across, 2.6), max(0.9 + 0.36 * along, 2.2))
        figure, panels = open_figure(len(maps), size=size, sharex=False, sharey=False)
        if len(maps) == 1:
            figure.set_size_inches(max(SIZE[0], 2.2 + 0.55 * across), max(3.8, 1.6 + 0.42 * along))
        lowest, highest = float(rows["mean"].min()), float(rows["mean"].max())
        highest = max([highest, *(float(np.nanmax(values)) for _, values in beside)])
        lowest = 0.0 if 0 <= lowest < highest / 2 else lowest
        for number, (axes, (label, means)) in enumerate(zip(panels, maps, strict=True)):
            values = means.to_numpy(dtype=np.float64)
            image = axes.imshow(
                values, cmap="cividis", aspect="auto", origin="lower", vmin=lowest, vmax=highest
            )
            for (row, column), value in np.ndenumerate(values):
                if np.isfinite(value):
                    color = "white" if value < (lowest + highest) / 2 else "black"
                    text = f"{value:.0%}" if is_share(metric) else f"{value:,.3g}"
                    axes.text(column, row, text, ha="center", va="center", color=color, fontsize=8)
            if metric in _OF_FOUND_WORDS and number < num_results:
                has_line |= _part(axes, values == 0)
            longest = max(len(value_text(v)) for v in means.columns)
            turned = 45 if len(maps) > 1 and longest > _LONGEST_TICK else 0
            axes.set_xticks(
                range(means.shape[1]), [value_text(v) for v in means.columns], rotation=turned
            )
            axes.set_yticks(range(means.shape[0]), [value_text(v) for v in means.index])
            if label:
                name_panel(axes, label)
        label_axes(panels, axis_label(layout.x), axis_label(y))
        bar = figure.colorbar(image, ax=panels, label=axis_label(metric))
        if is_share(metric):
            in_percent(bar.ax.yaxis)
        further = _NOTHING if has_line else ""
        finish(figure, rows["seeds"], title, failed, interval=False, further=further)
    return figure


def _part(axes: Axes, is_nothing: Bools) -> bool:
    """Draw a line between cells of nothing and their neighbors; return whether there is one."""
    edges = []
    for row, column in zip(*np.nonzero(is_nothing[:, 1:] != is_nothing[:, :-1]), strict=True):
        edges.append(((column + 0.5, column + 0.5), (row - 0.5, row + 0.5)))
    for row, column in zip(*np.nonzero(is_nothing[1:] != is_nothing[:-1]), strict=True):
        edges.append(((column - 0.5, column + 0.5), (row + 0.5, row + 0.5)))
    for across, along in edges:
        axes.plot(across, along, color=VERMILION, linewidth=2.2, solid_capstyle="projecting")
    return bool(edges)


def _pivot(rows: pd.DataFrame, x: str, y: str) -> pd.DataFrame:
    means = rows.pivot(index=y, columns=x, values="mean")
    return means.sort_index().sort_index(axis=1)
