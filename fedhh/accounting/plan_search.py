"""Searches over plans: the local epsilon, or the clients, with which a plan meets a central target.

What a run of a plan can claim before it starts is asked of the plan: `Plan.central_epsilon`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

from fedhh.accounting.bounds.composition import COARSE
from fedhh.accounting.bounds.shuffle_bound import LOCAL_EPSILON_RANGE, check_delta
from fedhh.accounting.collusion import honest_part_of
from fedhh.accounting.guarantees import UNITS, NotApplicable, Unit
from fedhh.accounting.plan import Plan
from fedhh.accounting.terms import PrivacyTerms
from fedhh.validation import (
    SMALLEST_EPSILON,
    InputError,
    require_at_least,
    require_choice,
    require_positive,
)

TOLERANCE = 1e-3
"""How far below a target the guarantee of a chosen local epsilon may stay, relative."""

MOST_CLIENTS = 10**12
"""Of a plan that is looked for."""

_DIGITS = 5
"""Significant digits of an epsilon that is chosen; `_MOST_DIGITS` where that is too coarse."""
_MOST_DIGITS = 12
_AMPLIFICATION = {"item": 3.6, "user": 3.1}
"""Central epsilons are about so many times sinh(epsilon / 2) sqrt(ln(4 / delta) / reports)."""
_GROUP = 1.1
"""User-level epsilons are about so many times the item-level ones, for each contribution."""
_ROUGHLY, _ROUGH_STEPS = 1e-2, 8
"""How far above the target the coarse bound at a start may be, and steps to find the start."""
_LEAST_SLOPE = 0.1
_SECANTS, _MOST_STEPS = 6, 100
"""Steps without any halving, and in all."""
_LINEAR = 1e-6
"""Relative difference of a central epsilon's ratio to the local one where nothing is amplified."""
_SAME = 1e-10
"""Relative difference of local epsilons that need not be distinguished."""

_Point = tuple[float, float]
"""A local epsilon, and the central one that it gives."""


def local_epsilon_of_plan(
    plan_at: Callable[[float], Plan],
    *,
    num_clients: int,
    unit: Unit,
    epsilon: float,
    delta: float,
    honest_share: float = 1.0,
) -> float | NotApplicable:
    """Return a setting's local epsilon with which a plan has a central guarantee before the run.

    The guarantee is at most ``epsilon``, and at least (1 - `TOLERANCE`) times that. Where shuffling
    amplifies nothing, the local guarantee is ``epsilon`` itself. Of two groups of clients, one of
    which trusts a curator, the guarantee is that of the other one.

    Args:
        plan_at: Returns the plan at a local epsilon, which its randomizers' is proportional to.
        num_clients: Clients of the population.
        unit: "item" or "user".
        epsilon: The target, above 0.
        delta: Of the guarantee, from 1e-14 to 0.1.
        honest_share: Of the clients; the others tell the reader their reports.

    Returns:
        The local epsilon; NotApplicable if none meets the target.
    """
    require_choice(UNITS, unit=unit)
    require_positive(epsilon=epsilon)
    plan = plan_at(1.0).who_randomize
    terms = terms_with(plan, honest_share, num_clients=num_clients, delta=delta)

    def search_with(
        asked: PrivacyTerms, *, above: float = 0.0, tolerance: float = TOLERANCE
    ) -> _LocalEpsilonSearch:
        return _LocalEpsilonSearch(
            target=epsilon * (1 + above),
            tolerance=tolerance,
            central=lambda local: plan_at(local).who_randomize.central_epsilon(unit, asked),
        )

    if terms.collusion is not None:
        plan = terms.collusion.honest_part(plan)
    share = plan.local_epsilon
    if math.isinf(share):
        return NotApplicable("without a randomizer every central epsilon is inf")
    low, high = (end / share for end in LOCAL_EPSILON_RANGE)
    of_item = epsilon / _times_the_item(plan, unit)
    reports = plan.max_items * plan.fewest_answers
    amplified = _AMPLIFICATION[unit] * math.sqrt(math.log(4 / delta) / reports)
    start = 2 * math.asinh(of_item / plan.most_rounds_per_client / amplified) / share
    search, slope = search_with(terms), 1.0
    if unit == "user" or plan.most_rounds_per_client > 1:
        # What is composed coarsely takes a tenth of the time, and rises alike.
        coarse = replace(terms, precision=COARSE, one_way=True)
        rough = search_with(coarse, above=_ROUGHLY, tolerance=_ROUGHLY)
        start = rough.between(low, high, start=start, steps=_ROUGH_STEPS) or start
        slope = rough.slope
        least_private = (
            share * plan.most_rounds_per_client * (plan.max_items if unit == "user" else 1)
        )
        if math.isclose(rough.central_at(start), start * least_private, rel_tol=_LINEAR):
            # Nothing is amplified there.
            start = epsilon / least_private
        elif unit == "user":
            quick = search_with(replace(terms, one_way=True))
            start = quick.between(low, high, start=start, slope=slope, steps=_ROUGH_STEPS) or start
            slope = quick.slope
    found = search.between(low, high, start=start, slope=slope)
    if found is None:
        too_much = search.central_at(low) > epsilon
        if too_much and of_item < SMALLEST_EPSILON:
            return NotApplicable(
                f"without amplification the target takes local_epsilon = {of_item:g}, below "
                f"{SMALLEST_EPSILON:g}, the least of a randomizer; ask for more"
            )
        found = search.proportional(low * (1 - 1e-6) if too_much else high)
    if found is None:
        return NotApplicable(
            f"local_epsilon = {high:g}, the largest with amplification, gives "
            f"{search.central_at(high):.3g} on {num_clients:,} clients; ask for less"
        )
    return found


def clients_of_plan(
    plan_at: Callable[[int], Plan],
    *,
    unit: Unit,
    epsilon: float,
    delta: float,
    honest_share: float = 1.0,
    start: int = 1,
) -> int | NotApplicable:
    """Return the fewest clients with which a plan has a central guarantee before the run.

    One client fewer misses it. That no smaller number meets it rests on the bounds falling with
    the number of clients, which they do up to the rounding of their numerics.

    Args:
        plan_at: Returns the plan for a number of clients, of a layer or in all; InputError where
            they are too few.
        unit: "item" or "user".
        epsilon: The target, above 0.
        delta: Of the guarantee, from 1e-14 to 0.1.
        honest_share: Of the clients; the others tell the reader their reports.
        start: A guess.

    Returns:
        At least 1; NotApplicable if `MOST_CLIENTS` miss the target.
    """
    require_choice(UNITS, unit=unit)
    require_positive(epsilon=epsilon)
    check_delta(delta)
    require_at_least(1, start=start)
    known: dict[int, float] = {}

    def central(clients: int) -> float:
        if clients not in known:
            try:
                plan = plan_at(clients)
                terms = terms_with(plan, honest_share, num_clients=clients, delta=delta)
            except InputError:
                if clients == MOST_CLIENTS:
                    raise
                return math.inf
            known[clients] = plan.central_epsilon(unit, terms)
        return known[clients]

    # The most clients that are known to miss the target, and the fewest that meet it.
    few, enough = 0, 0
    clients, stride = min(start, MOST_CLIENTS), 1
    for step in itertools.count():
        reached = central(clients)
        if reached <= epsilon:
            enough = clients
        elif clients == MOST_CLIENTS:
            return NotApplicable(
                f"even {MOST_CLIENTS:,} clients have {unit} central epsilon {reached:.3g}"
            )
        else:
            few = clients
        if enough and enough - few == 1:
            break
        # Central epsilons fall with the root of the clients, where anything is amplified.
        ratio = min(max(reached / epsilon, 0.25), 4.0)
        guess = math.ceil(clients * ratio**2)
        if abs(guess - clients) <= stride:
            guess = clients + (stride if clients == few else -stride)
            stride *= 4
        if enough and (step > _SECANTS or not few < guess < enough):
            guess = (few + enough) // 2
        clients = min(max(guess, 1), MOST_CLIENTS)
    return enough


def terms_with(plan: Plan, honest_share: float, *, num_clients: int, delta: float) -> PrivacyTerms:
    """Return terms under which all but an honest share of the clients collude, at delta in all."""
    colluders = num_clients - honest_part_of(num_clients, honest_share)
    return PrivacyTerms.within(plan, num_clients=num_clients, delta=delta, colluders=colluders)


class _LocalEpsilonSearch:
    """Looks for the local epsilon at which a central one, which rises with it, meets a target.

    Logarithms of the central epsilon and of sinh(local / 2) are nearly on a line: secants between
    them take a few steps, halving is for cliffs. Local epsilons are rounded before they are asked,
    so that what is returned was asked.
    """

    def __init__(
        self, *, central: Callable[[float], float], target: float, tolerance: float
    ) -> None:
        self._ask = central
        self._target, self._tolerance = target, tolerance
        self._known: dict[float, float] = {}
        self.slope = 1.0
        """How steep that line was where it was looked at last."""

    def central_at(self, local: float) -> float:
        """Return the central epsilon that a local one gives."""
        if local not in self._known:
            self._known[local] = self._ask(local)
        return self._known[local]

    def between(
        self, low: float, high: float, *, start: float, slope: float = 1.0, steps: int = _MOST_STEPS
    ) -> float | None:
        """Return a local epsilon of a range that meets the target; None if none does.

        Args:
            low: The least.
            high: The largest.
            start: A guess.
            slope: How steep the line is there, about.
            steps: At most; then the largest that is known to keep to the target.
        """
        self.slope = slope
        lower: _Point | None = None
        upper: _Point | None = None
        last: list[_Point] = []
        local = min(max(_rounded(start), low), high)
        for step in range(steps):
            point = local, self.central_at(local)
            last = [*last[-1:], point]
            self._look(last)
            if self._fits(point[1]):
                return local
            if point[1] <= self._target:
                lower = point
            else:
                upper = point
            if (lower and lower[0] == high) or (upper and upper[0] == low):
                return None
            asked = self._next(last, lower, upper, halve=step > _SECANTS and step % 2 == 0)
            local = min(max(_rounded(asked), low), high)
            if lower and upper and not lower[0] < local < upper[0]:
                # So steep that more digits are needed.
                local = _rounded((lower[0] + upper[0]) / 2, digits=_MOST_DIGITS)
                if upper[0] - lower[0] < _SAME * upper[0]:
                    break
        # A cliff: the central epsilon jumps past the target.
        return None if lower is None else lower[0]

    def proportional(self, local: float) -> float | None:
        """Return the local epsilon that meets the target where nothing is amplified; else None.

        Args:
            local: One just below, or the largest of, the range with amplification.
        """
        is_above = self.central_at(local) <= self._target
        probe = local * (1 + 1e-6) if is_above else local
        found = probe * self._target / self.central_at(probe)
        for each in (found, found * (1 - 1e-12)):
            if (each > local if is_above else each <= local) and self._fits(self.central_at(each)):
                return each
        return None

    def _fits(self, central: float) -> bool:
        return self._target * (1 - self._tolerance) <= central <= self._target

    def _look(self, last: list[_Point]) -> None:
        """Take the slope between the last two points, unless it leads nowhere."""
        (place, height), *before = [
            (_place(local), math.log(max(central, 1e-300))) for local, central in reversed(last)
        ]
        for other in before:
            if other[0] != place and (height - other[1]) / (place - other[0]) > _LEAST_SLOPE:
                self.slope = (height - other[1]) / (place - other[0])

    def _next(
        self, last: list[_Point], lower: _Point | None, upper: _Point | None, *, halve: bool
    ) -> float:
        aim = math.log(self._target * (1 - self._tolerance / 2))
        (local, central) = last[-1]
        if len(last) == 2 and math.isclose(
            central / local, last[0][1] / last[0][0], rel_tol=_LINEAR
        ):
            # Nothing is amplified here.
            return local * self._target / central
        if lower and upper and halve:
            return (lower[0] + upper[0]) / 2
        height = math.log(max(central, 1e-300))
        return _local_at(_place(local) + (aim - height) / self.slope)


def _place(local: float) -> float:
    half = local / 2
    return half + math.log(-math.expm1(-2 * half) / 2)


def _local_at(place: float) -> float:
    """Return the local epsilon of a `_place`."""
    return 2 * math.asinh(math.exp(min(place, 300.0)))


def _rounded(local: float, *, digits: int = _DIGITS) -> float:
    return float(f"{local:.{digits}g}")


def _times_the_item(plan: Plan, unit: Unit) -> float:
    """Return about how many times the item-level central epsilon a unit's is."""
    items = plan.max_items
    return _GROUP * items if unit == "user" and items > 1 else 1.0
