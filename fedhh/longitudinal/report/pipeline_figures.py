"""Figures of a pipeline, from the tables and the record in its directory."""

from __future__ import annotations

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
_WIDE = (8.4, 4.4)
_LONGEST_LABEL = 28
_FILLS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, GREY)


def plot_pipeline(
    directory: Path, *, out: Path | None = None, look: Look | None = None
) -> list[Path]:
    """Write a finished pipeline's figures as PNG, PDF and SVG; return the PNG files.

    Args:
        directory: The pipeline's.
        out: Where they go; ``figures/`` of the directory if None.
        look: What a user asks of them; their own look if None.

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
    """Write a pipeline's figures, and return the first file of each.

    Args:
        days: Its table of days.
        record: The content of its ``result.json``.
        folder: Where they go.
        formats: Kinds of files.
        look: What a user asks of them; their own look if None.
    """
    return [
        write_figure(figure, folder / name, formats, look=look)
        for name, figure in pipeline_figures(days, record).items()
    ]


def pipeline_figures(days: pd.DataFrame, record: dict[str, Any]) -> dict[str, Figure]:
    """Return a pipeline's figures by file name."""
    return {
        "error_by_day": _figure(draw_errors, days, record),
        "loss_over_life": _figure(draw_losses, days, record),
        "records": _figure(draw_records, days, record),
    }


def draw_errors(axes: Axes, days: pd.DataFrame, record: dict[str, Any]) -> None:
    """Draw the error of the most frequent values by day, one line per use case."""
    groups = _by_use_case(days, record)
    for number, (name, rows) in enumerate(groups):
        look = {**series(number, len(groups)), "linewidth": 1.4, "markersize": 4.5}
        axes.plot(rows["day"], rows["error"], label=name, **look)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(NullLocator())
    in_percent(axes.yaxis)
    _days(axes)
    axes.set_ylabel(f"mean relative error, top {record['top']}")
    put_title(
        axes,
        "Estimated numbers of records sent, each day by itself\n" + _who(record),
    )
    _legend(axes)


def draw_losses(axes: Axes, days: pd.DataFrame, record: dict[str, Any]) -> None:
    """Draw the mean loss of a device up to each day, use cases on top of each other."""
    groups = _by_use_case(days, record)
    spent = [rows["loss_per_device"].cumsum().to_numpy() for _, rows in groups]
    over = np.arange(1, record["days"] + 1)
    colors = [_FILLS[number % len(_FILLS)] for number in range(len(groups))]
    labels = [name for name, _ in groups]
    axes.stackplot(over, np.array(spent), labels=labels, colors=colors, alpha=0.85)
    largest = record["ledger"]["spent"]["life"]["basic"]["largest"]
    axes.axhline(largest, color="black", linestyle=":", label="the device with the largest loss")
    _days(axes)
    axes.set_ylabel("epsilon, sum over records")
    axes.set_ylim(bottom=0)
    put_title(
        axes,
        "Local privacy loss up to a day, mean of devices that opted in\n" + _who(record),
    )
    _legend(axes)


def draw_records(axes: Axes, days: pd.DataFrame, record: dict[str, Any]) -> None:
    """Draw what became of the events of devices that opted in, by use case."""
    rows = record["use_cases"][::-1]
    names = [row["use_case"] for row in rows]
    left = np.zeros(len(rows))
    kinds = (
        ("sent", "sent", BLUE),
        ("waiting", "still waiting", SKY),
        ("dropped", "too old", GREY),
    )
    for key, label, color in kinds:
        values = np.array([row[key] for row in rows], dtype=np.float64)
        axes.barh(range(len(names)), values, left=left, label=label, color=color)
        left += values
    caps = _most_sent(record)
    for place, name in enumerate(names):
        axes.plot([caps[name]] * 2, [place - 0.45, place + 0.45], color=ORANGE, linewidth=2.5)
    axes.set_yticks(range(len(names)), shown_labels(names, _LONGEST_LABEL))
    axes.plot([], [], color=ORANGE, linewidth=2.5, label="the caps of all devices")
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_xlabel("records")
    axes.set_xlim(left=0)
    put_title(axes, f"Records made on devices in {record['days']} days\n" + _who(record))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=4)


def _most_sent(record: dict[str, Any]) -> dict[str, float]:
    """Return how many records caps allow all devices that opted in together."""
    devices = record["devices_opted_in"]
    return {
        row["use_case"]: devices * row["loss_of_life_allowed"] / row["epsilon"]
        for row in record["use_cases"]
    }


def _by_use_case(days: pd.DataFrame, record: dict[str, Any]) -> list[tuple[str, pd.DataFrame]]:
    names = [row["use_case"] for row in record["use_cases"]]
    shown = shown_labels(names, _LONGEST_LABEL)
    return [
        (label, days[days["use_case"] == name].sort_values("day"))
        for label, name in zip(shown, names, strict=True)
    ]


def _figure(draw: Any, days: pd.DataFrame, record: dict[str, Any]) -> Figure:
    with mpl.rc_context(STYLE):
        figure = NotebookFigure(figsize=_WIDE, layout="constrained")
        draw(figure.subplots(), days, record)
    return figure


def _days(axes: Axes) -> None:
    axes.set_xlabel("day")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _legend(axes: Axes) -> None:
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def _who(record: dict[str, Any]) -> str:
    return (
        f"{record['devices']:,} devices, {record['devices_opted_in']:,} opted in, "
        f"seed {record['seed']}"
    )
