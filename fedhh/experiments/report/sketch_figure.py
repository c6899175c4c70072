"""Standard deviation of a count in a Count Mean Sketch, by the size of the sketch."""

from __future__ import annotations

import math
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from fedhh.experiments.report.account_figures import check_figure
from fedhh.experiments.report.style import BLUE, GREEN, ORANGE, PURPLE, STYLE, VERMILION, write_one
from fedhh.experiments.report.titles import put_heading
from fedhh.oracles.sketch_errors import FROM_RANK, NUM_CELLS, NUM_HASHES, SketchErrors

_COLORS = (PURPLE, ORANGE, BLUE, GREEN)
_MARKERS = ("D", "s", "o", "v")
_ROOM_FOR_LEGEND = 8.0


def plot_sketch_errors(path: Path, errors: SketchErrors) -> None:
    """Draw the standard deviations of a count by the size of the sketch, as a map and as lines.

    Args:
        path: PNG, PDF or SVG.
        errors: Crosses are its simulated sketches, each drawn once.

    Raises:
        InputError: The figure cannot be written.
    """
    check_figure(path)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10.6, 4.4), layout="constrained")
        put_heading(figure, f"Count Mean Sketch: standard deviation of a count\n{errors.title}")
        left, right = figure.subplots(1, 2)
        _draw_map(figure, left, errors)
        _draw_lines(right, errors)
        write_one(figure, path)


def _draw_map(figure: Figure, axes: Axes, errors: SketchErrors) -> None:
    image = axes.imshow(
        errors.surface, norm=LogNorm(), cmap="cividis_r", aspect="auto", origin="lower"
    )
    figure.colorbar(image, ax=axes)
    axes.grid(visible=False)
    middle = math.sqrt(errors.surface.min() * errors.surface.max())
    for i, row in enumerate(errors.surface):
        for j, value in enumerate(row):
            color = "white" if value > middle else "black"
            axes.text(j, i, f"{value:,.0f}", ha="center", va="center", color=color, fontsize=9)
    axes.set_xticks(range(len(NUM_HASHES)), [f"{k:,}" for k in NUM_HASHES])
    axes.set_yticks(range(len(NUM_CELLS)), [f"{m:,}" for m in NUM_CELLS])
    axes.set_xlabel("k, hash functions (work of the server)")
    axes.set_ylabel("m, cells (bits of a report)")


def _draw_lines(axes: Axes, errors: SketchErrors) -> None:
    for j, k in enumerate(NUM_HASHES):
        axes.plot(
            NUM_CELLS,
            errors.surface[:, j],
            color=_COLORS[j],
            marker=_MARKERS[j],
            markersize=4,
            label=f"k = {k:,}",
        )
    sizes = [m for m, _ in errors.simulated]
    hashes = ", ".join(dict.fromkeys(str(k) for _, k in errors.simulated))
    axes.plot(
        sizes,
        list(errors.simulated.values()),
        "x",
        color=VERMILION,
        markersize=9,
        markeredgewidth=2,
        label=f"one simulated sketch each, k = {hashes},\nvalues beyond rank {FROM_RANK:,}",
    )
    axes.axhline(
        errors.floor, color="black", linestyle=":", label=f"limit of all sizes: {errors.floor:,.0f}"
    )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_ylim(top=float(errors.surface.max()) * _ROOM_FOR_LEGEND)
    axes.set_xticks(NUM_CELLS, [f"{m:,}" for m in NUM_CELLS])
    axes.set_xlabel("m, cells (bits of a report)")
    axes.set_ylabel("standard deviation (reports)")
    axes.legend(fontsize=8)
