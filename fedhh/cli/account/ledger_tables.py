"""What `fedhh account ledger` prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fedhh.accounting.guarantees import Guarantee, NotApplicable
from fedhh.cli.text_tables import round_up
from fedhh.experiments.study.parts import Line, Opinions, Part
from fedhh.experiments.study.text_table import TextTable
from fedhh.longitudinal.ledger import LedgerAccount, SaturatingDevice
from fedhh.longitudinal.ledger.statements import EARLY, LATER, PLD, RECORD, SUM

if TYPE_CHECKING:
    from fedhh.accounting.second_opinion import SecondOpinion

_DAYS_SHOWN = 7
_METHODS = {SUM: "sum", EARLY: "advanced 2010", LATER: "advanced 2015", PLD: "PLD"}


def ledger_parts(found: LedgerAccount, opinions: Sequence[SecondOpinion] | None) -> Iterator[Part]:
    """Yield the tables of a ledger, second opinions on it if there are any, and its notes."""
    yield _levels(found)
    yield _use_cases(found)
    if found.saturating is not None:
        yield _saturating(found, found.saturating)
    if opinions is not None:
        yield Opinions(opinions)
    for note in found.notes:
        yield Line(note, is_whole=True)


def _levels(found: LedgerAccount) -> TextTable:
    """Return the table of all use cases together: a row for each level."""
    rows = []
    for unit in dict.fromkeys(each.unit for each in found.report.together.guarantees):
        of_unit = {
            each.method: each for each in found.report.together.guarantees if each.unit == unit
        }
        of_unit[SUM] = of_unit.get(SUM) or of_unit[RECORD]
        rows.append((unit, *(_text(of_unit.get(method)) for method in _METHODS)))
    return TextTable(
        title=f"{found.title}: all use cases together, {found.num_days} "
        f"day{'s' * (found.num_days > 1)}; local epsilon, {found.neighboring}; delta 0 for the "
        f"sum, else {found.delta:g}",
        columns=("unit", *_METHODS.values()),
        rows=tuple(rows),
        note="*: the smallest; an empty cell is a single record.",
    )


def _use_cases(found: LedgerAccount) -> TextTable:
    """Return the table of single use cases: a record, a day, and all of a life."""
    rows = []
    for charge in found.rules.charges:
        name = charge.use_case
        report = found.report
        life = report.guarantee("user", SUM, name)
        cells = (
            found.short_name(name),
            round_up(charge.epsilon),
            round_up(_number(report.guarantee("day", SUM, name))),
            life.assumptions.split(" ", 1)[0],
            *(_text(report.guarantee("user", method, name)) for method in (SUM, LATER, PLD)),
        )
        rows.append(cells)
    return TextTable(
        title="each use case alone",
        columns=(
            "use case", "a record", "a day", "records", "life: sum", "advanced 2015", "PLD",
        ),
        rows=tuple(rows),
        note="",
    )  # fmt: skip


def _saturating(found: LedgerAccount, device: SaturatingDevice) -> TextTable:
    """Return the table of what a saturating device sent."""
    spending, by_day = device.spent, device.loss_by_day
    rows = [
        (f"permitted a day on average, {what}", round_up(epsilon))
        for what, epsilon in device.permitted_per_day.items()
    ]
    rows.append(("in its life", round_up(spending.life.basic.largest or 0.0)))
    rows.append(("on its worst day, counted from opt-in", round_up(max(by_day))))
    rows.append(("in its worst 24 hours", round_up(device.largest_in_24_hours)))
    first = next((day for day, loss in enumerate(by_day) if loss), 0)
    shown = ", ".join(f"{loss:g}" for loss in by_day[first : first + _DAYS_SHOWN])
    rows.append((f"day by day, from day {first} on", shown))
    rows += [
        (f"of {found.short_name(name)}, in its life", round_up(losses.basic.largest or 0.0))
        for name, losses in spending.life_by_use_case.items()
    ]
    return TextTable(
        title=f"a device with {device.events_per_day} events of each name on a busy day, after "
        f"{device.idle_days} idle ones",
        columns=("what it may send, and what it sent", "sum of epsilons"),
        rows=tuple(rows),
        note="",
    )


def _number(guarantee: Guarantee) -> float:
    return float("inf") if isinstance(guarantee.epsilon, NotApplicable) else guarantee.epsilon


def _text(guarantee: Guarantee | None) -> str:
    """Return an epsilon for a table, rounded up, the smallest marked."""
    if guarantee is None:
        return ""
    if isinstance(guarantee.epsilon, NotApplicable):
        return "not applicable"
    epsilon = guarantee.epsilon
    text = round_up(epsilon) if epsilon < 1e6 else f"{epsilon:.2g}"
    return text + (" *" if guarantee.best else "")
