"""Figures of ledgers and of memoized answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedhh.experiments.report.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    STYLE,
    VERMILION,
    check_figure,
    in_percent,
    log_scale,
    write_one,
)
from fedhh.experiments.report.titles import name_panel, put_heading, wrapped
from fedhh.longitudinal.ledger import Curve
from fedhh.longitudinal.ledger.statements import PLD, SUM
from fedhh.longitudinal.memoization import Observed, ObservedDays

_METHODS = (
    (SUM, "sum of epsilons", BLUE, "-", 2.4),
    (PLD, "optimal composition (PLD)", GREEN, "-", 1.2),
)
_COLORS = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, GREY)
_LEGEND_INCHES = 4.0
_MOST_COLUMNS = 3


def plot_ledger(
    path: Path, *, title: str, curve: Curve, spent: Sequence[float] | None, delta: float
) -> None:
    """Draw the largest privacy loss against the number of days, together and by use case.

    ``spent`` are the sums of epsilons that a simulated device sent on each day, if there is one.

    Raises:
        InputError: The file's name says no known format, or it cannot be written.
    """
    check_figure(path)
    days = list(curve.days)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10.4, 4.4), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        for method, label, color, dashes, width in _METHODS:
            values = [math.nan if v is None else v for v in curve.together[method]]
            name = label if method == SUM else f"{label}, delta {delta:g}"
            left.plot(days, values, color=color, linestyle=dashes, linewidth=width, label=name)
        if spent is not None:
            left.step(
                range(1, len(spent) + 1), list(accumulate(spent)), where="post", color=BLACK,
                linewidth=0.9, linestyle=":", label="sent by the simulated device, sum",
            )  # fmt: skip
        left.set_ylabel("local epsilon of all records (user level)")
        name_panel(left, "all use cases together", size=10)
        names = list(curve.by_use_case)
        colors = [_COLORS[number % len(_COLORS)] for number in range(len(names))]
        areas = right.stackplot(days, [*curve.by_use_case.values()], colors=colors, alpha=0.85)
        name_panel(right, "sum of epsilons, by use case", size=10)
        for axes in (left, right):
            axes.set_xlabel("days since opt-in")
            axes.set_xlim(0 if days[-1] > 1 else 0.5, days[-1] if days[-1] > 1 else 1.5)
            axes.set_ylim(bottom=0)
        left.legend(loc="upper left", fontsize=8)
        # A label of an artist may not begin with an underscore; a legend's text may.
        legend = right.legend(areas, [" "] * len(names), loc="upper left", fontsize=8)
        for text, name in zip(legend.get_texts(), names, strict=True):
            text.set_text(wrapped(name, _LEGEND_INCHES, size=text.get_fontsize()))
        put_heading(figure, title)
        write_one(figure, path)


def plot_memo(path: Path, rows: Sequence[ObservedDays], *, forever: float, title: str) -> None:
    """Draw epsilon and the distinguishing probability against days.

    ``forever`` bounds epsilon for any number of days; math.inf if nothing does.

    Raises:
        InputError: The file's name says no known format, or it cannot be written.
    """
    check_figure(path)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.6, 4.4), layout="constrained")
        left, right = figure.subplots(1, 2)
        put_heading(figure, title)
        _draw_epsilons(left, rows, forever)
        _draw_observers(right, rows, memoized=math.isfinite(forever))
        for axes in (left, right):
            log_scale(axes.xaxis)
            axes.set_xlabel("days, one report each")
            axes.legend(fontsize=8)
        write_one(figure, path)


def _draw_epsilons(axes: Axes, rows: Sequence[ObservedDays], forever: float) -> None:
    days = [row.days for row in rows]
    fresh = _numbers([row.value_if_fresh for row in rows])
    lines = [("fresh noise: sum over days", VERMILION, "s", "--", fresh)]
    if math.isfinite(forever):
        axes.axhline(forever, color=GREY, linestyle=":", label=f"any number of days: {forever:.5g}")
        values, changes = (
            _numbers(each) for each in ([row.value for row in rows], [row.change for row in rows])
        )
        lines.insert(0, ("memoized, value never changes", BLUE, "o", "-", values))
        if np.isfinite(changes).any():
            lines.append(("memoized, against a changing value", ORANGE, "^", "-.", changes))
    for label, color, marker, style, epsilons in lines:
        axes.plot(days, epsilons, color=color, marker=marker, linestyle=style, label=label)
    log_scale(axes.yaxis)
    axes.set_ylabel("epsilon of all reports (delta 0)")
    name_panel(axes, "Guarantee", size=10)


def _draw_observers(axes: Axes, rows: Sequence[ObservedDays], *, memoized: bool) -> None:
    lines: tuple[tuple[str, str, str, Any, list[Observed | None]], ...] = (
        ("which value, memoized", BLUE, "o", "-", [row.value for row in rows]),
        ("whether it changed, memoized", ORANGE, "^", "-.",
         [row.change for row in rows]),
        ("one device or two, memoized", GREEN, "D", ":", [row.linked for row in rows]),
        ("which value, fresh noise", VERMILION, "s", "--",
         [row.value_if_fresh for row in rows]),
        ("whether it changed, fresh noise", PURPLE, "v", (0, (5, 1)),
         [row.change_if_fresh for row in rows]),
    )  # fmt: skip
    days = [row.days for row in rows]
    for label, color, marker, style, observers in lines if memoized else lines[3:]:
        middle, low, high = (
            [math.nan if each is None else getattr(each, name) for each in observers]
            for name in ("middle", "lower", "upper")
        )
        axes.plot(days, middle, color=color, marker=marker, linestyle=style, label=label)
        axes.fill_between(days, low, high, color=color, alpha=0.25, linewidth=0)
    axes.axhline(0.5, color=GREY, linewidth=0.8)
    axes.set_ylim(0.48, 1.02)
    in_percent(axes.yaxis)
    axes.set_ylabel("success probability of the best observer")
    name_panel(axes, "Distinguishing probability (50% is guessing)", size=10)


def _numbers(epsilons: Sequence[Observed | None]) -> list[float]:
    """Return epsilons to draw; NaN, a gap, where there is none or nothing bounds it."""
    return [
        each.epsilon if each is not None and math.isfinite(each.epsilon) else math.nan
        for each in epsilons
    ]
