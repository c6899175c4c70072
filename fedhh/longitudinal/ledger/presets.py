"""Ledgers by name: published caps, and the audited budget rules of Apple's systems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fedhh.accounting.guarantees import Unit
from fedhh.accounting.sources import APPLE_CMS, APPLE_HCMS, APPLE_SFP
from fedhh.longitudinal.ledger.cap import Cap
from fedhh.longitudinal.ledger.charge import DEFINITION, Charge
from fedhh.longitudinal.ledger.ledger import Ledger
from fedhh.longitudinal.ledger.ledger_report import LedgerReport, report_of
from fedhh.longitudinal.ledger.macos import HOUR, INTERVALS, REPORTS
from fedhh.longitudinal.ledger.macos_configuration import Configuration
from fedhh.validation import InputError, did_you_mean, require_at_least

_DAY_HOURS = 24
_REPORT_HOURS = INTERVALS[REPORTS] // HOUR
"""Hours, as those of a day."""


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Charges and caps of a system.

    Attributes:
        charges: One for each use case.
        caps: By use case.
        notes: What a reader of the numbers has to know.
    """

    charges: tuple[Charge, ...]
    caps: Mapping[str, Cap]
    notes: tuple[str, ...] = ()

    def without(self, use_cases: tuple[str, ...]) -> Rules:
        """Return the rules of a device that never sends of some use cases."""
        names = [charge.use_case for charge in self.charges]
        for name in use_cases:
            if name not in names:
                raise InputError(f"Unknown use case {name!r}{did_you_mean(name, names)}")
        kept = tuple(charge for charge in self.charges if charge.use_case not in use_cases)
        if not kept:
            raise InputError("Expected at least one use case to be left, got none.")
        return Rules(
            charges=kept,
            caps={charge.use_case: self.caps[charge.use_case] for charge in kept},
            notes=self.notes,
        )


APPLE = Rules(
    charges=(
        Charge(use_case="quicktype", epsilon=8, reports=(2, 6), theorem=APPLE_SFP),
        Charge(use_case="emoji", epsilon=4, theorem=APPLE_CMS),
        Charge(use_case="lookup-hints", epsilon=4),
        Charge(use_case="health", epsilon=2, theorem=APPLE_CMS),
        Charge(use_case="safari-energy-crash", epsilon=4, theorem=APPLE_HCMS),
        Charge(use_case="safari-autoplay", epsilon=8, theorem=APPLE_CMS),
    ),
    caps={
        "quicktype": Cap(amount=2),
        "emoji": Cap(amount=1),
        "lookup-hints": Cap(amount=2),
        "health": Cap(amount=1),
        "safari-energy-crash": Cap(amount=2),
        "safari-autoplay": Cap(amount=2),
    },
    notes=(
        "Epsilons and records per day: Apple, 'Differential Privacy' (technical overview), section "
        "Privacy budget. Which algorithm, and that QuickType's 8 are 2 + 6: Apple (2017), sections "
        "6.1 to 6.5; neither says how lookup hints are randomized.",
        "'For Safari, Apple limits user contributions to 2 donations per day': taken as 2 for "
        "energy and crashes, which share a budget, and 2 for autoplay; if it means 2 in all, the "
        "day's sum is less by 8.",
        "The overview says nothing of unused contributions: no rollover is assumed.",
    ),
)
"""Apple's published caps of its technical overview."""


def rules_of_configuration(configuration: Configuration) -> Rules:
    """Return the charges and caps of an audited configuration, a use case for each budget.

    Of several PropertiesNames with one budget, the largest epsilon counts. Caps are balances alone.
    """
    budgets = configuration.paid_budgets
    return Rules(
        charges=tuple(
            Charge(
                use_case=name,
                epsilon=configuration.epsilon_of(name),
                theorem=f"{DEFINITION}; PrivacyParameter, Tang et al. (2017), "
                + "; ".join(
                    dict.fromkeys(
                        each.source
                        for each in configuration.key_properties.values()
                        if each.budget == name
                    )
                ),
            )
            for name in budgets
        ),
        caps={name: configuration.budgets[name].cap for name in budgets},
        notes=tuple(configuration.notes),
    )


def before_under_reports(
    configuration: Configuration, ledger: Ledger, *, key_names: int, num_days: int | None = None
) -> LedgerReport:
    """Return `Ledger.before` for balances and for what reports have room for.

    A report comes at least 18 hours after the one before, and holds at most min(SessionAmount, 40)
    records of a KeyName. In any half-open window of h hours there are at most ceil(h / 18): 2 in a
    day or any 24 hours.

    Args:
        configuration: The audited rules.
        ledger: Of `rules_of_configuration`.
        key_names: KeyNames of a budget that a device uses at most, at least 1.
        num_days: Days from opt-in; the ledger's if None.
    """
    days = ledger.num_days if num_days is None else num_days
    singles = [1] * len(ledger.charges)
    units: dict[Unit, list[int]] = {
        "item": singles,
        "event": singles,
        "day": _most(configuration, ledger, key_names, hours=_DAY_HOURS, window=1, days=days),
        "24 hours": _most(configuration, ledger, key_names, hours=_DAY_HOURS, window=2, days=days),
        "user": most_under_reports(configuration, ledger, key_names=key_names, num_days=days),
    }
    note = (
        "One day and 24 hours have room for 2 reports, at least 18 hours apart: a device that "
        f"saved up, with {key_names} KeyName{'s' * (key_names > 1)} of each budget, fills both."
    )
    return report_of(ledger.charges, units, num_days=days, delta=ledger.delta, notes=(note,))


def most_under_reports(
    configuration: Configuration, ledger: Ledger, *, key_names: int, num_days: int
) -> list[int]:
    """Return the most records of each use case in a life of some days; `before_under_reports`."""
    hours = num_days * _DAY_HOURS
    return _most(configuration, ledger, key_names, hours=hours, window=num_days, days=num_days)


def _most(
    configuration: Configuration,
    ledger: Ledger,
    key_names: int,
    *,
    hours: int,
    window: int,
    days: int,
) -> list[int]:
    """Return the most records in any so many hours, which lie in a window of whole days."""
    require_at_least(1, key_names=key_names)
    reports = -(-hours // _REPORT_HOURS)
    most = []
    for name in ledger.use_cases:
        budget = configuration.budgets[name]
        paid = budget.cap.most_in_any(min(window, days), of_days=days)
        most.append(min(paid, reports * key_names * budget.most_per_key))
    return most
