"""What an audit of lives saw, beside the trade-off that is stated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedhh.experiments.report.style import (
    BLUE,
    GREY,
    STYLE,
    VERMILION,
    check_figure,
    in_percent,
    write_one,
)
from fedhh.experiments.report.titles import name_panel
from fedhh.longitudinal.audit import Answers, ShownAnswers, TradeOff

_MOST_COLUMNS = 3
_INCHES = 3.9


def plot_trade_offs(path: Path, panels: Sequence[ShownAnswers]) -> None:
    """Draw how well lives were told apart, beside how well they may be.

    Args:
        path: PNG, PDF or SVG.
        panels: At least one, all with answers of one epsilon.

    Raises:
        InputError: The file's name says no known format, or it cannot be written.
    """
    check_figure(path)
    columns = min(len(panels), _MOST_COLUMNS)
    rows = math.ceil(len(panels) / columns)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(_INCHES * columns, 3.7 * rows), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, panel in zip(grid, panels, strict=False):
            _draw(axes, panel)
        for axes in grid[len(panels) :]:
            axes.set_axis_off()
        write_one(figure, path)


def _draw(axes: Axes, panel: ShownAnswers) -> None:
    stated = panel.found.stated
    epsilon = stated.answers[0].epsilon
    shares = np.linspace(0, 1, 801)
    allowed = stated.power(shares)
    axes.plot(shares, allowed, color=GREY, label=f"stated: {stated.num_answers} {panel.unit}")
    axes.fill_between(shares, allowed, 1, color=GREY, alpha=0.15, linewidth=0)
    seen = [("seen", BLUE, "o", panel.found), ("drawn again every day", VERMILION, "s",
            panel.control)]  # fmt: skip
    for label, color, marker, found in seen:
        if found is None or found.least_answers is None:
            continue
        least = TradeOff((Answers(epsilon=epsilon, times=found.least_answers),))
        axes.plot(shares, least.power(shares), color=color, linestyle="--", linewidth=1)
        axes.plot(
            [found.false_alarm],
            [found.power],
            color=color,
            marker=marker,
            linestyle="none",
            label=f"{label}: at least {found.least_answers}",
        )
    axes.set_xlabel("probability under the other life, at most")
    axes.set_ylabel("probability under one life, at least")
    for axis in (axes.xaxis, axes.yaxis):
        in_percent(axis)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.02)
    axes.legend(fontsize=8, loc="lower right")
    name_panel(axes, f"{panel.audited}\n{panel.unit} of epsilon {epsilon:.3g}", size=10)
