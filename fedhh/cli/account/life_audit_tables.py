"""What `fedhh account audit-life` prints: what was found beside each claim, and a verdict."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table

from fedhh.accounting import Overspending
from fedhh.cli.account.bounds import round_up
from fedhh.cli.account.life_audit_verdict import LifeVerdict, SentRecords, ShownAnswers
from fedhh.cli.console import open_console, print_json, print_line
from fedhh.cli.safe_text import safe_text

_WIDTH = 120
_CONSISTENT, _REFUTED = "consistent", "refuted"


def print_life_audit(verdict: LifeVerdict, *, as_json: bool) -> None:
    """Print everything that was found."""
    if as_json:
        print_json(_as_json(verdict))
        return
    console = open_console(width_unless_terminal=_WIDTH)
    devices = f"{verdict.num_devices:,} {'device' if verdict.num_devices == 1 else 'devices'}"
    print_line(
        console,
        safe_text(f"audit of {verdict.title}: {devices}, {verdict.num_days} days")
        + (f", confidence {verdict.confidence:g}" if verdict.shown else ""),
    )
    if verdict.sent:
        console.print(_table_of_sent(verdict.sent))
    if verdict.shown:
        console.print(_table_of_shown(verdict.shown))
    for sent in verdict.sent:
        for line in _complaints(sent):
            print_line(console, line)
    for shown in verdict.shown:
        for line in _limits(shown):
            print_line(console, line)
    for note in verdict.notes:
        print_line(console, f"- {note}")
    print_line(console, f"verdict: {_word(verdict.refuted)}")


def plot_life_audit(path: Path, verdict: LifeVerdict) -> None:
    """Draw what reports show beside what is stated."""
    from fedhh.experiments.report.life_audit_figures import SeenLives, plot_trade_offs

    plot_trade_offs(
        path,
        [
            SeenLives(title=part.audited, unit=part.unit, found=part.found, control=part.control)
            for part in verdict.shown
        ],
    )


def _table_of_sent(parts: tuple[SentRecords, ...]) -> Table:
    table = Table(title="numbers of records sent, replayed against caps")
    for name in ("use case", "epsilon", "a day", "stated", "a life", "stated", "verdict"):
        table.add_column(name, justify="left" if name in {"use case", "verdict"} else "right")
    for part in parts:
        table.add_row(
            safe_text(part.use_case),
            f"{part.epsilon:g}",
            str(part.replay.most_in_a_day),
            str(part.most_in_a_day),
            str(part.replay.most_in_life),
            str(part.most_in_life),
            _word(part.refuted),
        )
    return table


def _table_of_shown(parts: tuple[ShownAnswers, ...]) -> Table:
    table = Table(title="what reports show: lower bounds")
    for name in ("of", "what", "at least", "stated", "detects", "epsilon", "stated", "verdict"):
        table.add_column(name, justify="left" if name in {"of", "what", "verdict"} else "right")
    for part in parts:
        found = part.found
        table.add_row(
            safe_text(part.audited),
            f"{part.unit} of {found.stated.answers[0].epsilon:.3g}",
            str(found.least_answers),
            str(found.stated.num_answers),
            "none" if found.detects_from is None else f"{found.detects_from} and more",
            f"{found.found.epsilon:.3f}",
            round_up(found.stated.epsilon),
            _word(part.refuted),
        )
    return table


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


def _as_json(verdict: LifeVerdict) -> dict[str, Any]:
    return {
        "audited": verdict.title,
        "num_days": verdict.num_days,
        "num_devices": verdict.num_devices,
        "confidence": verdict.confidence if verdict.shown else None,
        "neighboring": "swap",
        "sent": [_sent_json(part) for part in verdict.sent],
        "shown": [_shown_json(part) for part in verdict.shown],
        "notes": list(verdict.notes),
        "verdict": _word(verdict.refuted),
    }


def _sent_json(part: SentRecords) -> dict[str, Any]:
    replay = part.replay

    def spent(each: Overspending | None) -> dict[str, Any] | None:
        if each is None:
            return None
        return {
            **asdict(each),
            "device": part.names.get(each.device, each.device),
            "loss": each.sent * part.epsilon,
            "stated_loss": each.stated * part.epsilon,
        }

    return {
        "use_case": part.use_case,
        "local_epsilon": part.epsilon,
        "num_devices": replay.num_devices,
        "num_overspending": replay.num_overspending,
        "most_in_a_day": replay.most_in_a_day,
        "stated_in_a_day": part.most_in_a_day,
        "most_in_life": replay.most_in_life,
        "stated_in_life": part.most_in_life,
        "loss_of_life": replay.most_in_life * part.epsilon,
        "stated_loss_of_life": part.most_in_life * part.epsilon,
        "first": spent(replay.first),
        "worst": spent(replay.worst),
        "verdict": _word(part.refuted),
    }


def _shown_json(part: ShownAnswers) -> dict[str, Any]:
    found = part.found
    return {
        "audited": part.audited,
        "unit": found.level,
        "answers": part.unit,
        "at_least_answers": found.least_answers,
        "stated_answers": found.stated.num_answers,
        "detects_from": found.detects_from,
        "control": None
        if part.control is None
        else {
            "at_least_answers": part.control.least_answers,
            "at_least": part.control.found.epsilon,
            "verdict": _word(part.control.refuted),
        },
        "audited_epsilon_of_one": found.stated.answers[0].epsilon,
        "at_least": found.found.epsilon,
        "claimed": found.stated.epsilon,
        "stated_epsilon_of_one": part.epsilon,
        "stated_loss": part.stated_loss,
        "event": found.found.event,
        "statistic": found.statistic,
        "power": found.power,
        "false_alarm": found.false_alarm,
        "allowed_power": found.allowed,
        "num_samples": found.found.num_samples,
        "confidence": found.found.confidence,
        "verdict": _word(part.refuted),
    }


def _word(refuted: bool) -> str:
    return _REFUTED if refuted else _CONSISTENT
