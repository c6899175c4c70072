"""What `fedhh account audit-life` prints: what was found beside each claim, and a verdict."""

from __future__ import annotations

from fedhh.cli.account.output import round_up, show_table
from fedhh.cli.console import open_console, print_line
from fedhh.cli.safe_text import safe_text
from fedhh.experiments.study.text_table import TextTable
from fedhh.longitudinal.audit import Overspending
from fedhh.longitudinal.audit.verdict import (
    LongitudinalVerdict,
    SentRecords,
    ShownAnswers,
    verdict_word,
)

_WIDTH = 120
_VERDICT = "verdict"


def print_life_audit(verdict: LongitudinalVerdict) -> None:
    """Print everything that was found."""
    console = open_console(width_unless_terminal=_WIDTH)
    devices = f"{verdict.num_devices:,} {'device' if verdict.num_devices == 1 else 'devices'}"
    print_line(
        console,
        safe_text(f"audit of {verdict.title}: {devices}, {verdict.num_days} days")
        + (f", confidence {verdict.confidence:g}" if verdict.shown else ""),
    )
    if verdict.sent:
        show_table(_table_of_sent(verdict.sent), console=console, left={_VERDICT})
    if verdict.shown:
        show_table(_table_of_shown(verdict.shown), console=console, left={_VERDICT})
    lines = [line for sent in verdict.sent for line in _complaints(sent)]
    lines += [line for shown in verdict.shown for line in _limits(shown)]
    for line in (*lines, *(f"- {note}" for note in verdict.notes)):
        print_line(console, line)
    print_line(console, f"verdict: {verdict_word(verdict.refuted)}")


def _table_of_sent(parts: tuple[SentRecords, ...]) -> TextTable:
    return TextTable(
        title="numbers of records sent, replayed against caps",
        columns=("use case", "epsilon", "a day", "stated", "a life", "stated", _VERDICT),
        rows=tuple(
            (
                safe_text(part.use_case),
                f"{part.epsilon:g}",
                str(part.replay.most_in_a_day),
                str(part.most_in_a_day),
                str(part.replay.most_in_life),
                str(part.most_in_life),
                verdict_word(part.refuted),
            )
            for part in parts
        ),
        note="",
    )


def _table_of_shown(parts: tuple[ShownAnswers, ...]) -> TextTable:
    rows = []
    for part in parts:
        found = part.found
        row = (
            safe_text(part.audited),
            f"{part.unit} of {found.stated.answers[0].epsilon:.3g}",
            str(found.least_answers),
            str(found.stated.num_answers),
            "none" if found.detects_from is None else f"{found.detects_from} and more",
            f"{found.found.epsilon:.3f}",
            round_up(found.stated.epsilon),
            verdict_word(part.refuted),
        )
        rows.append(row)
    return TextTable(
        title="what reports show: lower bounds",
        columns=("of", "what", "at least", "stated", "detects", "epsilon", "stated", _VERDICT),
        rows=tuple(rows),
        note="",
        labels=2,
    )


def _complaints(part: SentRecords) -> list[str]:
    """Return what a device sent too much, and what that costs."""
    replay = part.replay
    if replay.first is None or replay.worst is None:
        return []
    who = "1 device" if replay.num_overspending == 1 else f"{replay.num_overspending:,} devices"
    lines = [
        f"{safe_text(part.use_case)}: {who} of {replay.num_devices:,} sent more than stated; "
        f"first, {_overspent(part, replay.first)}"
    ]
    if replay.worst != replay.first:
        lines.append(f"{safe_text(part.use_case)}: worst, {_overspent(part, replay.worst)}")
    return lines


def _overspent(part: SentRecords, spent: Overspending) -> str:
    when = (
        f"day {spent.first_day}"
        if spent.num_days == 1
        else f"days {spent.first_day} to {spent.last_day}"
    )
    device = safe_text(part.names.get(spent.device, spent.device))
    return (
        f"device {device} on {when}: {spent} (loss {spent.sent * part.epsilon:g}, stated "
        f"{spent.stated * part.epsilon:g})"
    )


def _limits(part: ShownAnswers) -> list[str]:
    """Return what these lives cannot show."""
    name, control = safe_text(part.audited), part.control
    if part.found.detects_from is None:
        cure = "" if control is None else ", or a smaller --local-epsilon"
        return [
            f"{name}: no number of {part.unit}, however large, can be detected in these lives; "
            f"use more --devices{cure}."
        ]
    if control is not None and not control.refuted:
        return [
            f"{name}: drawn again every day, it would not be detected: at least "
            f"{control.least_answers} {part.unit}, stated {control.stated.num_answers}; use more "
            "--days or --devices."
        ]
    if control is not None:
        return [
            f"{name}: drawn again every day, it would be detected: at least "
            f"{control.least_answers} {part.unit}, stated {control.stated.num_answers}."
        ]
    return []
