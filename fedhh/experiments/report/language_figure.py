"""Languages next to each other: what is found, and what differs between their scripts."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedhh.arrays import Floats
from fedhh.experiments.report.panels import finish
from fedhh.experiments.report.style import (
    BLACK,
    MARKERS,
    NotebookFigure,
    colors_of,
    in_percent,
    log_scale,
    styled,
)
from fedhh.experiments.sweep.axes import PROTOCOL
from fedhh.experiments.sweep.columns import follows, has_numbers, varying
from fedhh.experiments.sweep.intervals import summarize
from fedhh.experiments.sweep.plan import LANGUAGE
from fedhh.validation import InputError
from fedhh.words.languages import NAMES

NAME = "languages"

_COVERAGE, _CEILING = "coverage", "ceiling_coverage"
_SHARE = "share_of_ceiling"
_FACTS = {
    "alphabet_size": "symbols of\nthe alphabet",
    "mean_word_length": "symbols of a\nword, mean",
}
_MOST_PROTOCOLS = 5
_WIDTH, _LINE = 8.4, 0.27
_APART = 0.3
"""Of a line's height: what the markers of all protocols take."""


def has_languages(grid: pd.DataFrame) -> bool:
    """Return whether results compare languages, with the bound and what their scripts are like."""
    needed = {LANGUAGE, _COVERAGE, _CEILING, _SHARE, *_FACTS}
    return bool(
        needed <= set(grid.columns)
        and grid[LANGUAGE].nunique() > 1
        and all(has_numbers(grid, name) for name in needed - {LANGUAGE})
    )


@styled
def draw_languages(grid: pd.DataFrame, *, title: str, failed: int = 0) -> Figure:
    """Return the figure of a sweep that `has_languages`: a line for each, a panel for each fact.

    Args:
        grid: Results without cells outside the grid.
        title: Of the figure.
        failed: How many cells have no result.

    Raises:
        InputError: More than languages and protocols varies, or there are too many protocols.
    """
    if PROTOCOL not in grid:
        grid = grid.assign(**{PROTOCOL: ""})
    others = [path for path in varying(grid) if not follows(grid, [LANGUAGE, PROTOCOL], path)]
    if others:
        raise InputError(
            f"{NAME}: expected one value of {', '.join(others)}; choose it with --where KEY=VALUE."
        )
    protocols = list(dict.fromkeys(grid[PROTOCOL]))
    if len(protocols) > _MOST_PROTOCOLS:
        raise InputError(
            f"{NAME}: {len(protocols)} protocols are too many for one figure (at most "
            f"{_MOST_PROTOCOLS}); choose some with --where protocol=NAME."
        )
    order = list(dict.fromkeys(grid[LANGUAGE]))
    figure = NotebookFigure(figsize=(_WIDTH, 1.9 + _LINE * len(order)), layout="constrained")
    panels = figure.subplots(1, 2 + len(_FACTS), sharey=True, width_ratios=(2.6, 1.4, 1, 1))
    names = [NAMES.get(code, code) for code in order]
    panels[0].set_yticks(range(len(order)), names)
    panels[0].set_ylim(len(order) - 0.5, -0.5)
    coverage = _draw(panels[0], grid, order, protocols, _COVERAGE)
    _draw(panels[1], grid, order, protocols, _SHARE)
    _mark_bound(panels[0], grid, order, protocols)
    for axes, fact in zip(panels[2:], _FACTS, strict=True):
        # Alike for all protocols but for the longest word that each looks for.
        values = grid.groupby(LANGUAGE)[fact].mean().reindex(order)
        axes.plot(
            values, np.arange(len(order)), color=BLACK, marker="o", linestyle="none", markersize=4
        )
    labels = ("coverage; |: known dictionary", "share of known\ndictionary", *_FACTS.values())
    for axes, label in zip(panels, labels, strict=True):
        axes.set_xlabel(label)
    for axes in panels[:2]:
        axes.set_xlim(left=0)
        in_percent(axes.xaxis)
    panels[1].set_xlim(right=1.02)
    log_scale(panels[2].xaxis)
    panels[2].set_xlim(10, 10 ** math.ceil(math.log10(1.1 * grid[next(iter(_FACTS))].max())))
    panels[3].set_xlim(0, 1.1 * grid[list(_FACTS)[1]].max())
    for axes in panels:
        axes.grid(axis="y", visible=False)
    if len(protocols) > 1:
        figure.legend(loc="outside upper center", ncols=len(protocols))
    finish(figure, coverage["seeds"], title, failed)
    return figure


def _draw(
    axes: Axes, grid: pd.DataFrame, order: list[str], protocols: list[str], metric: str
) -> pd.DataFrame:
    rows = summarize(grid, [LANGUAGE, PROTOCOL], metric)
    marks = zip(protocols, colors_of(protocols), itertools.cycle(MARKERS), strict=False)
    for number, (protocol, color, marker) in enumerate(marks):
        line = rows[rows[PROTOCOL] == protocol].set_index(LANGUAGE).reindex(order)
        reach = np.nan_to_num([line["mean"] - line["low"], line["high"] - line["mean"]])
        axes.errorbar(
            line["mean"], _heights(len(order), number, len(protocols)), xerr=reach, color=color,
            marker=marker, linestyle="none", markersize=4.5, elinewidth=1.1, capsize=2,
            label=protocol if metric == _COVERAGE else None,
        )  # fmt: skip
    return rows


def _mark_bound(axes: Axes, grid: pd.DataFrame, order: list[str], protocols: list[str]) -> None:
    rows = summarize(grid, [LANGUAGE, PROTOCOL], _CEILING)
    for number, protocol in enumerate(protocols):
        line = rows[rows[PROTOCOL] == protocol].set_index(LANGUAGE).reindex(order)
        axes.plot(
            line["mean"], _heights(len(order), number, len(protocols)), color=BLACK, marker="|",
            linestyle="none", markersize=8,
        )  # fmt: skip


def _heights(lines: int, number: int, of: int) -> Floats:
    aside = 0.0 if of == 1 else _APART * (2 * number / (of - 1) - 1)
    return np.arange(lines, dtype=np.float64) + aside
