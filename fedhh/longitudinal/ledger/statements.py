"""What is claimed of a number of records: typed guarantees, by every composition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fedhh.accounting.bounds.pure_composition import (
    advanced_composition,
    basic_composition,
    early_advanced_composition,
    optimal_composition,
)
from fedhh.accounting.guarantees import SWAP, VALUE_SWAP, Guarantee, NotApplicable, Unit
from fedhh.accounting.sources import ADVANCED, ADVANCED_2010, BASIC, OPTIMAL
from fedhh.longitudinal.ledger.charge import Charge
from fedhh.validation import InputError

RECORD, SUM, EARLY, LATER, PLD = "randomizer", "basic", "advanced 2010", "advanced", "PLD"
"""The methods, in the order in which they are listed."""
_WORTH = 1e-6
"""The plain sum has delta 0: what saves less than this part of it is not called smaller."""
_MOST_RECORDS = 10**9
"""Of a use case in a life."""

_SAME_NUMBERS = "neighbors send equally many records of each use case on the same days"
_OF_VALUES = "that records are about the same value is not hidden"


def guarantees(
    unit: Unit,
    charges: Sequence[Charge],
    counts: Sequence[int],
    *,
    delta: float,
    realised: bool = False,
) -> list[Guarantee]:
    """Return what holds for so many records of some use cases, the smallest epsilon marked.

    The plain sum, whose delta is 0, is marked unless another saves a part in 10**6.

    Args:
        unit: What the records are all of.
        charges: One for each use case.
        counts: ``(use_cases,)``: records (or values, where these are paid for).
        delta: Of all but the plain sum.
        realised: Whether the counts are what happened.

    Raises:
        InputError: More than 10**9 records of a use case.
    """
    if max(counts, default=0) > _MOST_RECORDS:
        raise InputError(f"Expected at most {_MOST_RECORDS:,} records, got {max(counts):,}.")
    epsilons = [part for charge in charges for part in charge.parts]
    parts = [count for charge, count in zip(charges, counts, strict=True) for _ in charge.parts]
    total = float(basic_composition(epsilons, np.asarray(parts, dtype=np.int64)))
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
        neighboring=VALUE_SWAP if by_value else SWAP,
        realised=realised,
    )
    if single or not used:
        return [replace(plain, best=True)]
    numbers = np.asarray(parts, dtype=np.int64)
    early = float(early_advanced_composition(epsilons, numbers, delta=delta))
    later = float(advanced_composition(epsilons, numbers, delta=delta))
    found = [
        plain,
        _beside(plain, EARLY, early, delta, ADVANCED_2010),
        _beside(plain, LATER, later, delta, ADVANCED),
        _beside(plain, PLD, optimal_composition(epsilons, parts, delta=delta), delta, OPTIMAL),
    ]
    best = min(found, key=lambda each: _number(each.epsilon))
    if _number(best.epsilon) >= total * (1 - _WORTH):
        best = plain
    return [replace(each, best=each is best) for each in found]


def _beside(
    plain: Guarantee, method: str, epsilon: float | NotApplicable, delta: float, theorem: str
) -> Guarantee:
    """Return another guarantee of the same records; where it is of no use, it says so."""
    said = plain.assumptions
    number, total = _number(epsilon), _number(plain.epsilon)
    if not isinstance(epsilon, NotApplicable) and number >= total:
        said += (
            "; above basic composition" if number > total else "; no less than basic composition"
        )
    return replace(
        plain, method=method, epsilon=epsilon, delta=delta, theorem=theorem, assumptions=said
    )


def _assumptions(charges: Sequence[Charge], counts: Sequence[int], *, by_value: bool) -> str:
    named = ", ".join(
        f"{count} {'value' if charge.once_per_value else 'record'}{'s' * (count != 1)} of "
        f"{charge.use_case} (epsilon {charge.epsilon:g})"
        for charge, count in zip(charges, counts, strict=True)
        if count
    )
    tail = f"; {_OF_VALUES}" if by_value else ""
    return f"{named or 'no record'}; {_SAME_NUMBERS}{tail}"


def _number(epsilon: float | NotApplicable) -> float:
    return math.inf if isinstance(epsilon, NotApplicable) else epsilon
