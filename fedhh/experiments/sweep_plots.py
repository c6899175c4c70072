"""Figures of a sweep, from its results file alone; means and intervals come from `intervals`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    LogLocator,
    NullLocator,
    PercentFormatter,
)

from fedhh.experiments.intervals import (
    GAIN,
    SAMPLER,
    STATEMENT,
    failed_text,
    sampling_gains,
    seeds_text,
    summarize,
)
from fedhh.experiments.labels import axis_label, is_share, short_label, value_text
from fedhh.experiments.plots import BLUE, GREEN, GREY, ORANGE, PURPLE, STYLE, VERMILION
from fedhh.experiments.results import read_labeled_results
from fedhh.experiments.sweep_settings import (
    EXTRA,
    Layout,
    choose_layout,
    has_numbers,
    is_numeric,
    require_numbers,
)
from fedhh.simulation.files import whole_file
from fedhh.validation import InputError

METRICS = ("coverage", "precision", "recall", "f1")
FORMATS = ("png", "pdf", "svg")

# Black ends Okabe and Ito's palette; every line has its own marker and dashes as well.
_COLORS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, "#000000", "#56B4E9")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
_CENTRAL = "central_epsilon"
_LOCAL = "privacy.local_epsilon"
_LOG_SPAN, _WIDE_LOG_SPAN = 20, 1000
_MOST_TICKS = 14
_LONGEST_LABEL = 20
# Cells beside the grid: greys, each line with its own dashes.
_GREYS, _GREY_DASHES = (GREY, "#333333", "#ABABAB"), ("--", ":", "-.", (0, (8, 2, 1, 2, 1, 2)))
_REFERENCES = tuple((_GREYS[i % 3], _GREY_DASHES[i % 4]) for i in range(12))
# Letters of all labels below a figure that fit in one row.
_ROW_LENGTH = 60
_TITLE_WIDTH, _TITLE_WIDTH_BESIDE_LEGEND = 54, 42
_SIZE = (6.4, 4.0)
# Vector files without a date are the same for the same results.
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    "svg": {"Date": None, "Creator": None},
}


def plot_sweep(
    directory: Path,
    *,
    out: Path | None = None,
    x: str | None = None,
    by: str | None = None,
    metrics: Sequence[str] = METRICS,
) -> list[Path]:
    """Write a sweep's figures as PNG, PDF and SVG, and return the PNG files.

    Args:
        directory: A sweep's directory.
        out: Where the figures go; the same directory if None.
        x: Setting along the horizontal axis; the number with the most values if None.
        by: Setting with a line for each value; all others together if None. Settings that x and
            it leave open make lines of their own.
        metrics: Columns of the results to draw.

    Raises:
        InputError: There are no results, or no such column of numbers in them; or the settings
            make too many lines for one figure.
    """
    table, description = read_labeled_results(directory)
    title, failed = description["title"], description["failed"]
    require_numbers(table, [metric for metric in metrics if metric not in METRICS])
    layout = choose_layout(table, description["axes"], x=x, by=by)
    grid = table[~table["beside_grid"]]
    drawn = [metric for metric in metrics if has_numbers(grid, metric)]
    if not drawn:
        raise InputError(f"{directory}: no numbers to draw in {', '.join(metrics)}.")
    figures: dict[str, Figure] = {}
    is_map = layout.x and len(layout.by) == 1 and is_numeric(grid, layout.by[0])
    too_many = bool(layout.by) and len(grid[list(layout.by)].drop_duplicates()) > len(_COLORS)
    for metric in drawn:
        if not (is_map and too_many):
            figures[metric] = draw_metric(table, layout, metric, title=title, failed=failed)
        if is_map and (too_many or metric == drawn[0]):
            figures[f"{metric}_map"] = draw_map(
                grid, layout.x, layout.by[0], metric, title=title, failed=failed
            )
    if not too_many and _CENTRAL in grid and _varies(grid[_CENTRAL]):
        figures["tradeoff"] = draw_tradeoff(table, layout, title=title, failed=failed)
    gains = sampling_gains(table, description["axes"])
    if layout.x and SAMPLER in layout.by and not gains.empty:
        figures["sampling_gain"] = draw_gains(gains, layout, title=title, failed=failed)
    return [_write(figure, (out or directory) / name) for name, figure in figures.items()]


def draw_metric(
    table: pd.DataFrame, layout: Layout, metric: str, *, title: str, failed: int = 0
) -> Figure:
    """Return a figure of a metric's mean and interval over seeds; ``failed`` cells are missing."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=_SIZE, layout="constrained")
        axes = figure.subplots()
        grid = table[~table["beside_grid"]]
        if layout.x:
            rows = _draw_lines(axes, grid, layout, metric)
            _scale_x(axes, grid[layout.x].unique())
            axes.set_xlabel(axis_label(layout.x))
        else:
            rows = _draw_points(axes, grid, layout, metric)
        extras = _draw_references(axes, table[table["beside_grid"]], metric)
        _scale_y(axes, metric)
        seeds = [*rows["seeds"], *extras]
        _finish(figure, seeds, title, failed, narrow=_legend(figure, layout))
    return figure


def draw_gains(gains: pd.DataFrame, layout: Layout, *, title: str, failed: int = 0) -> Figure:
    """Return a figure of how much better random sampling is than greedy, paired by seed."""
    others = Layout(x=layout.x, by=tuple(path for path in layout.by if path != SAMPLER))
    figure = draw_metric(gains.assign(beside_grid=False), others, GAIN, title=title, failed=failed)
    figure.axes[0].axhline(0, color=GREY, linewidth=1)
    return figure


def draw_map(
    table: pd.DataFrame, x: str, y: str, metric: str, *, title: str, failed: int = 0
) -> Figure:
    """Return a heat map of a metric's mean over two settings."""
    rows = summarize(table, [x, y], metric)
    means = rows.pivot(index=y, columns=x, values="mean")
    means = means.sort_index().sort_index(axis=1)
    with mpl.rc_context({**STYLE, "axes.grid": False}):
        width = max(_SIZE[0], 2.2 + 0.55 * means.shape[1])
        height = max(3.8, 1.6 + 0.42 * means.shape[0])
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots()
        values = means.to_numpy(dtype=np.float64)
        lowest, highest = float(np.nanmin(values)), float(np.nanmax(values))
        lowest = 0.0 if lowest < highest / 2 else lowest
        image = axes.imshow(values, cmap="cividis", aspect="auto", origin="lower", vmin=lowest)
        middle = (lowest + highest) / 2
        for (row, column), value in np.ndenumerate(values):
            if np.isfinite(value):
                color = "white" if value < middle else "black"
                text = f"{value:.0%}" if is_share(metric) else f"{value:,.3g}"
                axes.text(column, row, text, ha="center", va="center", color=color, fontsize=8)
        axes.set_xticks(range(means.shape[1]), [value_text(v) for v in means.columns])
        axes.set_yticks(range(means.shape[0]), [value_text(v) for v in means.index])
        axes.set_xlabel(axis_label(x))
        axes.set_ylabel(axis_label(y))
        bar = figure.colorbar(image, ax=axes, label=axis_label(metric))
        if is_share(metric):
            bar.ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        _finish(figure, rows["seeds"], title, failed, interval=False)
    return figure


def draw_tradeoff(table: pd.DataFrame, layout: Layout, *, title: str, failed: int = 0) -> Figure:
    """Return coverage against central epsilon, one line per combination of ``layout.by``."""
    paths = [*([layout.x] if layout.x else []), *layout.by]
    finite = table[np.isfinite(table[_CENTRAL].astype(float)) & ~table["beside_grid"]]
    rows = summarize(finite, paths, "coverage")
    rows["central"] = summarize(finite, paths, _CENTRAL)["mean"]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=_SIZE, layout="constrained")
        axes = figure.subplots()
        groups = _groups(rows, layout.by)
        for number, (label, part) in enumerate(groups):
            ordered = part.sort_values("central")
            # Along other settings central epsilon hardly moves, and a line would only zigzag.
            style = _DASHES[number] if layout.x == _LOCAL else "none"
            error = np.nan_to_num([part["mean"] - part["low"], part["high"] - part["mean"]])
            axes.errorbar(
                part["central"], part["mean"], yerr=error, fmt="none", elinewidth=0.8,
                color=_COLORS[number], alpha=0.6,
            )  # fmt: skip
            axes.plot(
                ordered["central"], ordered["mean"], color=_COLORS[number], linestyle=style,
                marker=_MARKERS[number], markersize=5, label=label,
            )  # fmt: skip
        least, most = rows["central"].min(), rows["central"].max()
        if most >= _LOG_SPAN * least > 0:
            axes.set_xscale("log")
            steps = (1.0,) if most > _WIDE_LOG_SPAN * least else (1.0, 2.0, 5.0)
            axes.xaxis.set_major_locator(LogLocator(subs=steps))
            axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.4g}"))
        deltas = ", ".join(f"{delta:g}" for delta in sorted(finite["delta"].unique()))
        axes.set_xlabel(f"{axis_label(_CENTRAL)} (delta = {deltas})")
        _scale_y(axes, "coverage")
        _finish(figure, rows["seeds"], title, failed, narrow=_legend(figure, layout))
    return figure


def _varies(epsilons: pd.Series[Any]) -> bool:
    """Return whether there are finite epsilons that differ by more than a percent."""
    finite = epsilons[np.isfinite(epsilons.astype(float))]
    return bool(len(finite) and finite.max() > 1.01 * finite.min())


def _draw_lines(axes: Axes, table: pd.DataFrame, layout: Layout, metric: str) -> pd.DataFrame:
    """Draw a line for each combination of settings, and return what it shows."""
    rows = summarize(table, [layout.x, *layout.by], metric)
    groups = _groups(rows, layout.by)
    if len(groups) > len(_COLORS):
        raise InputError(
            f"{len(groups)} lines are too many for one figure of {layout.x} (at most "
            f"{len(_COLORS)}): one for each combination of {', '.join(layout.by)}; choose another "
            "--x, run a sweep with fewer values, or use fedhh table summary."
        )
    for number, (label, part) in enumerate(groups):
        ordered = part.sort_values(layout.x)
        _line(axes, ordered[layout.x], ordered, number, label)
    return rows


def _line(
    axes: Axes, x: pd.Series[Any], rows: pd.DataFrame, number: int, label: str | None
) -> None:
    axes.plot(
        x, rows["mean"], color=_COLORS[number], marker=_MARKERS[number], markersize=4,
        linestyle=_DASHES[number], label=label,
    )  # fmt: skip
    axes.fill_between(x, rows["low"], rows["high"], color=_COLORS[number], alpha=0.18, linewidth=0)


def _draw_points(axes: Axes, table: pd.DataFrame, layout: Layout, metric: str) -> pd.DataFrame:
    """Draw a point for each combination of settings without an order, and return what it shows."""
    if not layout.by:
        rows = summarize(table.assign(all="all"), ["all"], metric)
        names = ["all seeds"]
    else:
        rows = summarize(table, layout.by, metric)
        names = [_label(row, layout.by) for row in rows.to_dict("records")]
    error = np.nan_to_num(rows["high"] - rows["mean"])
    axes.errorbar(
        range(len(rows)), rows["mean"], yerr=error, fmt="o", color=BLUE, markersize=6, capsize=4
    )
    broken = [name.replace(", ", "\n") for name in names]
    length = _letters([max(name.split("\n"), key=len) for name in broken])
    if length <= _ROW_LENGTH or len(layout.by) > 1:
        axes.set_xticks(range(len(rows)), broken)
        figure = axes.figure
        assert isinstance(figure, Figure)
        figure.set_size_inches(_SIZE[0] * max(1.0, length / _ROW_LENGTH), _SIZE[1])
    else:
        axes.set_xticks(range(len(rows)), names, rotation=40, ha="right", rotation_mode="anchor")
    axes.set_xlim(-0.6, len(rows) - 0.4)
    axes.grid(visible=False, axis="x")
    return rows


def _draw_references(axes: Axes, table: pd.DataFrame, metric: str) -> list[int]:
    """Draw cells beside the grid as horizontal lines; return over how many seeds each is."""
    if table.empty or not has_numbers(table, metric):
        return []
    # There is no place for an infinite epsilon.
    finite = table[np.isfinite(table[metric].astype(float))]
    rows = summarize(finite, [EXTRA], metric).to_dict("records")
    if len(rows) > len(_REFERENCES):
        raise InputError(
            f"{len(rows)} lines for cells beside the grid are too many for one figure (at most "
            f"{len(_REFERENCES)}); use fedhh table summary, or run a sweep with fewer sweep.extra."
        )
    for row, (color, dashes) in zip(rows, _REFERENCES, strict=False):
        label = row[EXTRA].replace(" (", "\n(").replace(", ", ",\n")
        axes.axhline(row["mean"], color=color, linestyle=dashes, linewidth=1.5, label=label)
    return [row["seeds"] for row in rows]


def _groups(rows: pd.DataFrame, by: Sequence[str]) -> list[tuple[str | None, pd.DataFrame]]:
    """Return a label and the rows for each combination, in the order of the file."""
    if not by:
        return [(None, rows)]
    return [
        (_label(part.iloc[0].to_dict(), by), part)
        for _, part in rows.groupby(list(by), sort=False, dropna=False)
    ]


def _label(row: dict[Any, Any], by: Sequence[str]) -> str:
    """Return a line's label; numbers get their name where there are several settings."""
    several = len(by) > 1
    return ", ".join(
        value_text(row[path])
        if not several or isinstance(row[path], str)
        else f"{short_label(path)} {value_text(row[path])}"
        for path in by
    )


def _letters(labels: Sequence[str]) -> int:
    """Return how many letters evenly spaced labels need below a figure."""
    return len(labels) * max(map(len, labels))


def _scale_x(axes: Axes, values: Any) -> None:
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    if ordered[0] > 0 and ordered[-1] / ordered[0] >= _LOG_SPAN:
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
    if len(ordered) <= _MOST_TICKS:
        axes.xaxis.set_major_locator(FixedLocator(ordered.tolist()))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: value_text(float(value))))
        if _letters([value_text(float(value)) for value in ordered]) > _ROW_LENGTH:
            axes.tick_params(axis="x", labelrotation=45)


def _scale_y(axes: Axes, metric: str) -> None:
    axes.set_ylabel(axis_label(metric))
    _, top = axes.get_ylim()
    if is_share(metric):
        # A marker at the largest value must not be cut.
        axes.set_ylim(0, min(1.02, max(top, 1.05 * float(axes.dataLim.y1), 0.05)))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def _legend(figure: Figure, layout: Layout) -> bool:
    """Put the legend beside the axes, or above them if its labels are long; return if beside."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    if not labels:
        return False
    heading = ", ".join(short_label(path) for path in layout.by) or None
    if max(len(label) for label in labels) <= _LONGEST_LABEL:
        figure.legend(handles, labels, loc="outside right upper", title=heading)
        return True
    rows = -(-len(labels) // 2)
    figure.set_size_inches(_SIZE[0], _SIZE[1] + 0.5 + 0.22 * rows)
    figure.legend(handles, labels, loc="outside upper center", ncols=2, fontsize=8)
    return False


def _finish(
    figure: Figure,
    counts: Iterable[int],
    title: str,
    failed: int,
    *,
    interval: bool = True,
    narrow: bool = False,
) -> None:
    """Put title, and below the figure what the marks mean, over how many seeds, and what failed."""
    seeds = seeds_text(counts)
    if seeds == "1":
        note = "one seed, so no interval"
    elif interval:
        note = f"mean and {STATEMENT} ({seeds})"
    else:
        note = f"mean over {seeds} seeds"
    note = "; ".join(filter(None, (note, failed_text(failed))))
    width = _TITLE_WIDTH_BESIDE_LEGEND if narrow else _TITLE_WIDTH
    figure.axes[0].set_title(textwrap.fill(title, width), fontsize=11, pad=10)
    figure.supxlabel(note, fontsize=8, color="#555555")


def _write(figure: Figure, stem: Path) -> Path:
    with mpl.rc_context({"svg.hashsalt": "fedhh", "pdf.fonttype": 42}):
        for kind in FORMATS:
            with whole_file(stem.with_suffix(f".{kind}")) as temporary:
                figure.savefig(temporary, format=kind, dpi=200, metadata=_METADATA[kind])
    return stem.with_suffix(".png")
