"""Coverage against central epsilon, whatever made both."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from fedhh.experiments.config.labels import axis_label
from fedhh.experiments.report.panels import (
    LOG_SPAN,
    finish,
    label_axes,
    open_figure,
    panels_of,
    put_legend,
    scale_y,
)
from fedhh.experiments.report.style import STYLE, series
from fedhh.experiments.report.sweep_lines import lines_of
from fedhh.experiments.report.titles import name_panel
from fedhh.experiments.sweep.columns import MOST_LINES, Layout
from fedhh.experiments.sweep.intervals import summarize
from fedhh.validation import InputError

_CENTRAL = ("central_epsilon_before_run", "central_epsilon")
"""What can be claimed before the run; results of earlier versions have what holds after it."""

_LOCAL = "privacy.local_epsilon"
_WIDE_LOG_SPAN = 1000


def has_tradeoff(grid: pd.DataFrame) -> bool:
    """Return whether there are finite central epsilons that differ by more than a percent."""
    central = _central(grid)
    if central is None:
        return False
    finite = grid[central][np.isfinite(grid[central].astype(float))]
    return bool(len(finite) and finite.max() > 1.01 * finite.min())


def _central(table: pd.DataFrame) -> str | None:
    """Return the column of the central epsilon to draw; None if there is none."""
    return next((name for name in _CENTRAL if name in table), None)


def draw_tradeoff(table: pd.DataFrame, layout: Layout, *, title: str, failed: int = 0) -> Figure:
    """Return coverage against central epsilon, one line per combination of ``layout.by``.

    Raises:
        InputError: There are too many lines or panels for one figure.
    """
    central = _central(table)
    assert central is not None
    finite = table[np.isfinite(table[central].astype(float)) & ~table["beside_grid"]]
    rows = summarize(finite, layout.settings, "coverage")
    rows["central"] = summarize(finite, layout.settings, central)["mean"]
    names = [label for label, _ in lines_of(rows, layout)]
    if len(names) > MOST_LINES:
        raise InputError(
            f"{len(names)} kinds of points are too many for one figure (at most {MOST_LINES}); "
            "choose panels with --facet SETTING or cells with --where KEY=VALUE."
        )
    with mpl.rc_context(STYLE):
        parts = list(panels_of(rows, layout))
        figure, panels = open_figure(len(parts), sharex=True, sharey=True)
        for axes, (panel, part) in zip(panels, parts, strict=True):
            for label, line in lines_of(part, layout):
                ordered = line.sort_values("central")
                look = series(names.index(label), len(names))
                # Along other settings central epsilon hardly moves, and a line would only zigzag.
                if layout.x != _LOCAL:
                    look["linestyle"] = "none"
                error = np.nan_to_num(
                    [ordered["mean"] - ordered["low"], ordered["high"] - ordered["mean"]]
                )
                axes.errorbar(
                    ordered["central"], ordered["mean"], yerr=error, fmt="none", elinewidth=0.8,
                    color=look["color"], alpha=0.6,
                )  # fmt: skip
                axes.plot(ordered["central"], ordered["mean"], label=label, **look)
            if panel:
                name_panel(axes, panel)
        least, most = rows["central"].min(), rows["central"].max()
        for axes in panels:
            if most >= LOG_SPAN * least > 0:
                axes.set_xscale("log")
                steps = (1.0,) if most > _WIDE_LOG_SPAN * least else (1.0, 2.0, 5.0)
                axes.xaxis.set_major_locator(LogLocator(subs=steps))
                axes.xaxis.set_minor_locator(NullLocator())
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.4g}"))
        deltas = ", ".join(f"{delta:g}" for delta in sorted(finite["delta"].unique()))
        label_axes(panels, f"{axis_label(central)} (delta = {deltas})", axis_label("coverage"))
        scale_y(panels, "coverage")
        put_legend(figure, layout)
        finish(figure, rows["seeds"], title, failed)
    return figure
