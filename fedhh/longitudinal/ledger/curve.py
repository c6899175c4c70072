"""What lives of growing length lose at most."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fedhh.accounting.bounds.pure_composition import basic_composition
from fedhh.accounting.guarantees import NotApplicable
from fedhh.longitudinal.ledger.charge import Charge
from fedhh.longitudinal.ledger.statements import EARLY, LATER, PLD, SUM, guarantees

METHODS = (SUM, EARLY, LATER, PLD)


@dataclass(frozen=True, kw_only=True)
class Curve:
    """What lives of growing length lose at most, at user level.

    Attributes:
        days: Lengths of life.
        together: Epsilons of all use cases by method, as long as ``days``; None for none known.
        by_use_case: Sums of epsilons by use case, as long as ``days``.
    """

    days: Sequence[int]
    together: Mapping[str, Sequence[float | None]]
    by_use_case: Mapping[str, Sequence[float]]


def loss_curve(
    charges: Sequence[Charge],
    most_in_life: Callable[[int], Sequence[int]],
    *,
    num_days: int,
    delta: float,
    points: int = 25,
) -> Curve:
    """Return what lives of up to so many lengths lose, the whole life's included.

    Args:
        charges: One for each use case.
        most_in_life: Gives the most records of each use case in a life of some days.
        num_days: Days of the whole life.
        delta: Of advanced and PLD composition.
        points: Lengths at most.
    """
    lengths = sorted({int(each) for each in np.linspace(1, num_days, points).round()})
    counts = np.array([most_in_life(length) for length in lengths], dtype=np.int64)
    together: dict[str, list[float | None]] = {method: [] for method in METHODS}
    for most in counts.tolist():
        found = guarantees("user", charges, most, delta=delta)
        known = {
            each.method: None if isinstance(each.epsilon, NotApplicable) else each.epsilon
            for each in found
        }
        for method, values in together.items():
            # Of a single record, nothing is composed: the randomizer's epsilon holds.
            values.append(known[method] if len(found) > 1 else next(iter(known.values())))
    return Curve(
        days=lengths,
        together=together,
        by_use_case={
            charge.use_case: basic_composition(
                charge.parts, np.repeat(counts[:, [index]], len(charge.parts), axis=1)
            ).tolist()
            for index, charge in enumerate(charges)
        },
    )
