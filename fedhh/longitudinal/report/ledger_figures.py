"""The loss of a device over its life: by composition, and by use case."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import matplotlib as mpl
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
    write_one,
)
from fedhh.experiments.report.titles import name_panel, put_heading, wrapped
from fedhh.longitudinal.ledger.curve import Curve
from fedhh.longitudinal.ledger.statements import LATER, PLD, SUM

_LINES = (
    (SUM, "sum of epsilons", BLUE, "-", 2.4),
    (LATER, "advanced composition (2015)", ORANGE, "--", 1.8),
    (PLD, "optimal composition (PLD)", GREEN, "-", 1.2),
)
_WIDTH, _LEGEND_INCHES = 10.4, 4.0
_COLORS = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, GREY)


def plot_ledger(
    path: Path,
    *,
    title: str,
    curve: Curve,
    spent: Sequence[float] | None,
    delta: float,
) -> None:
    """Draw what lives of growing length lose at most, together and of each use case.

    Args:
        path: PNG, PDF or SVG.
        title: Of what rules.
        curve: Of lives up to the whole one.
        spent: Sums of epsilons that a simulated device sent on each day, or None.
        delta: Of advanced and PLD composition.

    Raises:
        InputError: The file's name says no known format, or it cannot be written.
    """
    check_figure(path)
    days = list(curve.days)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(_WIDTH, 4.4), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        for method, label, color, dashes, width in _LINES:
            values = [float("nan") if v is None else v for v in curve.together[method]]
            name = label if method == SUM else f"{label}, delta {delta:g}"
            left.plot(days, values, color=color, linestyle=dashes, linewidth=width, label=name)
        if spent is not None:
            left.step(
                range(1, len(spent) + 1),
                list(accumulate(spent)),
                where="post",
                color=BLACK,
                linewidth=0.9,
                linestyle=":",
                label="sent by the simulated device, sum",
            )
        left.set_ylabel("local epsilon of all records (user level)")
        name_panel(left, "all use cases together", size=10)
        names = list(curve.by_use_case)
        layers = [curve.by_use_case[name] for name in names]
        colors = [_COLORS[number % len(_COLORS)] for number in range(len(names))]
        areas = right.stackplot(days, layers, colors=colors, alpha=0.85)
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
