"""Figures of a run. They show what tables hold; no number is computed here."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from fedhh.accounting.layer_anonymity import claim_over_run
from fedhh.arrays import Floats
from fedhh.experiments.config.labels import round_up
from fedhh.experiments.report.layer_figures import draw_coverage, draw_trie
from fedhh.experiments.report.run_tables import estimated_of
from fedhh.experiments.report.style import (
    BLACK,
    BLUE,
    FORMATS,
    GREY,
    ORANGE,
    SIZE,
    VERMILION,
    NotebookFigure,
    styled,
    write_figure,
)
from fedhh.experiments.report.titles import put_heading, put_note, put_title
from fedhh.experiments.run.directory import runs_in
from fedhh.experiments.run.privacy import central_before_run, central_epsilon, local_epsilon
from fedhh.experiments.run.result import RunResult
from fedhh.experiments.run.stored_result import read_result
from fedhh.experiments.study.look import Look

# Four kinds of discoveries: color, marker, and whether the mark is filled.
_KINDS = (
    (True, True, "significant", BLUE, "o"),
    (True, False, "within the noise, held", ORANGE, "s"),
    (False, True, "significant, held by no client", VERMILION, "X"),
    (False, False, "within the noise, held by no client", GREY, "v"),
)
_STRIP = (-0.9, -0.08)
"""Where words that no client holds stand: left of 0, in units of the linear part of the axis."""
_AS_HELD = "estimate = holders"
_GOLDEN = 0.6180339887498949
_TWO_SOURCES = (
    "Estimates and error bars: votes of the validation round. Significant: votes of all rounds "
    "that asked about the word, so that an estimate below 0 may be of a significant word."
)


def figures(result: RunResult) -> dict[str, Figure]:
    """Return a run's figures by file name; those by layer only where the layers are of a trie."""
    drawn = {"estimates": _single(draw_estimates, result, _title(result))}
    if _has_trie(result):
        drawn["coverage_by_layer"] = _single(draw_coverage, result, "Coverage by layer")
        drawn["trie_by_layer"] = draw_trie(result, f"The trie by layer\n{of_whom(result)}")
    return drawn


def write_figures(directory: Path, result: RunResult) -> None:
    """Write a run's figures into its directory, as PNG."""
    for name, figure in figures(result).items():
        write_figure(figure, directory / name, FORMATS[:1])


def plot_run(directory: Path, *, out: Path | None = None, look: Look | None = None) -> list[Path]:
    """Write the figures of a run, and of its baselines, as PNG, PDF and SVG; return the PNG files.

    Args:
        directory: A finished run's.
        out: Where the figures go, those of a baseline in a folder of its own; the run's
            directory if None.
        look: What a user asks of them; their own look if None.
    """
    stored = [(run, read_result(run).result) for run in runs_in(directory)]
    return [
        write_figure(figure, (out or directory) / run.relative_to(directory) / name, look=look)
        for run, result in stored
        for name, figure in figures(result).items()
    ]


def of_whom(result: RunResult) -> str:
    """Return the protocol and its epsilons, and in a second line population and seed."""
    local, before, after = (
        of(result.privacy, "item") for of in (local_epsilon, central_before_run, central_epsilon)
    )
    parts = [result.protocol.title]
    if math.isfinite(local):
        parts.append(f"local epsilon {round_up(local)}")
    delta = result.privacy.best("item", "central").delta
    central = round_up(before)
    if round_up(after) != central:
        central += f" before the run, {round_up(after)} after it,"
    parts.append(f"central epsilon {central} at delta {delta:g}")
    anonymity = claim_over_run(result.privacy.anonymity)
    if anonymity is not None:
        parts.append(f"k {anonymity.k:,} at alpha {anonymity.alpha:g}")
    name, seed = result.population["name"], f"seed {result.seed}"
    # A synthetic population's name has its seed, which is the run's.
    clients = name if name.endswith(f", {seed}") else f"{name}, {seed}"
    return f"{', '.join(parts)}\n{clients}"


@styled
def plot(result: RunResult) -> Figure:
    """Return a figure of coverage by layer, where there is a trie, and estimates against truth."""
    if not _has_trie(result):
        return _single(draw_estimates, result, _title(result))
    figure = NotebookFigure(figsize=(11, 4.4), layout="constrained")
    put_heading(figure, of_whom(result))
    left, right = figure.subplots(1, 2)
    draw_coverage(left, result)
    draw_estimates(right, result)
    _put_sources(figure, result)
    return figure


def draw_estimates(axes: Axes, result: RunResult) -> None:
    """Draw estimated contributors against true holders of each discovered word.

    Words that no client holds stand in a strip of their own, next to each other, so that they can
    be seen.
    """
    found = result.discoveries
    what = estimated_of(result.protocol.plan)
    axes.set_xlabel("clients that hold the word")
    axes.set_ylabel(f"estimated {what} ± 2 std. errors")
    if found.empty:
        axes.text(0.5, 0.5, "nothing was discovered", transform=axes.transAxes, ha="center")
        axes.set(xticks=[], yticks=[])
        return
    held = found["is_target"].astype(bool)
    largest = max(float(found["true_clients"].max()), float(found["estimated_clients"].max())) * 1.3
    linear = _count_scales(axes, float(found["std_error"].median()), largest)
    place = np.where(held, found["true_clients"], _spread(len(found)) * linear)
    for of_target, significant, label, color, marker in _KINDS:
        rows = (held == of_target) & (found["is_significant"] == significant)
        if rows.any():
            _draw_kind(axes, found[rows], place[rows.to_numpy()], f"{label} ({rows.sum():,})",
                       color=color, marker=marker)  # fmt: skip
    axes.plot([1, largest], [1, largest], color=BLACK, linestyle="--", linewidth=1, label=_AS_HELD)
    lowest = float(found["estimated_clients"].min())
    axes.set_ylim(1.2 * min(lowest, -linear), 2 * largest)
    if not held.all():
        axes.axvspan(_STRIP[0] * 1.1 * linear, 0, color="#F2F2F2", zorder=0)
    else:
        axes.set_xlim(left=0)
    axes.legend(loc="upper left", fontsize=8, title=f"{len(found):,} discovered words",
                title_fontsize=8, alignment="left")  # fmt: skip


def _title(result: RunResult) -> str:
    what = estimated_of(result.protocol.plan)
    return f"Estimated {'' if what == 'holders' else f'{what} '}and true holders"


def _put_sources(figure: Figure, result: RunResult) -> None:
    """Say below a figure of estimates which votes they are of, if significance is of others."""
    if (result.layers["kept_by"] == "evidence").any() and not result.discoveries.empty:
        put_note(figure, _TWO_SOURCES)


def _draw_kind(
    axes: Axes,
    rows: pd.DataFrame,
    place: Floats,
    label: str,
    *,
    color: str,
    marker: str,
) -> None:
    # All bars are one line with gaps: thousands of lines take seconds to draw.
    reach = 2 * rows["std_error"]
    ends = [rows["estimated_clients"] - reach, rows["estimated_clients"] + reach]
    gap = np.full(len(rows), np.nan)
    axes.plot(
        np.repeat(place, 3), np.column_stack([*ends, gap]).ravel(),
        linewidth=0.5, alpha=0.35, color=color, zorder=1.5,
    )  # fmt: skip
    axes.plot(
        place, rows["estimated_clients"], linestyle="none", marker=marker, markersize=3.4,
        markeredgewidth=0, alpha=0.6, color=color, label=label,
    )  # fmt: skip


def _spread(count: int) -> Floats:
    """Return places in the strip, ``(count,)``, evenly spread in any run of neighbors."""
    first, last = _STRIP
    return np.asarray(first + (last - first) * (np.arange(1, count + 1) * _GOLDEN % 1.0))


def _count_scales(axes: Axes, noise: float, largest: float) -> float:
    """Scale both axes by logarithm above the noise, linearly from there through 0.

    Returns:
        Up to where they are linear.
    """
    first = max(int(np.floor(np.log10(max(noise, 1.0)))), 0)
    powers = 10.0 ** np.arange(first, max(int(np.ceil(np.log10(largest))), first + 1) + 1)
    middle = sum(_STRIP) / 2 * powers[0]
    for axis, set_scale, zero in (
        (axes.xaxis, axes.set_xscale, middle),
        (axes.yaxis, axes.set_yscale, 0.0),
    ):
        set_scale("symlog", linthresh=powers[0], linscale=0.6)
        axis.set_major_locator(FixedLocator([zero, *powers]))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{max(value, 0):,.0f}"))
    axes.set_xlim(_STRIP[0] * 1.1 * powers[0], largest)
    return float(powers[0])


def _has_trie(result: RunResult) -> bool:
    """Return whether the server broadcast prefixes: not so in protocols of one round trip."""
    return bool((result.layers["num_prefixes"] > 0).any())


@styled
def _single(draw: Callable[[Axes, RunResult], None], result: RunResult, title: str) -> Figure:
    figure = NotebookFigure(figsize=(SIZE[0], SIZE[1] + 0.5), layout="constrained")
    axes = figure.subplots()
    draw(axes, result)
    put_title(axes, f"{title}\n{of_whom(result)}")
    if draw is draw_estimates:
        _put_sources(figure, result)
    return figure
