"""Which figures a sweep has, from its results file alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from fedhh.experiments.config.labels import short_label, value_text
from fedhh.experiments.report.gboard import published_to_compare
from fedhh.experiments.report.heat_map import draw_map, map_layout
from fedhh.experiments.report.language_figure import NAME as LANGUAGES
from fedhh.experiments.report.language_figure import draw_languages, has_languages
from fedhh.experiments.report.map_bounds import bounds_of_map
from fedhh.experiments.report.price_of_trust import COVERAGE, draw_price, has_price
from fedhh.experiments.report.price_of_trust import NAME as PRICE
from fedhh.experiments.report.style import write_figure
from fedhh.experiments.report.sweep_lines import (
    draw_gains,
    draw_metric,
    draw_tradeoff,
    has_tradeoff,
)
from fedhh.experiments.study.kinds import Drawing
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

METRICS = (COVERAGE, "precision", "recall", "f1")

_EPSILON = "privacy.local_epsilon"


def plot_sweep(directory: Path, **asked: Any) -> list[Path]:
    """Write a sweep's figures as PNG, PDF and SVG, and return the PNG files.

    Args:
        directory: A sweep's directory, where the figures go if ``out`` is None.
        asked: The fields of `Drawing`.
    """
    drawing = Drawing(**asked)
    return write_figures(sweep_figures(directory, **asked), directory, drawing)


def write_figures(drawn: dict[str, Figure | str], directory: Path, drawing: Drawing) -> list[Path]:
    """Write those figures that could be drawn, and return their PNG files.

    Raises:
        InputError: None could; why the first one could not. Or the size that is asked for is too
            small.
    """
    figures = {name: figure for name, figure in drawn.items() if isinstance(figure, Figure)}
    if not figures:
        raise InputError(str(next(iter(drawn.values()))))
    out = drawing.out or directory
    return [write_figure(each, out / name, look=drawing.look) for name, each in figures.items()]


def sweep_figures(directory: Path, **asked: Any) -> dict[str, Figure | str]:
    """Return the figures of a sweep's directory, as `figures_of`; ``asked`` as `plot_sweep`."""
    return figures_of(*read_labeled_results(directory), str(directory), Drawing(**asked))


def figures_of(
    table: pd.DataFrame, description: dict[str, Any], origin: str, drawing: Drawing
) -> dict[str, Figure | str]:
    """Return a sweep's figures by name; in place of one that cannot be drawn, why.

    Args:
        table: Labeled results.
        description: Of them.
        origin: Where they are from, for errors.
        drawing: Settings that ``x`` and ``by`` leave open make lines of their own, or panels where
            there are too many. Of metrics, `METRICS` if there are none.
    """
    metrics, where = drawing.metrics or METRICS, drawing.where
    failed = description["failed"]
    require_numbers(table, [metric for metric in metrics if metric not in METRICS])
    table = keep_where(table, where)
    title = "\n".join(filter(None, (description["title"], _of_whom(table, description, where))))
    layout = choose_layout(
        table, description["axes"], x=drawing.x, by=drawing.by, facet=drawing.facet
    )
    grid = table[~table["beside_grid"]]
    shown = [metric for metric in metrics if has_numbers(grid, metric)]
    if not shown:
        raise InputError(f"{origin}: no numbers to draw in {', '.join(metrics)}.")
    to_compare = published_to_compare(table, description)
    over = map_layout(grid, layout, asked=bool(drawing.facet))
    in_place_of_lines = over is not None and num_combinations(grid, layout.by) > MOST_LINES
    drawn: dict[str, Callable[..., Figure]] = {}
    if COVERAGE in shown and has_price(grid, description):
        drawn[PRICE] = partial(draw_price, grid, description)
    if COVERAGE in shown and has_languages(grid):
        drawn[LANGUAGES] = partial(draw_languages, grid)
    for metric in shown:
        if not in_place_of_lines:
            stated = to_compare if metric == COVERAGE else ()
            drawn[metric] = partial(draw_metric, table, layout, metric, to_compare=stated)
        if over is not None and (in_place_of_lines or metric == shown[0]):
            beside = bounds_of_map(grid, description, over) if metric == COVERAGE else []
            drawn[f"{metric}_map"] = partial(draw_map, grid, over, metric, beside=beside)
    if not in_place_of_lines and layout.settings and has_tradeoff(grid):
        drawn["tradeoff"] = partial(draw_tradeoff, table, layout)
    gains = sampling_gains(table, description["axes"])
    if layout.x and SAMPLER in (*layout.by, *layout.facet) and not gains.empty:
        drawn["sampling_gain"] = partial(draw_gains, gains, layout)
    figures: dict[str, Figure | str] = {}
    for name, draw in drawn.items():
        try:
            figures[name] = draw(title=title, failed=failed)
        except InputError as error:
            figures[name] = str(error)
    return figures


def _of_whom(table: pd.DataFrame, description: dict[str, Any], where: Sequence[str]) -> str:
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
