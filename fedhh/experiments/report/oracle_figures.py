"""Figures of frequency oracles: their noise by epsilon, and errors of a sketch by its size."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from fedhh.experiments.report.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    VERMILION,
    check_figure,
    series,
    styled,
    write_one,
)
from fedhh.experiments.report.titles import put_heading, put_title
from fedhh.oracles.comparison import compared_names, noise_of
from fedhh.oracles.sketch_errors import FROM_RANK, NUM_CELLS, NUM_HASHES, SketchErrors

_LOWEST, _HIGHEST, _STEP = 0.5, 10.0, 0.25
_ALIKE = 0.03
"""Lines that differ by no more are one."""
_MOST_NOISE = 1e4
"""Times the least of the picture; what lies above is cut off."""
_LOOKS = ((PURPLE, "D"), (ORANGE, "s"), (BLUE, "o"), (GREEN, "v"))
_ROOM_FOR_LEGEND = 8.0

_Floats = npt.NDArray[np.float64]


@styled
def plot_oracles(path: Path, *, epsilon: float, domain_size: int) -> None:
    """Draw V0 of every oracle for epsilons from 0.5 to 10 or beyond the asked one, which is marked.

    An oracle that does not fit at some epsilon has a gap there.
    """
    check_figure(path)
    highest = max(_HIGHEST, epsilon)
    epsilons = np.arange(min(_LOWEST, epsilon), highest + _STEP / 2, _STEP)
    lines = {
        name: np.array([noise_of(name, epsilon=e, domain_size=domain_size) for e in epsilons])
        for name in compared_names()
    }
    here = int(np.argmin(np.abs(epsilons - epsilon)))
    groups = sorted(_alike(lines), key=lambda group: -np.nan_to_num(group[1][here], nan=0.0))
    figure = Figure(figsize=(8.6, 5.2), layout="constrained")
    axes = figure.subplots()
    for number, (names, line) in enumerate(groups):
        look = series(len(groups) - 1 - number, len(groups)) | {"marker": "none"}
        axes.plot(epsilons, line, label=", ".join(names), **look)
    axes.axvline(epsilon, color=GREY, linewidth=0.8)
    axes.set_yscale("log")
    least = min(float(np.nanmin(line)) for _, line in groups)
    most = max(float(np.nanmax(line)) for _, line in groups)
    axes.set_ylim(least / 2, min(most * 2, max(_MOST_NOISE * least, 100.0)))
    axes.set_xlabel("epsilon of one report")
    axes.set_ylabel("V0, variance of a count of 0 per report")
    put_title(axes, f"{domain_size:,} values")
    figure.legend(loc="outside right center", title="most noise at the line first")
    write_one(figure, path)


def _alike(lines: dict[str, _Floats]) -> list[tuple[list[str], _Floats]]:
    """Return groups of names whose lines have the same gaps and values, in the order of names."""
    groups: list[tuple[list[str], _Floats]] = []
    for name, line in lines.items():
        if np.isnan(line).all():
            continue
        for names, first in groups:
            same_gaps = np.array_equal(np.isnan(line), np.isnan(first))
            if same_gaps and np.nanmax(np.abs(np.log(line / first))) <= math.log1p(_ALIKE):
                names.append(name)
                break
        else:
            groups.append(([name], line))
    return groups


@styled
def plot_sketch_errors(path: Path, errors: SketchErrors) -> None:
    """Draw the standard deviations of a count by the size of the sketch, as a map and as lines."""
    check_figure(path)
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
    for (i, j), value in np.ndenumerate(errors.surface):
        color = "white" if value > middle else "black"
        axes.text(j, i, f"{value:,.0f}", ha="center", va="center", color=color, fontsize=9)
    axes.set_xticks(range(len(NUM_HASHES)), [f"{k:,}" for k in NUM_HASHES])
    axes.set_yticks(range(len(NUM_CELLS)), [f"{m:,}" for m in NUM_CELLS])
    axes.set_xlabel("k, hash functions (work of the server)")
    axes.set_ylabel("m, cells (bits of a report)")


def _draw_lines(axes: Axes, errors: SketchErrors) -> None:
    for k, (color, marker), line in zip(NUM_HASHES, _LOOKS, errors.surface.T, strict=True):
        axes.plot(NUM_CELLS, line, color=color, marker=marker, markersize=4, label=f"k = {k:,}")
    sizes = [m for m, _ in errors.simulated]
    hashes = ", ".join(dict.fromkeys(str(k) for _, k in errors.simulated))
    axes.plot(
        sizes, list(errors.simulated.values()), "x", color=VERMILION, markersize=9,
        markeredgewidth=2,
        label=f"one simulated sketch each, k = {hashes},\nvalues beyond rank {FROM_RANK:,}",
    )  # fmt: skip
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
