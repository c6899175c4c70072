"""A second opinion on composed epsilons: dp-accounting's privacy loss distributions.

What fedhh composes, dp-accounting composes once more, from the same delta as a function of epsilon
(or the same randomized responses), twice over: once from a distribution of privacy losses that
dominates it, and once from one that it dominates. The true epsilon of the composition lies between
the two results. They stand next to fedhh's own number and never replace it; a number of fedhh's
below the lower one is an error, `RefutedClaimError`.

From above: dots of the curve are connected (Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022,
"Connect the Dots", Algorithm 1, dp-accounting's). From below: see `dominated_losses`. The curve of
a composition rises with those of its parts (Zhu, Dong, Wang 2022, Theorem 10; numbering not
verified).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt
from dp_accounting.pld.pld_pmf import (
    PLDPmf,
    create_pmf,
    create_pmf_pessimistic_connect_dots_fixed_gap,
)
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

from fedhh.accounting.bounds.blanket import Blanket
from fedhh.accounting.bounds.composition import (
    FINE,
    Precision,
    Use,
    composed_epsilon,
    curve,
    dominated_losses,
)
from fedhh.accounting.bounds.pure_composition import optimal_composition, whole_multiples
from fedhh.accounting.bounds.shuffle_bound import DELTA_RANGE
from fedhh.accounting.guarantees import Guarantee, NotApplicable, or_infinite, or_none
from fedhh.accounting.shuffling import shuffle_bound
from fedhh.privacy_loss.search import largest_epsilon_above, smallest_epsilon
from fedhh.validation import InputError, require_at_least, require_between

SMALLEST_DELTA = 1e-10
"""Below, rounding in dp-accounting's Fourier transforms may be as large as delta."""

MOST_RECORDS = 100_000
"""Composed losses, at most: for more, that rounding is too large for `SMALLEST_DELTA`."""

_DOTS = 300
"""Positive epsilons at which a curve is taken."""
_LOST_SHARE = 1e-3
"""Share of delta that losses above the last dot may have, of all uses together."""
_GRID_STEPS = 400_000
"""Of the lower losses' grid, in a range as long as the epsilon in question; at most."""
_LOSS_OF_GRID = 1e-3
"""Relative loss of the lower epsilon to its grid, where that many steps allow it."""
_LARGEST_GRID = 1 << 21
_SAME = 1e-12

Floats = npt.NDArray[np.float64]


class RefutedClaimError(Exception):
    """A stated epsilon lies below a lower bound: it is wrong, or the lower bound is."""


@dataclass(frozen=True, kw_only=True)
class SecondOpinion:
    """What fedhh states of a composition, and dp-accounting's bounds on its true epsilon.

    Attributes:
        claim: What the numbers are of.
        epsilon: As fedhh states it, an upper bound; NotApplicable if it states none.
        delta: Of all three numbers, at least 1e-10.
        lower: dp-accounting's lower bound.
        upper: Its upper bound, infinite if it has none.
        version: Of dp-accounting.

    Raises:
        RefutedClaimError: ``epsilon < lower``.
    """

    claim: str
    epsilon: float | NotApplicable
    delta: float
    lower: float
    upper: float
    version: str

    def __post_init__(self) -> None:
        if not isinstance(self.epsilon, NotApplicable):
            _refuse_below(self.lower, self.claim, self.epsilon, self.delta)

    @property
    def difference(self) -> float | None:
        """Return by how much fedhh's epsilon is above dp-accounting's upper bound."""
        difference = or_infinite(self.epsilon) - self.upper
        return difference if math.isfinite(difference) else None

    def to_dict(self) -> dict[str, Any]:
        reason = str(self.epsilon) if isinstance(self.epsilon, NotApplicable) else None
        return {
            **asdict(self),
            "epsilon": or_none(self.epsilon),
            "reason": reason,
            "upper": self.upper if math.isfinite(self.upper) else None,
            "difference": self.difference,
        }


def opinion_on_uses(
    uses: Sequence[Use],
    *,
    delta: float,
    precision: Precision = FINE,
    stated: float | NotApplicable | None = None,
    claim: str = "composition",
) -> SecondOpinion:
    """Return a second opinion on the epsilon of all uses together.

    Args:
        uses: As in `fedhh.accounting.composed_epsilon`.
        delta: From 1e-10 to 0.1.
        precision: With which the stated epsilon was composed, since it says how a bound is summed.
        stated: The epsilon in question; what `composed_epsilon` returns if None.
        claim: What it is called.

    Raises:
        RefutedClaimError: The stated epsilon is below dp-accounting's lower bound.
        InputError: Delta is out of range, or there are more than 100,000 uses.
    """
    require_at_least(1, num_uses=len(uses))
    times = sum(use.times for use in uses)
    check_delta(delta)
    _check_number(times)
    if stated is None:
        stated = composed_epsilon(uses, delta=delta, precision=precision)
    bounds = [
        replace(use.bound, tolerance=max(use.bound.tolerance, precision.tolerance)) for use in uses
    ]
    lost = _LOST_SHARE * delta / times
    largest = max(
        smallest_epsilon(bound.delta, delta=lost, upper=bound.local_epsilon) for bound in bounds
    )
    # Where nothing is left to compose, any grid will do.
    gap = max(largest, _SAME) / _DOTS
    curves = [curve(bound, gap=gap, points=_DOTS) for bound in bounds]
    counts = [use.times for use in uses]
    upper = _composed(
        [
            create_pmf_pessimistic_connect_dots_fixed_gap(gap, -_DOTS, _DOTS, deltas)
            for deltas in curves
        ],
        counts,
    )
    rounding = _rounding(times)
    whole = sum(use.times * use.bound.local_epsilon for use in uses)
    above = _smallest(upper, delta - rounding, whole)
    wide = min(above, whole)
    grid = min(gap, max(_LOSS_OF_GRID * wide / times, wide / _GRID_STEPS) or gap)
    lower = _composed(
        [
            create_pmf(dominated_losses(deltas, gap=gap, grid=grid), grid, 0.0, False)
            for deltas in curves
        ],
        counts,
    )
    return SecondOpinion(
        claim=claim,
        epsilon=stated,
        delta=delta,
        lower=largest_epsilon_above(
            lower.get_delta_for_epsilon, delta=delta + rounding, upper=whole
        ),
        upper=above,
        version=version("dp-accounting"),
    )


def opinion_on_shuffle(
    bound: str,
    *,
    local_epsilon: float,
    num_reports: int,
    delta: float,
    times: int = 1,
    domain_size: int | None = None,
    stated: float | NotApplicable | None = None,
    claim: str | None = None,
) -> SecondOpinion:
    """Return a second opinion on one shuffle, or on several of them with the same clients.

    Args:
        bound: "clones", "clones-2023" or "blanket".
        local_epsilon: As in `fedhh.accounting.shuffle_bound`.
        num_reports: As there.
        delta: From 1e-10 to 0.1.
        times: Shuffles.
        domain_size: For "blanket", as in `fedhh.accounting.shuffle_bound`; else not used.
        stated: As in `opinion_on_uses`.
        claim: What it is called; the bound's name if None.

    Raises:
        RefutedClaimError: See `opinion_on_uses`.
        InputError: See there.
    """
    of_one = shuffle_bound(
        bound,
        local_epsilon=local_epsilon,
        num_reports=num_reports,
        domain_size=domain_size if bound == Blanket.name else None,
    )
    return opinion_on_uses(
        [Use(bound=of_one, times=times)], delta=delta, stated=stated, claim=claim or bound
    )


def opinion_on_reports(
    epsilons: Sequence[float],
    counts: Sequence[int],
    *,
    delta: float,
    stated: float | NotApplicable | None = None,
    others: Sequence[Guarantee] = (),
    claim: str = "reports",
) -> SecondOpinion:
    """Return a second opinion on the optimal composition of reports with pure local privacy.

    Args:
        epsilons: ``(k,)``: local epsilon of each kind of report, finite.
        counts: ``(k,)``: how many of each kind, at least 0; several in all.
        delta: From 1e-10 to 0.1.
        stated: The epsilon in question; what `optimal_composition` returns if None.
        others: Further guarantees of these reports, held to the lower bound where their delta is
            at most this one.
        claim: What the composition is called.

    Raises:
        RefutedClaimError: A stated epsilon is below dp-accounting's lower bound.
        InputError: A value is out of range, or there is nothing to compose.
    """
    check_delta(delta)
    check_reports(epsilons, counts)
    times = sum(counts)
    sent = [(epsilon, count) for epsilon, count in zip(epsilons, counts, strict=True) if count]
    finite, numbers = [epsilon for epsilon, _ in sent], [count for _, count in sent]
    if stated is None:
        stated = optimal_composition(finite, numbers, delta=delta)
    whole = math.fsum(epsilon * count for epsilon, count in sent)
    gap = _common_gap(finite, whole)
    upper, lower = (
        _composed([_responses(epsilon, gap, above=above) for epsilon in finite], numbers)
        for above in (True, False)
    )
    rounding = _rounding(times)
    least = largest_epsilon_above(lower.get_delta_for_epsilon, delta=delta + rounding, upper=whole)
    for guarantee in others:
        if guarantee.delta <= delta and not isinstance(guarantee.epsilon, NotApplicable):
            _refuse_below(least, f"{claim}, {guarantee.method}", guarantee.epsilon, delta)
    return SecondOpinion(
        claim=claim,
        epsilon=stated,
        delta=delta,
        lower=least,
        # Each loss was rounded up by less than a gap.
        upper=_smallest(upper, delta - rounding, whole + times * gap),
        version=version("dp-accounting"),
    )


def check_delta(delta: float) -> None:
    """Raise InputError unless a second opinion can be had at this delta."""
    require_between(*DELTA_RANGE, delta=delta)
    if delta < SMALLEST_DELTA:
        raise InputError(
            f"Expected delta >= {SMALLEST_DELTA:g} for a second opinion, got delta={delta:g}: "
            "below, dp-accounting's own rounding may exceed delta."
        )


def check_reports(epsilons: Sequence[float], counts: Sequence[int]) -> None:
    """Raise InputError unless there are several randomized reports, and not too many."""
    times = sum(counts)
    _check_number(times)
    sent = {epsilon for epsilon, count in zip(epsilons, counts, strict=True) if count}
    if times < 2 or not all(math.isfinite(epsilon) for epsilon in sent):
        raise InputError(
            f"Expected several reports with finite epsilons to compose, got {times} with epsilons "
            f"{sorted(sent)}."
        )


def _check_number(times: int) -> None:
    if times > MOST_RECORDS:
        raise InputError(
            f"Expected at most {MOST_RECORDS:,} composed reports for a second opinion, got "
            f"{times:,}."
        )


def _refuse_below(lower: float, claim: str, epsilon: float, delta: float) -> None:
    if epsilon < lower:
        raise RefutedClaimError(
            f"fedhh states epsilon={epsilon:.9g} at delta={delta:g} for {claim}, but dp-accounting "
            f"finds at least {lower:.9g}; one of the two is wrong. Please report it."
        )


def _rounding(times: int) -> float:
    """Return what Fourier transforms and cut tails may do to the delta of a composition."""
    return 1e-14 + 1e-16 * times


def _smallest(losses: PrivacyLossDistribution, delta: float, most: float) -> float:
    """Return the smallest epsilon up to ``most`` with at most this delta, infinite if none.

    dp-accounting's own search takes losses above 745 for one, whose exponential is no double.
    """
    if losses.get_delta_for_epsilon(most) > delta:
        return math.inf
    return smallest_epsilon(losses.get_delta_for_epsilon, delta=delta, upper=most)


def _composed(losses: Sequence[PLDPmf], counts: Sequence[int]) -> PrivacyLossDistribution:
    return reduce(
        lambda one, other: one.compose(other),
        (
            PrivacyLossDistribution(each).self_compose(count)
            for each, count in zip(losses, counts, strict=True)
        ),
    )


def _responses(epsilon: float, gap: float, *, above: bool) -> PLDPmf:
    """Return the losses of a randomized response, rounded up or down to a grid."""
    steps = epsilon / gap
    near = round(steps)
    if abs(steps - near) > _SAME * steps:
        near = math.ceil(steps) if above else math.floor(steps)
    true = 1 / (1 + math.exp(-epsilon))
    # Rounded up, a loss of -epsilon is no less than that; rounded down, no more.
    far = (
        near if abs(steps - near) <= _SAME * steps else math.floor(steps) + math.ceil(steps) - near
    )
    masses = {near: true, -far: math.exp(-epsilon) * true}
    return create_pmf(masses, gap, 0.0, above)


def _common_gap(epsilons: Sequence[float], total: float) -> float:
    """Return a gap that divides all epsilons, or a narrow one where none is known."""
    smallest, whole = min(epsilons), whole_multiples(epsilons)
    if whole and total / (gap := smallest / min(whole)) <= _LARGEST_GRID:
        return gap
    return max(smallest / 1000, total / _LARGEST_GRID)
