"""Figures of one panel or many: their grid, scales, legend, title and note."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter

from fedhh.experiments.config.labels import is_share, short_label, value_text
from fedhh.experiments.report.style import (
    SIZE,
    NotebookFigure,
    in_percent,
    legend_entries,
    log_scale,
)
from fedhh.experiments.report.titles import (
    letters_wide,
    put_heading,
    put_note,
    put_title,
    shortened,
    shown_labels,
)
from fedhh.experiments.study.plain_text import unmathed
from fedhh.experiments.sweep.columns import MOST_PANELS, Layout, num_combinations
from fedhh.experiments.sweep.intervals import failed_text, interval_text, seeds_text
from fedhh.validation import InputError

LOG_SPAN = 20
ROW_LENGTH = 60
"""Letters of all labels below a figure that fit in one row."""

_PANEL_SIZE = (3.1, 2.7)
_PANEL_LABEL = 28
_WIDEST, _HIGHEST = 66, 50
"""Letters of a line next to an axis of a single panel."""
_LONGEST_NAME = 70
"""Letters of a panel's name."""
_MOST_TICKS = 14
_LONGEST_LABEL = 20
"""Letters of a label that stands next to the axes of a single panel."""
_LONGEST_OF_TWO, _LONGEST_ABOVE = 34, 64
"""Letters of a label above the axes: with another one next to it, and alone."""
_LONGEST_AXIS = 90
_LONGEST_TITLE = 200
_INCHES_PER_LETTER = 0.083


def panels_of(rows: pd.DataFrame, layout: Layout) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield each panel's label and rows, in the order of the file."""
    count = num_combinations(rows, layout.facet)
    if count > MOST_PANELS:
        raise InputError(
            f"{count} panels are too many for one figure (at most {MOST_PANELS}): one for each "
            f"combination of {', '.join(layout.facet)}; choose cells with --where KEY=VALUE."
        )
    if not layout.facet:
        yield "", rows
        return
    parts = [part for _, part in rows.groupby(list(layout.facet), sort=False, dropna=False)]
    names = (combination(part.iloc[0].to_dict(), layout.facet, named=True) for part in parts)
    yield from zip(shortened(names, _LONGEST_NAME), parts, strict=True)


def open_figure(
    count: int, *, size: tuple[float, float] = _PANEL_SIZE, **options: Any
) -> tuple[Figure, list[Axes]]:
    """Return a figure and its panels: one of the usual size, or several smaller ones."""
    if count == 1:
        figure = NotebookFigure(figsize=SIZE, layout="constrained")
        return figure, [figure.subplots()]
    columns = count if count <= 3 else (2 if count == 4 else 3 if count <= 9 else 4)
    rows = math.ceil(count / columns)
    figure = NotebookFigure(figsize=(size[0] * columns, size[1] * rows + 0.8), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, **options)
    panels = list(grid.flat)
    for axes in panels[count:]:
        axes.set_axis_off()
    for above, axes in zip(panels, panels[columns:], strict=False):
        if axes in panels[count:]:
            above.tick_params(labelbottom=True)
    return figure, panels[:count]


def label_axes(panels: Sequence[Axes], x: str, y: str) -> None:
    """Name the axes: x below the lowest panel of each column, y next to the first of each row."""
    x, y = shortened((x, y), _LONGEST_AXIS)
    room = (_PANEL_LABEL,) * 2 if len(panels) > 1 else (_WIDEST, _HIGHEST)
    x, y = (unmathed(textwrap.fill(*each)) for each in zip((x, y), room, strict=True))
    for axes in panels:
        place = axes.get_subplotspec()
        assert place is not None
        if place.is_first_col():
            axes.set_ylabel(y)
        if place.num1 + place.get_gridspec().ncols >= len(panels):
            axes.set_xlabel(x)


def combination(row: dict[Any, Any], paths: Sequence[str], *, named: bool = False) -> str:
    """Return a combination of settings as text; numbers get their name where that is needed."""
    named = named or len(paths) > 1
    return ", ".join(
        f"{short_label(path)} {value_text(row[path])}"
        if named and not isinstance(row[path], str)
        else value_text(row[path])
        for path in paths
    )


def letters(labels: Sequence[str]) -> int:
    """Return how many letters evenly spaced labels need below a figure."""
    return len(labels) * max(map(len, labels))


def scale_x(panels: Sequence[Axes], values: Any) -> None:
    """Scale the horizontal axes by logarithm where values span much, with a tick at each."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    room = ROW_LENGTH if len(panels) == 1 else ROW_LENGTH // 2
    for axes in panels:
        if ordered[0] > 0 and ordered[-1] / ordered[0] >= LOG_SPAN:
            log_scale(axes.xaxis)
        if len(ordered) <= _MOST_TICKS:
            axes.xaxis.set_major_locator(FixedLocator(ordered.tolist()))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: value_text(float(value))))
            if letters([value_text(float(value)) for value in ordered]) > room:
                axes.tick_params(axis="x", labelrotation=45)


def scale_y(panels: Sequence[Axes], metric: str) -> None:
    """Scale the vertical axes of a share from 0, in percent."""
    if not is_share(metric):
        return
    drawn = max(float(axes.dataLim.y1) for axes in panels)
    top = max(*(axes.get_ylim()[1] for axes in panels), 1.05 * drawn, 0.05)
    for axes in panels:
        # A marker at the largest value must not be cut.
        axes.set_ylim(0, min(1.02, top))
        in_percent(axes.yaxis)


def put_legend(figure: Figure, layout: Layout) -> None:
    """Put the legend next to the axes, or above them if its labels are long."""
    named = legend_entries(figure)
    if not named:
        return
    # Points are named below the axis.
    heading = ", ".join(short_label(path) for path in layout.by if layout.x)
    width, height = figure.get_size_inches()
    shown = shown_labels(named, _LONGEST_ABOVE)
    longest = max(letters_wide(line) for label in shown for line in label.split("\n"))
    if len(figure.axes) > 1:
        # Wider by the legend, so that panels keep their size.
        figure.set_size_inches(width + 0.8 + _INCHES_PER_LETTER * longest, height)
    elif longest > _LONGEST_LABEL:
        columns = 2 if longest <= _LONGEST_OF_TWO else 1
        figure.set_size_inches(width, height + 0.5 + 0.22 * -(-len(named) // columns))
        figure.legend(named.values(), shown, loc="outside upper center", ncols=columns, fontsize=8)
        return
    (heading,) = shown_labels([heading], _LONGEST_OF_TWO)
    # Halfway up: a title over the whole figure is above it.
    figure.legend(named.values(), shown, loc="outside right center", title=heading or None)


def finish(
    figure: Figure,
    counts: Iterable[int],
    title: str,
    failed: int,
    *,
    interval: bool = True,
    further: str = "",
) -> None:
    """Put title, and below the figure what the marks mean, over how many seeds, and what failed.

    ``further`` is what a line of its own says below.
    """
    counts = list(counts)
    seeds = seeds_text(counts)
    note = interval_text(counts) if interval or seeds == "1" else f"mean over {seeds} seeds"
    note = "; ".join(filter(None, (note, failed_text(failed))))
    short = "\n".join(shortened(title.split("\n"), _LONGEST_TITLE))
    if len(figure.axes) > 1 and figure.axes[0].get_title():
        put_heading(figure, short)
    else:
        put_title(figure.axes[0], short)
    put_note(figure, f"{note}\n{further}".strip())
