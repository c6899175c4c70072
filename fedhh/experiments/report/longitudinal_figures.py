"""Figures of a discovery over months: days until a new word is found, and what is known by then."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, MultipleLocator, NullLocator

from fedhh.experiments.longitudinal.config import Arm
from fedhh.experiments.longitudinal.run import Outcome
from fedhh.experiments.report.style import NOTE, STYLE, in_percent, series, wrapped, write_figure

_PANEL = (5.2, 4.3)
_MOST_TICKS = 8
_DODGE = 0.09
_BAND = 2.0
"""Of a logarithmic axis of days: how far the band of what was not found goes above them."""
_FOOT = 0.7
_LEAST_WORDS = 3
"""Of a class; fewer say nothing about a median."""


def plot_longitudinal(
    outcome: Outcome, tables: dict[str, pd.DataFrame], folder: Path
) -> tuple[Path, ...]:
    """Write all figures of a discovery over months, and return the first file of each."""
    return (
        write_figure(draw_days(outcome, tables), folder / "days-until-found"),
        write_figure(draw_periods(outcome, tables["periods"]), folder / "by-week"),
    )


def draw_days(outcome: Outcome, tables: dict[str, pd.DataFrame]) -> Figure:
    """Return days until a new word is found against how many people use it.

    One panel for each yearly loss, one line for each protocol: the median with its 95 % interval;
    in the band above, classes of which half was not found.
    """
    groups = _panels(outcome.plan.arms)
    labels = list(dict.fromkeys(arm.label for arm in outcome.plan.arms))
    classes = tables["classes"][tables["classes"]["is_new"]]
    counts = classes.drop_duplicates("per_1000_at_least").set_index("per_1000_at_least")["words"]
    bounds = [b for b in outcome.plan.section.classes if counts[b] >= _LEAST_WORDS]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(_PANEL[0] * max(len(groups), 1.3), _PANEL[1] + 1.0))
        figure.set_layout_engine("constrained", rect=(0, 0.13, 1, 0.87))
        panels = figure.subplots(1, len(groups), sharey=True, squeeze=False)[0]
        for axes, arms in zip(panels, groups, strict=True):
            for arm in arms:
                number = labels.index(arm.label)
                rows = _rows_of(classes, arm).set_index("per_1000_at_least").loc[bounds]
                _draw_line(axes, outcome, arm.label, rows, number, of=len(labels))
            _set_axes(axes, outcome, bounds, [int(counts[b]) for b in bounds])
            axes.set_title(wrapped(_loss_title(arms, tables["losses"]), _PANEL[0]), fontsize=10)
        panels[0].set_ylabel("days until found (median, 95 % interval)")
        handles, names = panels[0].get_legend_handles_labels()
        figure.legend(
            handles, names, loc="lower center", bbox_to_anchor=(0.5, 0.065), ncols=len(names)
        )
        period = "week" if outcome.every_days == 7 else f"{outcome.every_days} days"
        inches = figure.get_figwidth()
        figure.suptitle(
            f"How long until a new word is found? {_whom(outcome)}, a run every {period}, "
            f"{outcome.days} days",
            fontsize=12,
        )
        note = wrapped(_note(outcome), inches * 1.2)
        figure.text(0.5, 0.01, note, ha="center", va="bottom", fontsize=8, color=NOTE)
    return figure


def draw_periods(outcome: Outcome, periods: pd.DataFrame) -> Figure:
    """Return coverage, and false discoveries so far, by period; one panel for each yearly loss."""
    groups = _panels(outcome.plan.arms)
    labels = list(dict.fromkeys(arm.label for arm in outcome.plan.arms))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(_PANEL[0] * max(len(groups), 1.3), 6.0))
        figure.set_layout_engine("constrained")
        panels = figure.subplots(2, len(groups), sharex=True, sharey="row", squeeze=False)
        for column, arms in enumerate(groups):
            above, below = panels[0][column], panels[1][column]
            for arm in arms:
                look = series(labels.index(arm.label), len(labels))
                look |= {"markersize": 3, "linewidth": 1.8}
                own = _rows_of(periods, arm)
                days = own["first_day"] + outcome.every_days
                above.plot(days, own["coverage"], label=arm.label, **look)
                below.plot(days, own["false_so_far"], **look)
            above.set_title(wrapped(_group_title(arms), _PANEL[0]), fontsize=10)
            in_percent(above.yaxis)
            below.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
            below.set_xlabel("day")
            below.xaxis.set_major_locator(_day_locator(outcome))
        # Of a row, all panels have the same limits; set before all is drawn, they would stay.
        for axes in panels[:, 0]:
            axes.set_ylim(bottom=0)
        panels[0][0].set_ylabel("new words typed that are\nin the dictionary by then")
        panels[1][0].set_ylabel("false words published so far")
        handles, names = panels[0][0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=len(names))
        figure.suptitle(f"What the dictionary knows. {_whom(outcome)}", fontsize=12)
    return figure


def class_label(bounds: Sequence[float], place: int) -> str:
    """Return what a class is called, by the lower bounds of all.

    >>> [class_label((1, 2.5, 20), place) for place in range(3)]
    ['1 to 2.5', '2.5 to 20', '20 or more']
    """
    if place + 1 == len(bounds):
        return f"{bounds[place]:g} or more"
    return f"{bounds[place]:g} to {bounds[place + 1]:g}"


def _draw_line(
    axes: Axes, outcome: Outcome, label: str, rows: pd.DataFrame, number: int, *, of: int
) -> None:
    """Draw one protocol's medians; beside each other, so that intervals can be told apart."""
    ceiling = outcome.days * _BAND**0.3
    places = np.arange(len(rows)) + _DODGE * (number - (of - 1) / 2)
    median, low, high = (
        rows[f"median_days{end}"].to_numpy(dtype=float) for end in ("", "_low", "_high")
    )
    reached = np.isfinite(median)
    # Found before the time began: at the foot of a logarithmic axis.
    median, low = (np.maximum(each, outcome.every_days * _FOOT) for each in (median, low))
    look = series(number, of) | {"linewidth": 1.8, "markersize": 6}
    axes.plot(places, np.where(reached, median, np.nan), label=label, **look)
    missed = look | {"linestyle": "none", "markerfacecolor": "none", "markeredgewidth": 1.2}
    missed["markeredgecolor"] = look["color"]
    axes.plot(places[~reached], np.full((~reached).sum(), ceiling), **missed)
    for place in np.flatnonzero(reached):
        top = high[place] if math.isfinite(high[place]) else outcome.days
        axes.vlines(places[place], low[place], top, color=look["color"], linewidth=1, alpha=0.7)


def _set_axes(axes: Axes, outcome: Outcome, bounds: Sequence[float], words: Sequence[int]) -> None:
    every = outcome.plan.section.classes
    top = outcome.days * _BAND
    axes.set_yscale("log", base=2)
    axes.axhspan(outcome.days, top, color="#F0F0F0", zorder=0)
    axes.text(
        0.98, 0.985, f"hollow: fewer than half were found within the {outcome.days} days",
        transform=axes.transAxes, ha="right", va="top", fontsize=8, color=NOTE,
    )  # fmt: skip
    ticks = [
        f"{class_label(every, every.index(bound))}\n({count} words)"
        for bound, count in zip(bounds, words, strict=True)
    ]
    axes.set_xticks(range(len(bounds)), ticks, fontsize=9)
    if not bounds:
        text = "too few new words are used by enough people"
        axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center")
    axes.set_xlim(-0.5, max(len(bounds), 1) - 0.5)
    axes.set_ylim(outcome.every_days * _FOOT * 0.95, top)
    doublings = range(max(1, int(math.log2(max(len(outcome.periods), 1))) + 1))
    days = [outcome.every_days * 2**times for times in doublings]
    axes.set_yticks(days, [f"{day}" for day in days])
    axes.yaxis.set_minor_locator(NullLocator())
    best = "in its best week" if outcome.every_days == 7 else "at its best"
    axes.set_xlabel(f"people in 1,000 who use the word {best}")


def _day_locator(outcome: Outcome) -> MultipleLocator:
    """Return ticks at whole periods."""
    return MultipleLocator(outcome.every_days * max(1, -(-len(outcome.periods) // _MOST_TICKS)))


def _panels(arms: Sequence[Arm]) -> list[list[Arm]]:
    """Return the arms of each yearly loss, or of the cap."""
    losses = dict.fromkeys(arm.asked_loss for arm in arms)
    return [[arm for arm in arms if arm.asked_loss == loss] for loss in losses]


def _rows_of(table: pd.DataFrame, arm: Arm) -> pd.DataFrame:
    own = table[table["protocol"] == arm.label]
    return own if arm.asked_loss is None else own[own["yearly_loss"] == arm.asked_loss]


def _group_title(arms: Sequence[Arm]) -> str:
    arm = arms[0]
    if arm.asked_loss is not None:
        return f"a device may lose epsilon {arm.asked_loss:g} a year"
    days = "a day" if arm.cap.session_days == 1 else f"{arm.cap.session_days} days"
    return f"a device answers {arm.cap.amount} times in {days}"


def _loss_title(arms: Sequence[Arm], losses: pd.DataFrame) -> str:
    rows = pd.concat([_rows_of(losses, arm) for arm in arms])
    least, most = rows["year_basic"].min(), rows["year_basic"].max()
    spent = f"{most:g}" if least == most else f"{least:g} to {most:g}"
    runs = rows["year_runs"]
    times = f"{runs.min()}" if runs.min() == runs.max() else f"{runs.min()} to {runs.max()}"
    return (
        f"A device answers {times} times in a year at most:\n"
        f"it loses up to epsilon {spent} (sum, all it sends)"
    )


def _whom(outcome: Outcome) -> str:
    devices = [period.devices for period in outcome.periods]
    return f"About {round(float(np.mean(devices)), -3):,.0f} devices" if devices else "No device"


def _note(outcome: Outcome) -> str:
    least = outcome.plan.section.classes[0]
    return (
        "New: not there from the start. A word's time begins with the first "
        f"{'week' if outcome.every_days == 7 else 'period'} in which {least:g} in 1,000 people use "
        "it, and ends when it is published to all devices. Lower is better. Epsilon: local, of "
        "everything that a device sends in its first year, by basic composition."
    )
