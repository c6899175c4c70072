"""`fedhh account cms-variance`: how large a Count Mean Sketch must be, after Apple's figure 4b."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from rich.table import Table

from fedhh.cli.console import open_console, print_json, print_written
from fedhh.experiments.report.account_figures import check_figure
from fedhh.experiments.report.style import BLUE, GREEN, ORANGE, PURPLE, STYLE, VERMILION
from fedhh.oracles import CountMeanSketch
from fedhh.oracles.count_mean_sketch import deviation_floor, deviation_surface
from fedhh.random import Stream, generator
from fedhh.system.files import whole_file
from fedhh.validation import InputError, require_between, require_epsilon

_CELLS = (16, 64, 256, 1024, 4096)
_HASHES = (16, 256, 2048, 65536)
_SIMULATED = ((256, 256), (4096, 256))
"""Sizes (m, k) that are simulated; a sketch is drawn in time k for each value."""
_FROM_RANK = 1000
_SMALLEST_DOMAIN, _LARGEST_DOMAIN = 10_000, 1_000_000
_COLORS = (PURPLE, ORANGE, BLUE, GREEN)
_MARKERS = ("D", "s", "o", "v")
_ROOM_FOR_LEGEND = 8.0

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class SketchErrors:
    """Standard deviations of one value's count, by the size of the sketch.

    Attributes:
        floor: What no size goes below.
        surface: ``(len(_CELLS), len(_HASHES))``, by Apple's Theorem 4.2.
        simulated: Root mean square errors of one drawn sketch, by (m, k).
    """

    floor: float
    surface: Floats
    simulated: dict[tuple[int, int], float]


def cms_variance_command(
    *,
    epsilon: float,
    num_reports: int,
    num_values: int,
    rank: int,
    seed: int,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Print the deviations, for clients whose values follow Zipf's law, and perhaps draw them."""
    require_epsilon(epsilon=epsilon)
    require_between(_SMALLEST_DOMAIN, _LARGEST_DOMAIN, values=num_values)
    require_between(1, num_values, rank=rank)
    require_between(num_values, 10**12, reports=num_reports)
    if plot is not None:
        check_figure(plot)
    shares = 1 / np.arange(1, num_values + 1)
    counts = num_reports * shares / shares.sum()
    errors = SketchErrors(
        floor=deviation_floor(epsilon=epsilon, num_reports=num_reports),
        surface=deviation_surface(
            counts, rank - 1, epsilon=epsilon, num_hashes=_HASHES, num_cells=_CELLS
        ),
        simulated={
            (m, k): _simulate(counts, epsilon=epsilon, num_cells=m, num_hashes=k, seed=seed)
            for m, k in _SIMULATED
        },
    )
    title = f"rank {rank} of {num_values:,} values, {num_reports:,} reports at epsilon {epsilon:g}"
    if plot is not None:
        _plot(plot, errors, title)
    if as_json:
        print_json(_as_json(errors))
        return
    _print(errors, title, count=counts[rank - 1])
    if plot is not None:
        print_written(plot)


def _simulate(
    counts: Floats, *, epsilon: float, num_cells: int, num_hashes: int, seed: int
) -> float:
    """Return the root mean square error of the rare values in one drawn sketch of all reports.

    One sketch has one value of a given rank, but thousands of rare ones, whose errors have the
    same law but for what the value's own clients add, which is little.
    """
    whole = np.round(counts).astype(np.int64)
    oracle = CountMeanSketch(
        epsilon=epsilon,
        domain_size=len(whole),
        num_hashes=num_hashes,
        num_cells=num_cells,
        hash_seed=seed,
    )
    rng = generator(seed, Stream.TALLY, num_cells, num_hashes)
    sketch = oracle.sample_sketch(whole, rng=rng)
    rare = np.arange(_FROM_RANK, len(whole), 5)
    found = oracle.estimate(oracle.support(sketch, rare), int(whole.sum()))
    return math.sqrt(np.mean((found - whole[rare]) ** 2))


def _as_json(errors: SketchErrors) -> dict[str, Any]:
    return {
        "unit": "reports",
        "floor": errors.floor,
        "surface": [
            {"num_cells": m, "num_hashes": k, "deviation": float(errors.surface[i, j])}
            for i, m in enumerate(_CELLS)
            for j, k in enumerate(_HASHES)
        ],
        "simulated": [
            {"num_cells": m, "num_hashes": k, "deviation": value}
            for (m, k), value in errors.simulated.items()
        ],
    }


def _print(errors: SketchErrors, title: str, *, count: float) -> None:
    table = Table(title=f"standard deviation of a count of {count:,.0f}\n{title}")
    table.add_column("m cells", justify="right")
    for k in _HASHES:
        table.add_column(f"k = {k:,}", justify="right")
    for m, row in zip(_CELLS, errors.surface, strict=True):
        table.add_row(f"{m:,}", *(f"{value:,.0f}" for value in row))
    console = open_console()
    console.print(table)
    console.print(f"No size goes below {errors.floor:,.0f}.")
    for (m, k), value in errors.simulated.items():
        formula = errors.surface[_CELLS.index(m), _HASHES.index(k)]
        console.print(
            f"One simulated sketch, m = {m:,}, k = {k:,}: {value:,.0f} (formula {formula:,.0f}), "
            f"over values beyond rank {_FROM_RANK:,}.",
            soft_wrap=True,
        )


def _plot(path: Path, errors: SketchErrors, title: str) -> None:
    """Draw the surface as a map and as lines.

    Raises:
        InputError: The figure cannot be written.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10.6, 4.4), layout="constrained")
        figure.suptitle(f"Count Mean Sketch: standard deviation of a count\n{title}", fontsize=11)
        left, right = figure.subplots(1, 2)
        _draw_map(figure, left, errors)
        _draw_lines(right, errors)
        try:
            with whole_file(path) as temporary:
                figure.savefig(temporary, dpi=160)
        except OSError as error:
            raise InputError(f"Cannot write {path}: {error.strerror}.") from None


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
    axes.set_xticks(range(len(_HASHES)), [f"{k:,}" for k in _HASHES])
    axes.set_yticks(range(len(_CELLS)), [f"{m:,}" for m in _CELLS])
    axes.set_xlabel("k, hash functions (work of the server)")
    axes.set_ylabel("m, cells (bits of a report)")


def _draw_lines(axes: Axes, errors: SketchErrors) -> None:
    for j, k in enumerate(_HASHES):
        axes.plot(
            _CELLS,
            errors.surface[:, j],
            color=_COLORS[j],
            marker=_MARKERS[j],
            markersize=4,
            label=f"k = {k:,}",
        )
    sizes = [m for m, _ in errors.simulated]
    axes.plot(
        sizes,
        list(errors.simulated.values()),
        "x",
        color=VERMILION,
        markersize=9,
        markeredgewidth=2,
        label=f"one simulated sketch each, k = {_SIMULATED[0][1]},\n"
        f"values beyond rank {_FROM_RANK:,}",
    )
    axes.axhline(
        errors.floor, color="black", linestyle=":", label=f"limit of all sizes: {errors.floor:,.0f}"
    )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_ylim(top=float(errors.surface.max()) * _ROOM_FOR_LEGEND)
    axes.set_xticks(_CELLS, [f"{m:,}" for m in _CELLS])
    axes.set_xlabel("m, cells (bits of a report)")
    axes.set_ylabel("standard deviation (reports)")
    axes.legend(fontsize=8)
