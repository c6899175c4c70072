"""The privacy loss under some rules, and that of a saturating device under an audited system's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fedhh.accounting.bounds.composition import basic_composition
from fedhh.accounting.guarantees import REPLACE_ONE, REPLACE_VALUE, NotApplicable
from fedhh.longitudinal.ledger.ledger import Ledger
from fedhh.longitudinal.ledger.macos import HOUR, loss_by_day, most_within, records_by_day, simulate
from fedhh.longitudinal.ledger.macos_presets import CONFIGURATIONS, INITIALLY_ANNOUNCED
from fedhh.longitudinal.ledger.rules import (
    Rules,
    before_under_reports,
    most_under_reports,
    rules_of_configuration,
)
from fedhh.longitudinal.ledger.spending import Spending
from fedhh.longitudinal.ledger.statements import PLD, SUM, LedgerReport, guarantees, reports_of
from fedhh.random import Stream, generator
from fedhh.validation import InputError, require_at_least, require_choice

if TYPE_CHECKING:
    from fedhh.accounting.dp_event import DpEvent

_LONGEST = 3_650
"""Days: ten years."""
_MOST_EVENTS, _MOST_NAMES, _MOST_A_DAY = 100, 160, 400
_POINTS = 25
"""Of a curve."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Upper bounds on the privacy loss of growing numbers of days, at user level.

    Attributes:
        days: Numbers of days.
        together: Epsilons of all use cases by method, as long as ``days``; None for none known.
        by_use_case: Sums of epsilons by use case, as long as ``days``.
    """

    days: Sequence[int]
    together: Mapping[str, Sequence[float | None]]
    by_use_case: Mapping[str, Sequence[float]]


@dataclass(frozen=True, kw_only=True)
class SaturatingDevice:
    """What a device sent under an audited budget manager that always has something to send.

    Attributes:
        permitted_per_day: Epsilon times SessionAmount per day of its session, of all budgets and of
            the applications announced in 2016 (Tang et al. 2017, section 4.2.3).
        events_per_day: Events of each name on each day that is not idle.
        idle_days: First days without any.
        num_reports: Reports that it sent.
        loss_by_day: Sums of epsilons on each day from opt-in.
        largest_in_24_hours: Sum of epsilons in any 24 hours.
        spent: Its losses, as a ledger of one device.
    """

    permitted_per_day: Mapping[str, float]
    events_per_day: int
    idle_days: int
    num_reports: int
    loss_by_day: Sequence[float]
    largest_in_24_hours: float
    spent: Spending

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "spent": self.spent.to_dict()}


@dataclass(frozen=True, kw_only=True)
class LedgerAccount:
    """What a device loses at most: local privacy, per record, event, day, 24 hours and in all.

    Attributes:
        title: Of the rules.
        rules: Charges and caps.
        num_days: Days from opt-in.
        delta: Of PLD composition; 0 for sums.
        most_in_lifetime: The most records of each use case in so many days.
        report: Guarantees, each with its unit, neighbors and theorem.
        saturating: What a saturating device sent; None but for audited systems.
    """

    title: str
    rules: Rules
    num_days: int
    delta: float
    most_in_lifetime: Callable[[int], list[int]]
    report: LedgerReport
    saturating: SaturatingDevice | None = None

    @property
    def neighboring(self) -> str:
        """The neighboring relation; the weakest, where use cases differ."""
        named = {each.neighboring for each in self.report.together.guarantees}
        return REPLACE_VALUE if REPLACE_VALUE in named else REPLACE_ONE

    @property
    def notes(self) -> tuple[str, ...]:
        return *self.report.together.notes, *self.rules.notes

    def short_name(self, use_case: str) -> str:
        """Return a use case's name; of a BudgetKeyName, the last word."""
        return use_case if self.saturating is None else use_case.rpartition(".")[2]

    def curve(self) -> Curve:
        """Return the curve of at most `_POINTS` numbers of days, of which all days are the last."""
        charges = self.rules.charges
        days = sorted({int(each) for each in np.linspace(1, self.num_days, _POINTS).round()})
        counts = np.array([self.most_in_lifetime(each) for each in days], dtype=np.int64)
        together: dict[str, list[float | None]] = {each: [] for each in (SUM, PLD)}
        for most in counts.tolist():
            found = guarantees("user", charges, most, delta=self.delta)
            known = {
                each.method: None if isinstance(each.epsilon, NotApplicable) else each.epsilon
                for each in found
            }
            for method, values in together.items():
                # Of a single record, nothing is composed: the randomizer's epsilon holds.
                values.append(known[method] if len(found) > 1 else next(iter(known.values())))
        by_use_case = {}
        for charge, count in zip(charges, counts.T, strict=True):
            parts = np.repeat(count[:, None], len(charge.parts), axis=1)
            by_use_case[charge.use_case] = basic_composition(charge.parts, parts).tolist()
        return Curve(days=days, together=together, by_use_case=by_use_case)

    def dp_event(self) -> DpEvent:
        """Return all that a device sends as an event of dp-accounting; NoDpEventError if none."""
        from fedhh.accounting.dp_event import event_of_reports

        most = self.most_in_lifetime(self.num_days)
        return event_of_reports(*reports_of(self.rules.charges, most))

    def to_dict(self) -> dict[str, Any]:
        caps = self.rules.caps
        return {
            "rules": self.title,
            "use_cases": {
                charge.use_case: {
                    "epsilon": charge.epsilon,
                    "reports": list(charge.parts),
                    "once_per_value": charge.once_per_value,
                    **asdict(caps[charge.use_case]),
                }
                for charge in self.rules.charges
            },
            "delta": self.delta,
            **self.report.to_dict(),
            "curve": asdict(self.curve()),
            "saturating_device": None if self.saturating is None else self.saturating.to_dict(),
            "notes": list(self.rules.notes),
        }


def account_ledger(
    rules: Rules,
    *,
    num_days: int = 365,
    delta: float = 1e-10,
    without: Collection[str] = (),
    title: str = "your own rules",
) -> LedgerAccount:
    """Return what a device loses at most under caps, whatever happens: local privacy.

    Neighbors replace a record, an event, a day, any 24 hours or all days; sums of epsilons
    hold at delta 0. Each guarantee names its theorem.

    Args:
        rules: `APPLE`, `rules_of_run`, or your own.
        num_days: Days from opt-in, 1 to 3650.
        delta: Of PLD composition, from 1e-14 to 0.1.
        without: Use cases that the device never sends of.
        title: Of the rules.

    Raises:
        InputError: A value is out of range, or there is no such use case.
    """
    _check("days", num_days, _LONGEST)
    rules = rules.without(tuple(without))
    ledger = Ledger(charges=rules.charges, num_days=num_days, delta=delta)
    return LedgerAccount(
        title=title,
        rules=rules,
        num_days=num_days,
        delta=delta,
        most_in_lifetime=lambda days: ledger.most_in_lifetime(rules.caps, num_days=days),
        report=ledger.before(rules.caps),
    )


def account_audited_ledger(
    preset: str,
    *,
    num_days: int = 365,
    delta: float = 1e-10,
    without: Collection[str] = (),
    key_names: int = 1,
    idle_days: int = 0,
    busy_days: int | None = None,
    events: int = 10,
    seed: int = 0,
) -> LedgerAccount:
    """Return what a device loses under an audited system's rules, and what a saturating one sent.

    Neighbors, units and theorems are those of `account_ledger`; caps are the balances and reports
    of Tang et al. (2017).

    Args:
        preset: One of `fedhh.longitudinal.ledger.macos_presets.CONFIGURATIONS`.
        num_days: Days from opt-in, 1 to 3650.
        delta: Of PLD composition, from 1e-14 to 0.1.
        without: Budgets that the device never sends of; their last words will do.
        key_names: Names (languages) of a budget that the device uses, 1 to 160.
        idle_days: First days on which nothing happens.
        busy_days: Days after those on which something does; all if None.
        events: Events of each name on a busy day, 1 to 100.
        seed: Of the saturating device.

    Raises:
        InputError: A value is out of range, or there is no such budget or system.
    """
    _check("days", num_days, _LONGEST)
    require_choice(CONFIGURATIONS, preset=preset)
    shipped = CONFIGURATIONS[preset]
    short = {name.rpartition(".")[2]: name for name in shipped.paid_budgets}
    configuration = shipped.without([short.get(name, name) for name in without])
    rules = rules_of_configuration(configuration)
    ledger = Ledger(charges=rules.charges, num_days=num_days, delta=delta)
    _check("key_names", key_names, _MOST_NAMES)
    _check("events", events, _MOST_EVENTS)
    if events * key_names > _MOST_A_DAY:
        raise InputError(
            f"Expected events * key_names <= {_MOST_A_DAY}, got {events} * {key_names}."
        )
    device = simulate(
        configuration,
        num_days=num_days,
        idle_days=idle_days,
        busy_days=busy_days,
        events_per_day=events,
        key_names=key_names,
        rng=generator(seed, Stream.QUEUE),
    )
    sent = records_by_day(device.reports, ledger.use_cases, num_days)
    announced = [name for name in INITIALLY_ANNOUNCED if name in configuration.paid_budgets]
    return LedgerAccount(
        title=f"{preset}, as audited",
        rules=rules,
        num_days=num_days,
        delta=delta,
        most_in_lifetime=lambda days: most_under_reports(
            configuration, ledger, key_names=key_names, num_days=days
        ),
        report=before_under_reports(configuration, ledger, key_names=key_names),
        saturating=SaturatingDevice(
            permitted_per_day={
                "all": configuration.loss_per_day(),
                "announced in 2016": configuration.loss_per_day(announced),
            },
            spent=ledger.spent(np.expand_dims(sent, 2)),
            loss_by_day=loss_by_day(device.reports, num_days),
            largest_in_24_hours=most_within(device.reports, 24 * HOUR),
            num_reports=len(device.reports),
            events_per_day=events,
            idle_days=idle_days,
        ),
    )


def _check(name: str, value: int, most: int) -> None:
    require_at_least(1, **{name: value})
    if value > most:
        raise InputError(f"Expected {name} <= {most}, got {name}={value}.")
