"""What all reports of a device say, against days: memoised answers beside fresh noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from fedhh.experiments.report.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    STYLE,
    VERMILION,
    check_figure,
    in_percent,
    write_one,
)
from fedhh.experiments.report.titles import name_panel, put_heading
from fedhh.longitudinal.memoization import LifeEpsilon, ObservedDays, Observer


def plot_memo(path: Path, rows: Sequence[ObservedDays], *, forever: float, title: str) -> None:
    """Draw epsilon and the best observer's success against days.

    Args:
        path: PNG, PDF or SVG.
        rows: By days, ascending.
        forever: What bounds epsilon for any number of days; math.inf for nothing.
        title: What answers.

    Raises:
        InputError: The file's name says no known format, or it cannot be written.
    """
    check_figure(path)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.6, 4.4), layout="constrained")
        left, right = figure.subplots(1, 2)
        put_heading(figure, title)
        _draw_epsilons(left, rows, forever)
        _draw_observers(right, rows, memoised=math.isfinite(forever))
        for axes in (left, right):
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(FuncFormatter(lambda days, _: f"{days:g}"))
            axes.set_xlabel("days, one report each")
            axes.legend(fontsize=8)
        write_one(figure, path)


def _draw_epsilons(axes: Axes, rows: Sequence[ObservedDays], forever: float) -> None:
    days = [row.days for row in rows]
    memoised = math.isfinite(forever)
    if memoised:
        axes.axhline(forever, color=GREY, linestyle=":", label=f"any number of days: {forever:.5g}")
        axes.plot(days, _numbers([row.value for row in rows]), color=BLUE, marker="o",
                  label="memoized, value never changes")  # fmt: skip
    axes.plot(days, _numbers([row.value_if_fresh for row in rows]), color=VERMILION, marker="s",
              linestyle="--", label="fresh noise: sum over days")  # fmt: skip
    if memoised:
        changes = _numbers([row.change for row in rows])
        if np.isfinite(changes).any():
            axes.plot(days, changes, color=ORANGE, marker="^", linestyle="-.",
                      label="memoized, against a life that changes")  # fmt: skip
    axes.set_yscale("log")
    axes.set_ylabel("epsilon of all reports (delta 0)")
    name_panel(axes, "Guarantee", size=10)


def _draw_observers(axes: Axes, rows: Sequence[ObservedDays], *, memoised: bool) -> None:
    lines: tuple[tuple[str, str, str, Any, list[Observer | None]], ...] = (
        ("which value, memoized", BLUE, "o", "-", [row.value_told for row in rows]),
        ("whether it changed, memoized", ORANGE, "^", "-.", [row.change_told for row in rows]),
        ("one device or two, memoized", GREEN, "D", ":", [row.linked for row in rows]),
        ("which value, fresh noise", VERMILION, "s", "--",
         [row.value_told_if_fresh for row in rows]),
        ("whether it changed, fresh noise", PURPLE, "v", (0, (5, 1)),
         [row.change_told_if_fresh for row in rows]),
    )  # fmt: skip
    if not memoised:
        lines = lines[3:]
    days = [row.days for row in rows]
    for label, color, marker, style, observers in lines:
        middle = [math.nan if each is None else each.middle for each in observers]
        axes.plot(days, middle, color=color, marker=marker, linestyle=style, label=label)
        axes.fill_between(days, *_bounds(observers), color=color, alpha=0.25, linewidth=0)
    axes.axhline(0.5, color=GREY, linewidth=0.8)
    axes.set_ylim(0.48, 1.02)
    in_percent(axes.yaxis)
    axes.set_ylabel("success probability of the best observer")
    name_panel(axes, "Distinguishing probability (50% is guessing)", size=10)


def _numbers(epsilons: Sequence[LifeEpsilon | None]) -> list[float]:
    """Return epsilons to draw; NaN, a gap, where there is none or nothing bounds it."""
    return [
        each.epsilon if each is not None and math.isfinite(each.epsilon) else math.nan
        for each in epsilons
    ]


def _bounds(observers: Sequence[Observer | None]) -> tuple[list[float], list[float]]:
    return (
        [math.nan if each is None else each.lower for each in observers],
        [math.nan if each is None else each.upper for each in observers],
    )
