"""Tables of a ledger: all use cases together, each alone, and a saturating device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fedhh.accounting.guarantees import Guarantee, NotApplicable
from fedhh.experiments.study.parts import Line, Opinions, Part
from fedhh.experiments.study.text_table import TextTable, round_up
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
    by_unit: dict[str, dict[str, Guarantee]] = {}
    for each in found.report.together.guarantees:
        by_unit.setdefault(each.unit, {})[SUM if each.method == RECORD else each.method] = each
    return TextTable(
        title=f"{found.title}: all use cases together, {found.num_days} "
        f"day{'s' * (found.num_days > 1)}; local epsilon, {found.neighboring}; delta 0 for the "
        f"sum, else {found.delta:g}",
        columns=("unit", *_METHODS.values()),
        rows=tuple(
            (unit, *(_text(methods.get(method)) for method in _METHODS))
            for unit, methods in by_unit.items()
        ),
        note="*: the smallest; an empty cell is a single record.",
    )


def _use_cases(found: LedgerAccount) -> TextTable:
    """Return the table of single use cases: a record, a day, and all of a life."""
    report = found.report
    return TextTable(
        title="each use case alone",
        columns=(
            "use case", "a record", "a day", "records", "life: sum", "advanced 2015", "PLD",
        ),
        rows=tuple(
            (
                found.short_name(charge.use_case),
                round_up(charge.epsilon),
                _text(replace(report.guarantee("day", SUM, charge.use_case), best=False)),
                report.guarantee("user", SUM, charge.use_case).assumptions.split(" ", 1)[0],
                *(
                    _text(report.guarantee("user", method, charge.use_case))
                    for method in (SUM, LATER, PLD)
                ),
            )
            for charge in found.rules.charges
        ),
        note="",
    )  # fmt: skip


def _saturating(found: LedgerAccount, device: SaturatingDevice) -> TextTable:
    """Return the table of what a saturating device sent."""
    spending, by_day = device.spent, device.loss_by_day
    first = next((day for day, loss in enumerate(by_day) if loss), 0)
    shown = ", ".join(f"{loss:g}" for loss in by_day[first : first + _DAYS_SHOWN])
    rows = (
        *(
            (f"permitted a day on average, {what}", round_up(epsilon))
            for what, epsilon in device.permitted_per_day.items()
        ),
        ("in its life", round_up(spending.life.basic.largest or 0.0)),
        ("on its worst day, counted from opt-in", round_up(max(by_day))),
        ("in its worst 24 hours", round_up(device.largest_in_24_hours)),
        (f"day by day, from day {first} on", shown),
        *(
            (f"of {found.short_name(name)}, in its life", round_up(losses.basic.largest or 0.0))
            for name, losses in spending.life_by_use_case.items()
        ),
    )
    return TextTable(
        title=f"a device with {device.events_per_day} events of each name on a busy day, after "
        f"{device.idle_days} idle ones",
        columns=("what it may send, and what it sent", "sum of epsilons"),
        rows=rows,
        note="",
    )


def _text(guarantee: Guarantee | None) -> str:
    """Return an epsilon for a table, rounded up, the smallest marked."""
    if guarantee is None:
        return ""
    if isinstance(guarantee.epsilon, NotApplicable):
        return "not applicable"
    epsilon = guarantee.epsilon
    text = round_up(epsilon) if epsilon < 1e6 else f"{epsilon:.2g}"
    return text + (" *" if guarantee.best else "")
