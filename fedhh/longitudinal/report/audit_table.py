"""Tables of a longitudinal audit: what was found next to each claim, and a verdict."""

from __future__ import annotations

from collections.abc import Iterator

from fedhh.experiments.study.parts import Line, Part
from fedhh.experiments.study.text_table import TextTable, round_up
from fedhh.longitudinal.audit import Overspending
from fedhh.longitudinal.audit.verdict import (
    LongitudinalVerdict,
    SentRecords,
    ShownAnswers,
    verdict_word,
)


def audit_parts(verdict: LongitudinalVerdict) -> Iterator[Part]:
    """Yield everything that was found."""
    devices = f"{verdict.num_devices:,} {'device' if verdict.num_devices == 1 else 'devices'}"
    yield Line(
        f"audit of {verdict.title}: {devices}, {verdict.num_days} days"
        + (f", confidence {verdict.confidence:g}" if verdict.shown else ""),
        is_whole=True,
    )
    if verdict.sent:
        yield _table_of_sent(verdict.sent)
    if verdict.shown:
        yield _table_of_shown(verdict.shown)
    lines = [line for sent in verdict.sent for line in _complaints(sent)]
    lines += [line for shown in verdict.shown for line in _limits(shown)]
    for line in (*lines, *(f"- {note}" for note in verdict.notes)):
        yield Line(line, is_whole=True)
    yield Line(f"verdict: {verdict_word(verdict.refuted)}", is_whole=True)


def _table_of_sent(parts: tuple[SentRecords, ...]) -> TextTable:
    return TextTable(
        title="numbers of records sent, replayed against caps",
        columns=(
            "use case", "epsilon", "sent a day", "stated a day", "sent in all", "stated in all",
            "verdict",
        ),
        rows=tuple(
            (
                part.use_case,
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
    )  # fmt: skip


def _table_of_shown(parts: tuple[ShownAnswers, ...]) -> TextTable:
    rows = tuple(
        (
            part.audited,
            f"{part.unit} of {part.found.stated.answers[0].epsilon:.3g}",
            str(part.found.least_answers),
            str(part.found.stated.num_answers),
            "none" if part.found.detects_from is None else f"{part.found.detects_from} and more",
            f"{part.found.found.epsilon:.3f}",
            round_up(part.found.stated.epsilon),
            verdict_word(part.refuted),
        )
        for part in parts
    )
    return TextTable(
        title="what reports show: lower bounds",
        columns=(
            "of", "what", "at least", "stated", "detects", "epsilon at least", "epsilon stated",
            "verdict",
        ),
        rows=rows,
        note="",
        labels=2,
    )  # fmt: skip


def _complaints(part: SentRecords) -> list[str]:
    """Return what a device sent too much, and what that costs."""
    replay = part.replay
    if replay.first is None or replay.worst is None:
        return []
    who = "1 device" if replay.num_overspending == 1 else f"{replay.num_overspending:,} devices"
    lines = [
        f"{part.use_case}: {who} of {replay.num_devices:,} sent more than stated; "
        f"first, {_overspent(part, replay.first)}"
    ]
    if replay.worst != replay.first:
        lines.append(f"{part.use_case}: worst, {_overspent(part, replay.worst)}")
    return lines


def _overspent(part: SentRecords, spent: Overspending) -> str:
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


def _limits(part: ShownAnswers) -> list[str]:
    """Return what these histories cannot show."""
    name, control = part.audited, part.control
    if part.found.detects_from is None:
        cure = "" if control is None else ", or a smaller --local-epsilon"
        return [
            f"{name}: no number of {part.unit}, however large, can be detected in these histories; "
            f"use more --devices{cure}."
        ]
    if control is None:
        return []
    missed, cure = ("", "") if control.refuted else ("not ", "; use more --days or --devices")
    return [
        f"{name}: drawn again every day, it would {missed}be detected: at least "
        f"{control.least_answers} {part.unit}, stated {control.stated.num_answers}{cure}."
    ]
