"""The tables and the figure of audits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedhh.audit.audit import Finding, Verdict, verdict_word
from fedhh.audit.caps import CapReplay, Overspending
from fedhh.audit.claim import Answers
from fedhh.experiments.report.style import (
    BLUE,
    GREY,
    STYLE,
    VERMILION,
    check_figure,
    in_percent,
    write_one,
)
from fedhh.experiments.report.titles import name_panel
from fedhh.experiments.study.parts import Line, Part
from fedhh.experiments.study.text_table import TextTable, round_up

_MOST_COLUMNS = 3


def audit_parts(verdict: Verdict) -> Iterator[Part]:
    """Yield everything that was found."""
    facts = ", ".join(
        f"{name.removeprefix('num_')} {value:,}" if isinstance(value, int) else f"{name} {value}"
        for name, value in verdict.facts.items()
    )
    confidence = f", confidence {verdict.confidence:g}" if verdict.findings else ""
    yield Line(f"audit of {verdict.title}: {facts}{confidence}", is_whole=True)
    if verdict.sent:
        rows = [_row_of_sent(part) for part in verdict.sent]
        yield _table("numbers of records sent, replayed against caps", rows)
    if verdict.findings:
        rows = [_row_of_finding(*each) for each in verdict.findings.items()]
        yield _table("what reports show: lower bounds", rows, labels=2)
    lines = [line for sent in verdict.sent for line in _complaints(sent)]
    lines += [line for name in verdict.findings for line in _limits(verdict, name)]
    for line in (*lines, *(f"- {note}" for note in verdict.notes)):
        yield Line(line, is_whole=True)
    end = f" at confidence {verdict.confidence:g}" if verdict.refuted and verdict.findings else ""
    yield Line(f"verdict: {verdict_word(verdict.refuted)}{end}", is_whole=True)


def _table(title: str, rows: list[dict[str, str]], labels: int = 1) -> TextTable:
    cells = tuple(tuple(row.values()) for row in rows)
    return TextTable(title=title, columns=tuple(rows[0]), rows=cells, note="", labels=labels)


def _row_of_sent(part: CapReplay) -> dict[str, str]:
    return {
        "use case": part.use_case,
        "epsilon": f"{part.epsilon:g}",
        "sent a day": str(part.most_in_a_day),
        "stated a day": str(part.stated_in_a_day),
        "sent in all": str(part.most_in_lifetime),
        "stated in all": str(part.stated_in_lifetime),
        "verdict": verdict_word(part.refuted),
    }


def _row_of_finding(name: str, found: Finding) -> dict[str, str]:
    detects = found.detects_from
    return {
        "of": name,
        "what": found.claim.unit,
        "at least": _level(found, found.at_least),
        "stated": _stated(found),
        "detects": "none" if detects is None else f"{_level(found, detects)} and more",
        "epsilon at least": f"{found.epsilon:.3f}",
        "epsilon stated": round_up(found.claim.epsilon),
        "verdict": verdict_word(found.refuted),
    }


def _level(found: Finding, level: float) -> str:
    return f"{level:.0f}" if found.claim.step else f"{level:.4f}"


def _stated(found: Finding) -> str:
    return str(found.claim.level) if found.claim.step else round_up(found.claim.level)


def _complaints(part: CapReplay) -> list[str]:
    """Return what a device sent too much, and what that costs."""
    if part.first is None or part.worst is None:
        return []
    who = "1 device" if part.num_overspending == 1 else f"{part.num_overspending:,} devices"
    lines = [
        f"{part.use_case}: {who} of {part.num_devices:,} sent more than stated; "
        f"first, {_overspent(part, part.first)}"
    ]
    if part.worst != part.first:
        lines.append(f"{part.use_case}: worst, {_overspent(part, part.worst)}")
    return lines


def _overspent(part: CapReplay, spent: Overspending) -> str:
    when = (
        f"day {spent.first_day}"
        if spent.num_days == 1
        else f"days {spent.first_day} to {spent.last_day}"
    )
    device = part.names.get(spent.device, spent.device)
    return (
        f"device {device} on {when}: {spent} (loss {spent.sent * part.epsilon:g}, stated "
        f"{spent.stated * part.epsilon:g})"
    )


def _limits(verdict: Verdict, name: str) -> list[str]:
    """Return what a finding cannot show."""
    found, control = verdict.findings[name], verdict.controls.get(name)
    claim = found.claim
    if not isinstance(claim, Answers):
        return []
    if found.detects_from is None:
        cure = "" if control is None else ", or a smaller --local-epsilon"
        return [
            f"{name}: no number of {claim.what}, however large, can be detected in these "
            f"histories; use more --devices{cure}."
        ]
    if control is None:
        return []
    missed, cure = ("", "") if control.refuted else ("not ", "; use more --days or --devices")
    return [
        f"{name}: drawn again every day, it would {missed}be detected: at least "
        f"{control.at_least:.0f} {claim.what}, stated {claim.times}{cure}."
    ]


def plot_trade_offs(path: Path, verdict: Verdict) -> None:
    """Draw how well two inputs were distinguished, and the trade-off that is stated.

    Raises:
        InputError: The file's name says no known format, or it cannot be written.
    """
    check_figure(path)
    columns = min(len(verdict.findings), _MOST_COLUMNS)
    rows = math.ceil(len(verdict.findings) / columns)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(3.9 * columns, 3.7 * rows), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, (name, found) in zip(grid, verdict.findings.items(), strict=False):
            _draw_trade_off(axes, name, found, verdict.controls.get(name))
        for axes in grid[len(verdict.findings) :]:
            axes.set_axis_off()
        write_one(figure, path)


def _draw_trade_off(axes: Axes, name: str, found: Finding, control: Finding | None) -> None:
    claim = found.claim
    shares = np.linspace(0, 1, 801)
    allowed = claim.power(shares)
    axes.plot(shares, allowed, color=GREY, label=f"stated: {_stated(found)}")
    axes.fill_between(shares, allowed, 1, color=GREY, alpha=0.15, linewidth=0)
    for label, color, marker, each in (
        ("seen", BLUE, "o", found),
        ("drawn again every day", VERMILION, "s", control),
    ):
        if each is None:
            continue
        least = claim.at(each.at_least).power(shares)
        axes.plot(shares, least, color=color, linestyle="--", linewidth=1)
        axes.plot(
            [each.false_alarm], [each.power], color=color, marker=marker, linestyle="none",
            label=f"{label}: at least {_level(each, each.at_least)}",
        )  # fmt: skip
    axes.set_xlabel("probability under one input, at most")
    axes.set_ylabel("probability under its neighbor, at least")
    for axis in (axes.xaxis, axes.yaxis):
        in_percent(axis)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.02)
    axes.legend(fontsize=8, loc="lower right")
    name_panel(axes, f"{name}\n{claim.unit}", size=10)
