"""The price of trust: coverage by the central epsilon that all protocols of a comparison share.

A line for each protocol, in the color of whom its clients trust, below what no central mechanism
does better.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedhh import plugins
from fedhh.experiments.config.labels import axis_label
from fedhh.experiments.config.toml_file import parse_toml
from fedhh.experiments.planner.trust import CENTRAL, LOCAL, TRUSTED, stated_or_guaranteed
from fedhh.experiments.report.panels import finish, label_axes, scale_x, scale_y
from fedhh.experiments.report.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    MARKERS,
    ORANGE,
    PURPLE,
    VERMILION,
    NotebookFigure,
    log_scale,
    styled,
)
from fedhh.experiments.report.titles import shown_labels
from fedhh.experiments.sweep.axes import PROTOCOL, SWEEP
from fedhh.experiments.sweep.central_bound import CentralBound, central_bound
from fedhh.experiments.sweep.central_target import TARGETS
from fedhh.experiments.sweep.columns import follows, has_numbers, is_numeric, varying
from fedhh.experiments.sweep.intervals import summarize
from fedhh.experiments.sweep.plan import listed_protocol
from fedhh.server.registry import protocol_class
from fedhh.validation import InputError

NAME = "price_of_trust"
COVERAGE = "coverage"

_COLORS = {
    LOCAL: BLUE,
    "secure aggregation": GREEN,
    "two servers": PURPLE,
    "hybrid": ORANGE,
    CENTRAL: VERMILION,
}
_UNKNOWN = "unknown here"
_SIZE = (8.2, 5.4)
_MOST_LINES = 16
_LONGEST_LABEL = 32
_LABEL = 9
"""Points of a name at a line's end."""
_APART = 1.3 * _LABEL / 72
"""Inches from one name to the next."""
_ASIDE = 0.42
"""Inches from the end of the lines to their names."""
_BOUND = ("no central mechanism", "does better")
_POINTS_OF_BOUND = 33


def has_price(grid: pd.DataFrame, description: dict[str, Any]) -> bool:
    """Return whether results compare several protocols at several central epsilons."""
    target = _target(grid)
    numbers = (target, COVERAGE, "local_epsilon", "delta", "target_words", "target_contributions")
    return bool(
        description["sweep"]
        and target
        and {PROTOCOL, "population", *numbers} <= set(grid.columns)
        and all(is_numeric(grid, name) for name in numbers)
        and has_numbers(grid, COVERAGE)
        and grid[target].nunique() > 1
        and grid[target].min() > 0
        and grid[PROTOCOL].nunique() > 1
    )


@styled
def draw_price(
    grid: pd.DataFrame, description: dict[str, Any], *, title: str, failed: int = 0
) -> Figure:
    """Return the figure of a comparison that `has_price`.

    Args:
        grid: Results without cells outside the grid.
        description: What the results' file says of the sweep.
        title: Of the figure.
        failed: How many cells have no result.

    Raises:
        InputError: More than protocols and epsilons varies, or there are too many protocols.
    """
    target = _target(grid)
    others = [path for path in varying(grid) if not follows(grid, [target, PROTOCOL], path)]
    if others:
        raise InputError(
            f"{NAME}: expected one value of {', '.join(others)}; choose it with --where KEY=VALUE."
        )
    rows = summarize(grid, [target, PROTOCOL], COVERAGE)
    names = list(dict.fromkeys(rows[PROTOCOL]))
    if len(names) > _MOST_LINES:
        raise InputError(
            f"{NAME}: {len(names)} protocols are too many for one figure (at most {_MOST_LINES}); "
            "choose some with --where protocol=NAME."
        )
    least, most = float(rows[target].min()), float(rows[target].max())
    epsilons = np.geomspace(least, most, _POINTS_OF_BOUND)
    bound = central_bound(grid, description, epsilons.tolist())
    figure = NotebookFigure(figsize=_SIZE, layout="constrained")
    axes = figure.subplots()
    if bound.coverage:
        axes.plot(epsilons, bound.coverage, color=BLACK, linestyle="--", linewidth=1.3)
    trust = _trust_models(grid, description)
    _draw_lines(axes, rows, target, trust)
    log_scale(axes.xaxis)
    scale_x([axes], rows[target].unique())
    delta = ", ".join(f"{each:g}" for each in sorted(grid["delta"].unique()))
    label_axes([axes], f"{axis_label(target)} (delta = {delta})", axis_label(COVERAGE))
    scale_y([axes], COVERAGE)
    _put_legend(figure, [trust[name] for name in names])
    finish(figure, rows["seeds"], title, failed, further=_of_bound(bound))
    # What is around the axes decides how high they are, and with that how far names are apart.
    figure.draw_without_rendering()
    _name_lines(axes, rows, target, trust, bound)
    return figure


def _target(grid: pd.DataFrame) -> str:
    return next((path for path in TARGETS if path in grid), "")


def _trust_models(grid: pd.DataFrame, description: dict[str, Any]) -> dict[Any, str]:
    """Return the trust model of each protocol, by its label."""
    file = parse_toml(description["sweep"], SWEEP)
    models = {}
    for label, rows in grid.groupby(PROTOCOL, sort=False):
        try:
            with plugins.disabled():
                name = listed_protocol(file, file[SWEEP]["protocols"][label])["name"]
                stated = protocol_class(name).trust_model
        except (InputError, KeyError, TypeError, AttributeError):
            # Somebody else's class, which a directory that is read may not import; or no protocol.
            models[label] = _UNKNOWN
        else:
            models[label] = stated_or_guaranteed(stated, float(rows["local_epsilon"].max()))
    return models


def _draw_lines(axes: Axes, rows: pd.DataFrame, target: str, trust: dict[Any, str]) -> None:
    marks = {model: itertools.cycle(MARKERS) for model in trust.values()}
    for label, line in rows.groupby(PROTOCOL, sort=False):
        model = trust[label]
        ordered = line.sort_values(target)
        reach = np.nan_to_num([ordered["mean"] - ordered["low"], ordered["high"] - ordered["mean"]])
        axes.errorbar(
            ordered[target], ordered["mean"], yerr=reach, color=_color(model),
            marker=next(marks[model]), markersize=4.5, markeredgecolor="white",
            markeredgewidth=0.4, linewidth=1.5, elinewidth=1.1, capsize=3,
        )  # fmt: skip


def _name_lines(
    axes: Axes, rows: pd.DataFrame, target: str, trust: dict[Any, str], bound: CentralBound
) -> None:
    """Put each line's name to the right of its end, none over another one."""
    ends: list[tuple[float, float, str, str]] = []
    for label, line in rows.groupby(PROTOCOL, sort=False):
        end = line.sort_values(target).iloc[-1]
        color = _color(trust[label])
        ends.append((float(end["mean"]), float(end[target]), str(label), color))
    most = float(rows[target].max())
    if bound.coverage:
        ends += [(bound.coverage[-1], most, text, BLACK) for text in reversed(_BOUND)]
    ends.sort(key=lambda end: end[0])
    low, high = axes.get_ylim()
    apart = _APART * axes.figure.dpi / axes.get_window_extent().height * (high - low)
    places = spread([end[0] for end in ends], apart)
    shown = shown_labels([end[2] for end in ends], _LONGEST_LABEL)
    # As far aside whatever range of epsilons is drawn.
    end, _ = axes.transData.transform((most, low))
    aside, _ = axes.transData.inverted().transform((end + _ASIDE * axes.figure.dpi, 0))
    for (y, x, _, color), place, text in zip(ends, places, shown, strict=True):
        axes.annotate(
            text, (x, y), xytext=(aside, place), color=color, fontsize=_LABEL,
            va="center", annotation_clip=False,
            arrowprops={
                "arrowstyle": "-", "color": color, "linewidth": 0.6, "relpos": (0, 0.5),
                "shrinkA": 1, "shrinkB": 4,
            },
        )  # fmt: skip


def spread(values: Sequence[float], apart: float) -> list[float]:
    """Return ascending places near ascending values, each at least so far from the next.

    They are the nearest ones by the sum of squares.

    >>> spread([0.0, 1.0, 1.0, 5.0], 1.0)
    [-0.333..., 0.666..., 1.666..., 5.0]
    """
    # Less their distances, places only have to ascend: pools of adjacent violators.
    pools: list[list[float]] = []
    for number, value in enumerate(values):
        pools.append([value - number * apart])
        while len(pools) > 1 and np.mean(pools[-2]) > np.mean(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    level = [float(np.mean(pool)) for pool in pools for _ in pool]
    return [place + number * apart for number, place in enumerate(level)]


def _put_legend(figure: Figure, models: Sequence[str]) -> None:
    order = [*_COLORS, _UNKNOWN]
    present = sorted(dict.fromkeys(models), key=order.index)
    handles = [Line2D([], [], color=_color(model), linewidth=2.5) for model in present]
    labels = [TRUSTED.get(model, model) for model in present]
    figure.legend(
        handles, labels, loc="outside upper center", ncols=2, fontsize=_LABEL,
        title="clients trust", title_fontsize=_LABEL,
    )  # fmt: skip


def _of_bound(bound: CentralBound) -> str:
    if bound.why_not:
        return f"without what no central mechanism does better, since {bound.why_not}"
    return f"dashed: for all that publish held words alone, on {bound.clients}"


def _color(model: str) -> str:
    return _COLORS.get(model, GREY)
