"""What is claimed of numbers of records: guarantees by sum and optimal composition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedhh.accounting.bounds.composition import basic_composition, optimal_composition
from fedhh.accounting.guarantees import (
    REPLACE_ONE,
    REPLACE_VALUE,
    Guarantee,
    PrivacyReport,
    Unit,
)
from fedhh.accounting.sources import BASIC, OPTIMAL
from fedhh.longitudinal.ledger.cap import Charge
from fedhh.validation import InputError, did_you_mean

RECORD, SUM, PLD = "randomizer", "basic", "PLD"
"""The methods, in the order in which they are listed."""
_WORTH = 1e-6
"""The plain sum has delta 0: what saves less than this part of it is not called smaller."""
_MOST_RECORDS = 10**9
"""Of a use case in all days."""
_NOTES = (
    "Local: against whoever reads the records and knows which device sent them.",
    "Neighbors replace one record, of all records of one event, of all that a device sends "
    "in one day, in any 24 hours, or in all. How many records are sent when, and of which use "
    "case, is not hidden.",
    "A day is one of sending: records of one day's events that wait may be sent on several days.",
)


@dataclass(frozen=True, kw_only=True)
class LedgerReport:
    """What a device loses, of each use case and all together.

    Attributes:
        num_days: Days from opt-in.
        by_use_case: A report for each use case; trust is local, units are item, event, day,
            24 hours and user.
        together: The report of all use cases.
    """

    num_days: int
    by_use_case: Mapping[str, PrivacyReport]
    together: PrivacyReport

    def of(self, use_case: str | None = None) -> PrivacyReport:
        if use_case is None:
            return self.together
        if use_case not in self.by_use_case:
            raise InputError(
                f"Unknown use case {use_case!r}{did_you_mean(use_case, self.by_use_case)}"
            )
        return self.by_use_case[use_case]

    def guarantee(self, unit: Unit, method: str, use_case: str | None = None) -> Guarantee:
        """Return the guarantee of a unit by a method; of a single record, the randomizer's."""
        of_unit = [each for each in self.of(use_case).guarantees if each.unit == unit]
        return next((each for each in of_unit if each.method == method), of_unit[0])

    def to_dict(self) -> dict[str, Any]:
        return {
            "num_days": self.num_days,
            "together": self.together.to_dict(),
            "by_use_case": {name: each.to_dict() for name, each in self.by_use_case.items()},
        }


def report_of(
    charges: Sequence[Charge],
    most: Mapping[Unit, Sequence[int]],
    *,
    num_days: int,
    delta: float,
    realised: bool = False,
    note: str,
) -> LedgerReport:
    """Return guarantees for the most records of each use case, ``(use_cases,)``, that a unit has.

    One record, and one event, is of one use case: all together, the dearest counts. Delta is of
    PLD composition; the note is what else a reader has to know.
    """

    def report(some: Sequence[Charge], counts: Mapping[Unit, Sequence[int]]) -> PrivacyReport:
        found = [
            each
            for unit, numbers in counts.items()
            for each in guarantees(unit, some, numbers, delta=delta, realised=realised)
        ]
        return PrivacyReport(guarantees=tuple(found), anonymity=(), notes=(*_NOTES, note))

    together = dict(most)
    for unit, counts in most.items():
        if unit in {"item", "event"}:
            losses = [c.epsilon * n if n else 0.0 for c, n in zip(charges, counts, strict=True)]
            dearest = losses.index(max(losses))
            together[unit] = [n if i == dearest else 0 for i, n in enumerate(counts)]
    return LedgerReport(
        num_days=num_days,
        by_use_case={
            charge.use_case: report([charge], {unit: [n[index]] for unit, n in most.items()})
            for index, charge in enumerate(charges)
        },
        together=report(charges, together),
    )


def reports_of(charges: Sequence[Charge], counts: Sequence[int]) -> tuple[list[float], list[int]]:
    """Return the epsilon of each kind of report of some records, and how many there are."""
    parts = [
        (epsilon, count)
        for charge, count in zip(charges, counts, strict=True)
        for epsilon in charge.parts
    ]
    return [epsilon for epsilon, _ in parts], [count for _, count in parts]


def guarantees(
    unit: Unit,
    charges: Sequence[Charge],
    counts: Sequence[int],
    *,
    delta: float,
    realised: bool = False,
) -> list[Guarantee]:
    """Return what holds for so many records of some use cases, the smallest epsilon marked.

    The plain sum, whose delta is 0, is marked unless optimal composition saves a part in 10**6.

    Args:
        unit: What the records are all of.
        charges: One for each use case.
        counts: ``(use_cases,)``: records, or values where these are paid for; at most 10**9.
        delta: Of optimal composition; the plain sum's is 0.
        realised: Whether the counts are what happened.
    """
    if max(counts, default=0) > _MOST_RECORDS:
        raise InputError(f"Expected at most {_MOST_RECORDS:,} records, got {max(counts):,}.")
    epsilons, parts = reports_of(charges, counts)
    numbers = np.asarray(parts, dtype=np.int64)
    total = float(basic_composition(epsilons, numbers))
    used = [charge for charge, count in zip(charges, counts, strict=True) if count]
    by_value = any(charge.once_per_value for charge in used)
    single = sum(counts) == 1
    plain = Guarantee(
        unit=unit,
        trust="local",
        method=RECORD if single else SUM,
        epsilon=total,
        delta=0.0,
        theorem=used[0].theorem if single else BASIC,
        assumptions=_assumptions(charges, counts, by_value=by_value),
        smallest_cohort=1,
        neighboring=REPLACE_VALUE if by_value else REPLACE_ONE,
        realised=realised,
    )
    if single or not used:
        return [replace(plain, best=True)]
    epsilon = optimal_composition(epsilons, parts, delta=delta)
    said = plain.assumptions
    if epsilon >= total:
        said += "; no less than basic composition"
    composed = replace(
        plain, method=PLD, epsilon=epsilon, delta=delta, theorem=OPTIMAL, assumptions=said
    )
    saves = epsilon < total * (1 - _WORTH)
    return [replace(plain, best=not saves), replace(composed, best=saves)]


def _assumptions(charges: Sequence[Charge], counts: Sequence[int], *, by_value: bool) -> str:
    named = ", ".join(
        f"{count} {'value' if charge.once_per_value else 'record'}{'s' * (count != 1)} of "
        f"{charge.use_case} (epsilon {charge.epsilon:g})"
        for charge, count in zip(charges, counts, strict=True)
        if count
    )
    tail = "; that records are about the same value is not hidden" if by_value else ""
    return (
        f"{named or 'no record'}; neighbors send equally many records of each use case on the "
        f"same days{tail}"
    )
