"""Figures of a pipeline, from the tables and the record in its directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, MaxNLocator, NullLocator

from fedhh.experiments.report.style import (
    BLUE,
    FORMATS,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    STYLE,
    VERMILION,
    NotebookFigure,
    in_percent,
    series,
    write_figure,
)
from fedhh.experiments.report.titles import put_title, shown_labels
from fedhh.experiments.study.look import Look
from fedhh.longitudinal.pipeline.directory import read_days, read_record

FOLDER = "figures"
_LONGEST_LABEL = 28
_FILLS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, GREY)


def plot_pipeline(
    directory: Path, *, out: Path | None = None, look: Look | None = None
) -> list[Path]:
    """Write a finished pipeline's figures as PNG, PDF and SVG; return the PNG files.

    They go to ``out``, or to ``figures/`` of the directory, in the look that is asked for.

    Raises:
        InputError: The pipeline's files are missing or damaged, or the size that is asked for is
            too small.
    """
    days, record = read_days(directory), read_record(directory)
    return write_pipeline_figures(days, record, out or directory / FOLDER, FORMATS, look=look)


def write_pipeline_figures(
    days: pd.DataFrame,
    record: dict[str, Any],
    folder: Path,
    formats: tuple[str, ...] = FORMATS[:1],
    *,
    look: Look | None = None,
) -> list[Path]:
    """Write the figures of a table of days and a ``result.json``; return their first files."""
    return [
        write_figure(figure, folder / name, formats, look=look)
        for name, figure in pipeline_figures(days, record).items()
    ]


def pipeline_figures(days: pd.DataFrame, record: dict[str, Any]) -> dict[str, Figure]:
    """Return a pipeline's figures by file name."""
    names = [row["use_case"] for row in record["use_cases"]]
    groups = [
        (label, days[days["use_case"] == name].sort_values("day"))
        for label, name in zip(shown_labels(names, _LONGEST_LABEL), names, strict=True)
    ]
    draws: dict[str, Callable[[Axes], str]] = {
        "error_by_day": lambda axes: _draw_errors(axes, groups, record),
        "loss_over_lifetime": lambda axes: _draw_losses(axes, groups, record),
        "records": lambda axes: _draw_records(axes, record),
    }
    who = (
        f"{record['devices']:,} devices, {record['devices_opted_in']:,} opted in, "
        f"seed {record['seed']}"
    )
    figures: dict[str, Figure] = {}
    for name, draw in draws.items():
        with mpl.rc_context(STYLE):
            figures[name] = NotebookFigure(figsize=(8.4, 4.4), layout="constrained")
            axes = figures[name].subplots()
            put_title(axes, f"{draw(axes)}\n{who}")
    return figures


def _draw_errors(axes: Axes, groups: list[tuple[str, pd.DataFrame]], record: Any) -> str:
    """Draw the error of the most frequent values by day, a line per use case; return a title."""
    for number, (name, rows) in enumerate(groups):
        look = {**series(number, len(groups)), "linewidth": 1.4, "markersize": 4.5}
        axes.plot(rows["day"], rows["error"], label=name, **look)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(NullLocator())
    in_percent(axes.yaxis)
    axes.set_ylabel(f"mean relative error, top {record['top']}")
    _set_days_and_legend(axes)
    return "Estimated numbers of records sent, each day by itself"


def _draw_losses(axes: Axes, groups: list[tuple[str, pd.DataFrame]], record: Any) -> str:
    """Draw the mean loss of a device up to each day, use cases stacked; return a title."""
    spent = [rows["loss_per_device"].cumsum().to_numpy() for _, rows in groups]
    colors = [_FILLS[number % len(_FILLS)] for number in range(len(groups))]
    labels = [name for name, _ in groups]
    over = np.arange(1, record["days"] + 1)
    axes.stackplot(over, np.array(spent), labels=labels, colors=colors, alpha=0.85)
    largest = record["ledger"]["spent"]["life"]["basic"]["largest"]
    axes.axhline(largest, color="black", linestyle=":", label="the device with the largest loss")
    axes.set_ylabel("epsilon, sum over records")
    axes.set_ylim(bottom=0)
    _set_days_and_legend(axes)
    return "Local privacy loss up to a day, mean of devices that opted in"


def _draw_records(axes: Axes, record: dict[str, Any]) -> str:
    """Draw the outcome of the events of devices that opted in, by use case; return a title."""
    rows = record["use_cases"][::-1]
    names = [row["use_case"] for row in rows]
    left = np.zeros(len(rows))
    for key, label, color in (
        ("sent", "sent", BLUE),
        ("waiting", "still waiting", SKY),
        ("dropped", "too old", GREY),
    ):
        values = np.array([row[key] for row in rows], dtype=np.float64)
        axes.barh(range(len(names)), values, left=left, label=label, color=color)
        left += values
    for place, row in enumerate(rows):
        # What caps allow all devices that opted in together.
        most = record["devices_opted_in"] * row["loss_of_life_allowed"] / row["epsilon"]
        axes.plot([most] * 2, [place - 0.45, place + 0.45], color=ORANGE, linewidth=2.5)
    axes.set_yticks(range(len(names)), shown_labels(names, _LONGEST_LABEL))
    axes.plot([], [], color=ORANGE, linewidth=2.5, label="the caps of all devices")
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_xlabel("records")
    axes.set_xlim(left=0)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=4)
    return f"Records made on devices in {record['days']} days"


def _set_days_and_legend(axes: Axes) -> None:
    axes.set_xlabel("day")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
