"""Which figures a sweep has, from its results file alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from fedhh.experiments.config.labels import short_label, value_text
from fedhh.experiments.report.gboard import published_beside
from fedhh.experiments.report.heat_map import draw_map, map_layout
from fedhh.experiments.report.style import write_figure
from fedhh.experiments.report.sweep_lines import draw_gains, draw_metric
from fedhh.experiments.report.tradeoff import draw_tradeoff, has_tradeoff
from fedhh.experiments.study.look import Look
from fedhh.experiments.sweep.axes import PROTOCOL
from fedhh.experiments.sweep.columns import (
    MOST_LINES,
    choose_layout,
    has_numbers,
    keep_where,
    num_combinations,
    require_numbers,
    varying,
)
from fedhh.experiments.sweep.directory import base_config, read_labeled_results
from fedhh.experiments.sweep.intervals import SAMPLER, sampling_gains
from fedhh.validation import InputError

METRICS = ("coverage", "precision", "recall", "f1")

_EPSILON = "privacy.local_epsilon"


def plot_sweep(
    directory: Path,
    *,
    out: Path | None = None,
    x: str | None = None,
    by: str | None = None,
    facet: Sequence[str] = (),
    where: Sequence[str] = (),
    metrics: Sequence[str] = METRICS,
) -> list[Path]:
    """Write a sweep's figures as PNG, PDF and SVG, and return the PNG files.

    Args:
        directory: A sweep's directory.
        out: Where the figures go; the same directory if None.
        x: See `sweep_figures`, as for all that follows.
        by: Likewise.
        facet: Likewise.
        where: Likewise.
        metrics: Likewise.

    Raises:
        InputError: As `sweep_figures`, or no figure can be drawn.
    """
    drawn = sweep_figures(directory, x=x, by=by, facet=facet, where=where, metrics=metrics)
    return write_figures(drawn, out or directory)


def write_figures(
    drawn: dict[str, Figure | str], out: Path, *, look: Look | None = None
) -> list[Path]:
    """Write those figures that could be drawn, and return their PNG files.

    Args:
        drawn: Figures by name, or why there is none.
        out: Where they go.
        look: What a user asks of them; their own look if None.

    Raises:
        InputError: None could; why the first one could not. Or the size that is asked for is too
            small.
    """
    figures = {name: figure for name, figure in drawn.items() if isinstance(figure, Figure)}
    if not figures:
        raise InputError(str(next(iter(drawn.values()))))
    return [write_figure(figure, out / name, look=look) for name, figure in figures.items()]


def sweep_figures(
    directory: Path,
    *,
    x: str | None = None,
    by: str | None = None,
    facet: Sequence[str] = (),
    where: Sequence[str] = (),
    metrics: Sequence[str] = METRICS,
) -> dict[str, Figure | str]:
    """Return a sweep's figures by name; in place of one that cannot be drawn, why.

    Args:
        directory: A sweep's directory.
        x: Setting along the horizontal axis; the number with the most values if None.
        by: Setting with a line for each value; all others together if None. Settings that x and
            it leave open make lines of their own.
        facet: Settings with a panel for each value; chosen where there are too many lines if none.
        where: ``KEY=VALUE`` of the cells to draw.
        metrics: Columns of the results to draw.

    Raises:
        InputError: There are no results, or no such column of numbers or setting in them.
    """
    table, description = read_labeled_results(directory)
    return figures_of(
        table, description, str(directory), x=x, by=by, facet=facet, where=where, metrics=metrics
    )


def figures_of(
    table: pd.DataFrame,
    description: dict[str, Any],
    origin: str,
    *,
    x: str | None = None,
    by: str | None = None,
    facet: Sequence[str] = (),
    where: Sequence[str] = (),
    metrics: Sequence[str] = METRICS,
) -> dict[str, Figure | str]:
    """Return the figures of labeled results, named in errors; all else as `sweep_figures`."""
    failed = description["failed"]
    require_numbers(table, [metric for metric in metrics if metric not in METRICS])
    table = keep_where(table, where)
    title = "\n".join(filter(None, (description["title"], _of_whom(table, description, where))))
    layout = choose_layout(table, description["axes"], x=x, by=by, facet=facet)
    grid = table[~table["beside_grid"]]
    shown = [metric for metric in metrics if has_numbers(grid, metric)]
    if not shown:
        raise InputError(f"{origin}: no numbers to draw in {', '.join(metrics)}.")
    beside = published_beside(table, description)
    over = map_layout(grid, layout, asked=bool(facet))
    in_place_of_lines = over is not None and num_combinations(grid, layout.by) > MOST_LINES
    drawn: dict[str, Callable[[], Figure]] = {}
    for metric in shown:
        if not in_place_of_lines:
            drawn[metric] = _later(
                draw_metric, table, layout, metric, title=title, failed=failed,
                beside=beside if metric == "coverage" else (),
            )  # fmt: skip
        if over is not None and (in_place_of_lines or metric == shown[0]):
            drawn[f"{metric}_map"] = _later(
                draw_map, grid, over, metric, title=title, failed=failed
            )
    if not in_place_of_lines and layout.settings and has_tradeoff(grid):
        drawn["tradeoff"] = _later(draw_tradeoff, table, layout, title=title, failed=failed)
    gains = sampling_gains(table, description["axes"])
    if layout.x and SAMPLER in (*layout.by, *layout.facet) and not gains.empty:
        drawn["sampling_gain"] = _later(draw_gains, gains, layout, title=title, failed=failed)
    return {name: _or_reason(draw) for name, draw in drawn.items()}


def _later(draw: Callable[..., Figure], *arguments: Any, **options: Any) -> Callable[[], Figure]:
    return lambda: draw(*arguments, **options)


def _or_reason(draw: Callable[[], Figure]) -> Figure | str:
    try:
        return draw()
    except InputError as error:
        return str(error)


def _of_whom(table: pd.DataFrame, description: dict[str, Any], where: Sequence[str]) -> str:
    """Return the protocol and epsilon that all cells share, and which cells are shown."""
    grid = table[~table["beside_grid"]]
    differ = varying(grid)
    parts = []
    config = base_config(description)
    if config is not None:
        own = grid["protocol.name"].iloc[0] if "protocol.name" in grid else config.protocol.name
        if PROTOCOL in grid:
            if PROTOCOL not in differ:
                parts.append(str(grid[PROTOCOL].iloc[0]))
        elif own == config.protocol.name and "protocol.name" not in differ:
            parts.append(description.get("protocol_title") or config.protocol.name)
        if _EPSILON not in differ:
            epsilon = grid[_EPSILON].iloc[0] if _EPSILON in grid else config.privacy.local_epsilon
            parts.append(f"local epsilon {value_text(float(epsilon))}")
    stated = (_EPSILON, PROTOCOL)
    for condition in where:
        path, _, value = condition.partition("=")
        if path.strip() not in stated or path.strip() in differ:
            parts.append(f"{short_label(path.strip())} {value.strip()}")
    return ", ".join(parts)
