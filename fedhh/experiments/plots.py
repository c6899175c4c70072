"""Figures of a run. They show what tables hold; no number is computed here."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    MaxNLocator,
    NullLocator,
    PercentFormatter,
)

if TYPE_CHECKING:
    from fedhh.experiments.run_result import RunResult

# Okabe and Ito's palette: distinguishable with any color vision.
BLUE, ORANGE, GREEN, VERMILION, PURPLE = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7"
PASS_COLORS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE)
GREY = "#7F7F7F"

STYLE: Any = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E5E5E5",
    "axes.axisbelow": True,
    "legend.frameon": False,
}

_SIZE = (6.4, 4.0)


def figures(result: RunResult) -> dict[str, Figure]:
    """Return a run's figures by file name; those by layer only where the layers are of a trie."""
    drawn = {"estimates": _single(draw_estimates, result)}
    if _has_trie(result):
        drawn["coverage_by_layer"] = _single(draw_coverage, result)
        drawn["trie_by_layer"] = draw_trie(result)
    return drawn


class NotebookFigure(Figure):
    """A figure that notebooks show as the value of a cell, without pyplot."""

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        self.savefig(content, format="png")
        return content.getvalue()


def overview(result: RunResult) -> Figure:
    """Return coverage by layer, if the run has a trie, and estimates against the truth."""
    if not _has_trie(result):
        return _single(draw_estimates, result)
    with mpl.rc_context(STYLE):
        figure = NotebookFigure(figsize=(11, 4.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        draw_coverage(left, result)
        draw_estimates(right, result)
    return figure


def draw_coverage(axes: Axes, result: RunResult) -> None:
    """Draw the share of contributions covered after each layer, one line per pass."""
    layers = result.layers
    for number, rows in layers.groupby("pass"):
        axes.plot(
            rows["layer"],
            rows["coverage"],
            marker="o",
            markersize=4,
            color=PASS_COLORS[(int(str(number)) - 1) % len(PASS_COLORS)],
            label=f"after pass {number}" if layers["pass"].nunique() > 1 else "covered",
        )
    axes.axhline(
        result.metrics["reachable_mass"], color=GREY, linestyle="--", label="reachable by the trie"
    )
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("layer (symbols in a word, end symbol apart)")
    axes.set_ylabel("coverage of new-word contributions")
    axes.legend(loc="best")


def draw_trie(result: RunResult) -> Figure:
    """Return the trie's width and, below it, the threshold, by layer."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6.4, 5.4), layout="constrained")
        upper, lower = figure.subplots(2, 1, sharex=True)
        for number, rows in result.layers.groupby("pass"):
            color = PASS_COLORS[(int(str(number)) - 1) % len(PASS_COLORS)]
            upper.plot(
                rows["layer"], rows["num_candidates"], color=color, linestyle=":", marker="^",
                markersize=4, label=f"candidates, pass {number}",
            )  # fmt: skip
            upper.plot(
                rows["layer"], rows["num_kept"], color=color, marker="o", markersize=4,
                label=f"kept, pass {number}",
            )  # fmt: skip
            lower.plot(
                rows["layer"], rows["threshold_z"], color=color, marker="o", markersize=4,
                label=f"pass {number}",
            )  # fmt: skip
        upper.set_yscale("log")
        upper.set_ylabel("prefixes")
        upper.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        lower.set_ylabel("threshold (standard\ndeviations of the noise)")
        lower.set_xlabel("layer (symbols in a word, end symbol apart)")
        lower.xaxis.set_major_locator(MaxNLocator(integer=True))
        lower.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def draw_estimates(axes: Axes, result: RunResult) -> None:
    """Draw estimated against true holders of each discovered word, with 95 % error bars."""
    found = result.discoveries
    shown = found[found["is_target"]]
    for significant, color, label in (
        (True, BLUE, "significant"),
        (False, ORANGE, "within the noise"),
    ):
        rows = shown[shown["is_significant"] == significant]
        if rows.empty:
            continue
        axes.errorbar(
            rows["true_clients"], rows["estimated_clients"], yerr=1.96 * rows["std_error"],
            fmt="o", markersize=3, elinewidth=0.6, alpha=0.6, color=color,
            label=f"{label} ({len(rows):,})",
        )  # fmt: skip
    if not shown.empty:
        limits = np.array([1, shown["true_clients"].max() * 1.3])
        axes.plot(limits, limits, color=GREY, linestyle="--", label="exact")
        _count_scales(axes, float(found["std_error"].median()), limits[1])
        axes.legend(loc="upper left")
    axes.set_xlabel("clients that hold the word")
    axes.set_ylabel("estimated clients, 95 % error bars")


def _count_scales(axes: Axes, noise: float, largest: float) -> None:
    """Scale both axes by logarithm above the noise, and linearly from there through 0."""
    first = max(int(np.floor(np.log10(max(noise, 1.0)))), 0)
    powers = 10.0 ** np.arange(first, max(int(np.ceil(np.log10(largest))), first + 1) + 1)
    for axis, set_scale in ((axes.xaxis, axes.set_xscale), (axes.yaxis, axes.set_yscale)):
        set_scale("symlog", linthresh=powers[0], linscale=0.6)
        axis.set_major_locator(FixedLocator([0.0, *powers]))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axis.set_minor_locator(NullLocator())
    axes.set_xlim(0, largest)


def _has_trie(result: RunResult) -> bool:
    """Return whether the server broadcast prefixes: not so in protocols of one round trip."""
    return bool((result.layers["num_prefixes"] > 0).any())


def _single(draw: Callable[[Axes, RunResult], None], result: RunResult) -> Figure:
    with mpl.rc_context(STYLE):
        figure = NotebookFigure(figsize=_SIZE, layout="constrained")
        draw(figure.subplots(), result)
    return figure
