"""Figures of repeated collection: days until a new word is found, and the dictionary by then."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, MultipleLocator, NullLocator

from fedhh.experiments.report.style import STYLE, in_percent, looks, write_figure
from fedhh.experiments.report.titles import NOTE, name_panel, put_heading, shown_labels, wrapped
from fedhh.experiments.study.look import Look
from fedhh.longitudinal.repeated.config import CapSection, LongitudinalSection
from fedhh.longitudinal.repeated.tables import rows_of
from fedhh.longitudinal.report.repeated_kind import class_label

_PANEL = (5.2, 4.3)
_MOST_TICKS = 8
_DODGE = 0.09
_BAND = 2.0
"""Of a logarithmic axis of days: how far the band of what was not found goes above them."""
_FOOT = 0.7
_LONGEST_LABEL = 60
"""Letters of a protocol's label."""
_LETTER, _KEY, _LEGEND_ROW, _NOTE_LINE = 0.085, 0.75, 0.22, 0.15
"""Inches of a legend's letter, of its key, of its row, and of a line of the note."""
_LEAST_WORDS = 3
"""Of a class; fewer say nothing about a median."""


class _Case(NamedTuple):
    """A protocol, and the yearly loss that its cap was made for; None if a cap was given."""

    label: str
    loss: float | None


@dataclass(frozen=True, kw_only=True)
class Collected:
    """A repeated collection as figures show it.

    Attributes:
        section: Its configuration.
        tables: ``periods``, ``classes`` and ``losses`` of `fedhh.longitudinal.repeated.tables`.
    """

    section: LongitudinalSection
    tables: Mapping[str, pd.DataFrame]

    @property
    def every_days(self) -> int:
        return self.section.every_days

    @property
    def num_periods(self) -> int:
        return int(self.tables["periods"]["first_day"].nunique())

    @property
    def days(self) -> int:
        return self.every_days * self.num_periods

    @property
    def whom(self) -> str:
        """About how many devices there are, as the begin of a sentence."""
        devices = self.tables["periods"].drop_duplicates("first_day")["devices"]
        if not len(devices):
            return "No device"
        return f"About {round(float(devices.mean()), -3):,.0f} devices"

    @property
    def labels(self) -> list[str]:
        return list(dict.fromkeys(self.tables["losses"]["protocol"]))

    @property
    def panels(self) -> list[list[_Case]]:
        """The cases of each yearly loss, or of the cap."""
        losses = self.tables["losses"]
        cases = [
            _Case(label, None if pd.isna(loss) else float(loss))
            for label, loss in zip(losses["protocol"], losses["yearly_loss"], strict=True)
        ]
        asked = dict.fromkeys(case.loss for case in cases)
        return [[case for case in cases if case.loss == loss] for loss in asked]


def plot_repeated(collected: Collected, folder: Path, *, look: Look | None = None) -> list[Path]:
    """Write all figures, in the look that is asked for; return each one's first file."""
    return [
        write_figure(draw_days(collected), folder / "days-until-found", look=look),
        write_figure(draw_periods(collected), folder / "by-week", look=look),
    ]


def draw_days(collected: Collected) -> Figure:
    """Return days until a new word is found against how many people use it.

    One panel for each yearly loss, one line for each protocol: the median with its 95% interval;
    in the band above, classes of which half was not found.
    """
    groups, labels, tables = collected.panels, collected.labels, collected.tables
    classes = tables["classes"][tables["classes"]["is_new"]]
    counts = classes.drop_duplicates("per_1000_at_least").set_index("per_1000_at_least")["words"]
    bounds = [b for b in collected.section.classes if counts[b] >= _LEAST_WORDS]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(_PANEL[0] * max(len(groups), 1.3), _PANEL[1] + 1.0))
        panels = figure.subplots(1, len(groups), sharey=True, squeeze=False)[0]
        for axes, cases in zip(panels, groups, strict=True):
            for case in cases:
                number = labels.index(case.label)
                rows = rows_of(classes, *case).set_index("per_1000_at_least").loc[bounds]
                _draw_line(axes, collected, labels, rows, number)
            _set_axes(axes, collected, bounds, [int(counts[b]) for b in bounds])
            name_panel(axes, _loss_title(cases, tables["losses"]), size=10)
        panels[0].set_ylabel("days until found (median, 95% interval)")
        _put_below(
            figure, panels[0], wrapped(_note(collected), figure.get_figwidth() - 0.4, size=8)
        )
        period = "week" if collected.every_days == 7 else f"{collected.every_days} days"
        put_heading(
            figure,
            f"Days until a new word is found\n{collected.whom}, a run every {period}, "
            f"{collected.days} days",
        )
    return figure


def draw_periods(collected: Collected) -> Figure:
    """Return coverage, and false discoveries so far, by period; one panel for each yearly loss."""
    groups, labels = collected.panels, collected.labels
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(_PANEL[0] * max(len(groups), 1.3), 6.0))
        panels = figure.subplots(2, len(groups), sharex=True, sharey="row", squeeze=False)
        for column, cases in enumerate(groups):
            above, below = panels[0][column], panels[1][column]
            for case in cases:
                look = looks(labels)[labels.index(case.label)]
                look |= {"markersize": 3, "linewidth": 1.8}
                own = rows_of(collected.tables["periods"], *case)
                days = own["first_day"] + collected.every_days
                above.plot(days, own["coverage"], label=case.label, **look)
                below.plot(days, own["false_so_far"], **look)
            name_panel(above, _group_title(cases, collected.section), size=10)
            in_percent(above.yaxis)
            below.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
            below.set_xlabel("day")
            periods = max(1, -(-collected.num_periods // _MOST_TICKS))
            below.xaxis.set_major_locator(MultipleLocator(collected.every_days * periods))
        # Of a row, all panels have the same limits; set before all is drawn, they would stay.
        for axes in panels[:, 0]:
            axes.set_ylim(bottom=0)
        panels[0][0].set_ylabel("new words typed that are\nin the dictionary by then")
        panels[1][0].set_ylabel("false words published so far")
        _put_below(figure, panels[0][0], "")
        put_heading(figure, f"Words in the dictionary. {collected.whom}")
    return figure


def _put_below(figure: Figure, axes: Axes, note: str) -> None:
    """Put a note below a figure, the legend of its lines above that, and the panels above both."""
    handles, names = axes.get_legend_handles_labels()
    shown = shown_labels(names, _LONGEST_LABEL)
    width, height = figure.get_size_inches()
    longest = max(map(len, shown), default=1)
    columns = max(min(int(width / (_LETTER * longest + _KEY)), len(names)), 1)
    above_note = 0.05 + _NOTE_LINE * (note.count("\n") + 1 if note else 0)
    below = (above_note + _LEGEND_ROW * -(-len(names) // columns) + 0.1) / height
    figure.set_layout_engine("constrained", rect=(0, below, 1, 1 - below))
    figure.text(0.5, 0.01, note, ha="center", va="bottom", fontsize=8, color=NOTE)
    figure.legend(
        handles, shown, loc="lower center", bbox_to_anchor=(0.5, above_note / height), ncols=columns
    )


def _draw_line(
    axes: Axes, collected: Collected, labels: Sequence[str], rows: pd.DataFrame, number: int
) -> None:
    """Draw one protocol's medians; next to each other, so that their intervals do not overlap."""
    ceiling = collected.days * _BAND**0.3
    places = np.arange(len(rows)) + _DODGE * (number - (len(labels) - 1) / 2)
    median, low, high = (
        rows[f"median_days{end}"].to_numpy(dtype=float) for end in ("", "_low", "_high")
    )
    reached = np.isfinite(median)
    # Found before the time began: at the foot of a logarithmic axis.
    median, low = (np.maximum(each, collected.every_days * _FOOT) for each in (median, low))
    look = looks(labels)[number] | {"linewidth": 1.8, "markersize": 6}
    axes.plot(places, np.where(reached, median, np.nan), label=labels[number], **look)
    missed = look | {"linestyle": "none", "markerfacecolor": "none", "markeredgewidth": 1.2}
    missed["markeredgecolor"] = look["color"]
    axes.plot(places[~reached], np.full((~reached).sum(), ceiling), **missed)
    for place in np.flatnonzero(reached):
        top = high[place] if math.isfinite(high[place]) else collected.days
        axes.vlines(places[place], low[place], top, color=look["color"], linewidth=1, alpha=0.7)


def _set_axes(
    axes: Axes, collected: Collected, bounds: Sequence[float], words: Sequence[int]
) -> None:
    every = collected.section.classes
    top = collected.days * _BAND
    axes.set_yscale("log", base=2)
    axes.axhspan(collected.days, top, color="#F0F0F0", zorder=0)
    axes.text(
        0.98, 0.985, f"hollow: fewer than half were found within the {collected.days} days",
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
    axes.set_ylim(collected.every_days * _FOOT * 0.95, top)
    doublings = range(max(1, int(math.log2(max(collected.num_periods, 1))) + 1))
    days = [collected.every_days * 2**times for times in doublings]
    axes.set_yticks(days, [f"{day}" for day in days])
    axes.yaxis.set_minor_locator(NullLocator())
    best = "in its best week" if collected.every_days == 7 else "at its best"
    axes.set_xlabel(f"people in 1,000 who use the word {best}")


def _group_title(cases: Sequence[_Case], section: LongitudinalSection) -> str:
    loss, cap = cases[0].loss, section.cap or CapSection()
    if loss is not None:
        return f"a device may lose epsilon {loss:g} a year"
    days = "a day" if cap.session_days == 1 else f"{cap.session_days} days"
    return f"a device answers {cap.amount} times in {days}"


def _loss_title(cases: Sequence[_Case], losses: pd.DataFrame) -> str:
    rows = pd.concat([rows_of(losses, *case) for case in cases])
    least, most = rows["year_basic"].min(), rows["year_basic"].max()
    spent = f"{most:g}" if least == most else f"{least:g} to {most:g}"
    runs = rows["year_runs"]
    times = f"{runs.min()}" if runs.min() == runs.max() else f"{runs.min()} to {runs.max()}"
    return (
        f"A device answers {times} times in a year at most:\n"
        f"it loses up to epsilon {spent} (sum, all it sends)"
    )


def _note(collected: Collected) -> str:
    least = collected.section.classes[0]
    return (
        "New: not there from the start. A word's time begins with the first "
        f"{'week' if collected.every_days == 7 else 'period'} in which {least:g} in 1,000 people "
        "use it, and ends when it is published to all devices. Lower is better. Epsilon: local, of "
        "everything that a device sends in its first year, by basic composition."
    )
