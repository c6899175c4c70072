"""Tables of ledgers and of memoized answers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from fedhh.accounting.guarantees import Guarantee, NotApplicable
from fedhh.experiments.study.parts import Line, Part
from fedhh.experiments.study.text_table import TextTable, round_up
from fedhh.longitudinal.ledger import LedgerAccount, SaturatingDevice
from fedhh.longitudinal.ledger.statements import PLD, RECORD, SUM
from fedhh.longitudinal.memoization import MemoAccount, MemoizedBits, Observed

_DAYS_SHOWN = 7
_METHODS = {SUM: "sum", PLD: "PLD"}


def ledger_parts(found: LedgerAccount) -> Iterator[Part]:
    """Yield the tables of a ledger and its notes."""
    yield _levels(found)
    yield _use_cases(found)
    if found.saturating is not None:
        yield _saturating(found, found.saturating)
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
            (unit, *(_guaranteed(methods.get(method)) for method in _METHODS))
            for unit, methods in by_unit.items()
        ),
        note="*: the smallest; an empty cell is a single record.",
    )


def _use_cases(found: LedgerAccount) -> TextTable:
    """Return the table of single use cases: a record, a day, and all days."""
    report = found.report
    return TextTable(
        title="each use case alone",
        columns=(
            "use case", "a record", "a day", "records", "all days: sum", "PLD",
        ),
        rows=tuple(
            (
                found.short_name(charge.use_case),
                round_up(charge.epsilon),
                _guaranteed(replace(report.guarantee("day", SUM, charge.use_case), best=False)),
                report.guarantee("user", SUM, charge.use_case).assumptions.split(" ", 1)[0],
                *(
                    _guaranteed(report.guarantee("user", method, charge.use_case))
                    for method in (SUM, PLD)
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
        ("in its lifetime", round_up(spending.lifetime.basic.largest or 0.0)),
        ("on its worst day, counted from opt-in", round_up(max(by_day))),
        ("in its worst 24 hours", round_up(device.largest_in_24_hours)),
        (f"day by day, from day {first} on", shown),
        *(
            (f"of {found.short_name(name)}, in its lifetime", round_up(losses.basic.largest or 0.0))
            for name, losses in spending.lifetime_by_use_case.items()
        ),
    )
    return TextTable(
        title=f"a device with {device.events_per_day} events of each name on a busy day, after "
        f"{device.idle_days} idle ones",
        columns=("what it may send, and what it sent", "sum of epsilons"),
        rows=rows,
        note="",
    )


def _guaranteed(guarantee: Guarantee | None) -> str:
    """Return an epsilon for a table, rounded up, the smallest marked."""
    if guarantee is None:
        return ""
    if isinstance(guarantee.epsilon, NotApplicable):
        return "not applicable"
    epsilon = guarantee.epsilon
    text = round_up(epsilon) if epsilon < 1e6 else f"{epsilon:.2g}"
    return text + (" *" if guarantee.best else "")


def memo_parts(account: MemoAccount, crowd: int | None = None) -> Iterator[Part]:
    """Yield the tables of an account, and what their numbers are about."""
    yield Line(f"{account.title}: all reports of one device, linked; delta 0")
    yield from _memo_tables(account)
    yield from map(Line, _memo_notes(account))
    if account.found is not None:
        found, days = account.found, account.rows[-1].days
        yield Line(
            f"Found again among {crowd} devices with the same value, {days} reports under each of "
            f"two pseudonyms: {100 * found.right:.1f}% (99% interval {100 * found.lower:.1f} to "
            f"{100 * found.upper:.1f}, {found.num_trials} trials simulated); by chance "
            f"{100 * found.by_chance:.3g}%."
        )


def _memo_tables(account: MemoAccount) -> Iterator[TextTable]:
    fresh = account.name == "fresh"
    kinds = ("fresh",) if fresh else ("memoized", "fresh")
    value, change = [], []
    for row in account.rows:
        values = [_observed_epsilon(row.value), _share(row.value)]
        changes = [_observed_epsilon(row.change), _share(row.change)]
        if not fresh:
            values += [_observed_epsilon(row.value_if_fresh), _share(row.value_if_fresh)]
            changes += [
                _share(row.change_if_fresh),
                _observed_epsilon(row.one_day),
                _share(row.linked),
            ]
        value.append((str(row.days), *values))
        change.append((str(row.days), *changes))
    yield TextTable(
        title="always A, or always B?",
        columns=("days", *(f"{kind}: {what}" for kind in kinds for what in ("epsilon", "success"))),
        rows=tuple(value),
        note="",
    )
    links = ("epsilon, B on one day", "one device or two?") if not fresh else ()
    yield TextTable(
        title=f"always A, or A and B with {account.changes} change{'s' * (account.changes > 1)}?",
        columns=("days", "epsilon", *(f"{kind}: success" for kind in kinds), *links),
        rows=tuple(change),
        note="",
    )


def _share(observer: Observed | None) -> str:
    """Return how often an observer is right, between bounds where they differ."""
    if observer is None:
        return "-"
    low, high = (f"{100 * bound:.1f}" for bound in (observer.lower, observer.upper))
    if low == "100.0" and observer.lower < 1:
        return ">99.9%"
    return f"{low}%" if low == high else f"{low}-{high}%"


def _observed_epsilon(observed: Observed | None) -> str:
    """Return an epsilon rounded up, large ones to whole numbers."""
    if observed is None:
        return "-"
    if not math.isfinite(observed.epsilon):
        return round_up(observed.epsilon)
    digits = 1e3 if observed.epsilon < 100 else 1.0
    return _rounded(math.ceil(observed.epsilon * digits - 1e-6) / digits)


def _rounded(epsilon: float) -> str:
    """Return an epsilon rounded up, but for what floating point has added."""
    return round_up(epsilon * (1 - 1e-12))


def _memo_notes(account: MemoAccount) -> Iterator[str]:
    """Yield what the tables' numbers are about, in sentences."""
    yield (
        "success: how often the best observer is right; 50% is guessing. A and B are the two "
        "values that are easiest to distinguish."
    )
    yield (
        f"One report: epsilon {_rounded(account.epsilon_first)}. All reports about one value: "
        f"{_rounded(account.epsilon_forever)}. Neighbors: always one value, always another."
    )
    visible = account.change_shows
    if visible is None:
        return
    bounds = []
    for width, epsilon in account.epsilons_of_patterns.items():
        noun = "value" if width == 1 else "values"
        bounds.append(f"{width} {noun} epsilon {_rounded(epsilon)}")
    answer = account.answer
    rounds = isinstance(answer, MemoizedBits) and answer.step is not None
    rounded = ", once rounded," if rounds else ""
    yield (
        f"Two histories whose values{rounded} repeat and differ on the same days: "
        f"{', '.join(bounds)}."
    )
    # Below 1, and never rounded to it.
    chance = ">0.9999" if visible >= 0.99995 else f"{visible:.4f}"
    yield (
        f"Not covered by that: with probability {chance} a change between the two values changes "
        "the permanent response, and reports then show it."
    )
    yield (
        "One device or two: whether two pseudonyms with so many reports each about one value, "
        "with the same cohort or drawn buckets, are one device."
    )
