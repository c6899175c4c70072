"""A ledger's report: guarantees of each use case, and of all together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedhh.accounting.guarantees import Guarantee, PrivacyReport, Unit
from fedhh.longitudinal.ledger.charge import Charge
from fedhh.longitudinal.ledger.statements import guarantees
from fedhh.validation import InputError, did_you_mean

_NOTES = (
    "Local: against whoever reads the records and knows which device sent them.",
    "Neighbors are swaps: of one record, of all records of one event, of all that a device sends "
    "in one day, in any 24 hours, or in its life. How many records are sent when, and of which use "
    "case, is not hidden.",
    "A day is one of sending: records of one day's events that wait may be sent on several days.",
)


@dataclass(frozen=True, kw_only=True)
class LedgerReport:
    """What a device loses, of each use case and all together.

    Attributes:
        num_days: Days of its life.
        by_use_case: A report for each use case; trust is local, units are item, event, day,
            24 hours and user.
        together: The report of all use cases.
    """

    num_days: int
    by_use_case: Mapping[str, PrivacyReport]
    together: PrivacyReport

    def of(self, use_case: str | None = None) -> PrivacyReport:
        """Return the report of a use case, or of all together."""
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
        """Return a JSON-ready dictionary."""
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
    notes: tuple[str, ...] = (),
) -> LedgerReport:
    """Return guarantees for the most records of each use case that a unit has.

    One record, and one event, is of one use case: all together, the dearest counts.

    Args:
        charges: One for each use case.
        most: ``(use_cases,)`` for each unit.
        num_days: Days of the life.
        delta: Of advanced and PLD composition.
        realised: Whether the numbers are what happened.
        notes: What else a reader has to know, one line each.
    """
    notes = _NOTES + notes
    alone: list[list[Guarantee]] = [
        [
            each
            for unit, counts in most.items()
            for each in guarantees(unit, [charge], [counts[index]], delta=delta, realised=realised)
        ]
        for index, charge in enumerate(charges)
    ]
    together: list[Guarantee] = []
    for unit, counts in most.items():
        chosen = list(counts)
        if unit in {"item", "event"}:
            losses = [
                charge.epsilon * n if n else 0.0 for charge, n in zip(charges, counts, strict=True)
            ]
            dearest = losses.index(max(losses))
            chosen = [n if index == dearest else 0 for index, n in enumerate(counts)]
        together += guarantees(unit, charges, chosen, delta=delta, realised=realised)
    return LedgerReport(
        num_days=num_days,
        by_use_case={
            charge.use_case: PrivacyReport(guarantees=tuple(each), anonymity=(), notes=notes)
            for charge, each in zip(charges, alone, strict=True)
        },
        together=PrivacyReport(guarantees=tuple(together), anonymity=(), notes=notes),
    )
