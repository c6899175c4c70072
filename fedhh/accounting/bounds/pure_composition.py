"""Composition of pure local privacy: the epsilons of many records, added up or composed.

A record with epsilon tells its reader at most what randomized response with that epsilon tells
(Kairouz, Oh, Viswanath 2015). So the privacy-loss distribution of a randomized response is that of
any record in the worst case: +epsilon with probability e**epsilon / (1 + e**epsilon), else
-epsilon. Which records are sent, and their epsilons, must not depend on what earlier ones said.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from fedhh.accounting.bounds.shuffle_bound import check_delta
from fedhh.accounting.guarantees import NotApplicable
from fedhh.privacy_loss.distribution import PrivacyLossDistribution, likely_lies
from fedhh.privacy_loss.sums import UncertifiedError, epsilon_of_sum
from fedhh.validation import InputError, require_at_least

Numbers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_LOST_SHARE = 1e-6
"""Share of delta spent on losses that are hardly ever seen, and counted as infinite."""
_STEPS = 1000
"""Grid steps of the smallest epsilon, where the epsilons have no common divisor."""
_LARGEST_GRID, _LARGEST_EXACT_GRID = 1 << 19, 1 << 21
_LARGEST_RATIO = 64
"""Denominators up to this are tried for a common divisor."""
_SAME = 1e-12
_UP = 1 + 2e-12
_REMEMBERED = 4096


def basic_composition(epsilons: Sequence[float], counts: Numbers) -> Floats:
    """Return the sum of the records' epsilons, at delta 0 (Dwork, Roth 2014, Theorem 3.14).

    Args:
        epsilons: ``(k,)``: of each kind of record, above 0; infinite for no privacy.
        counts: ``(..., k) int64``: how many records of each kind.

    Returns:
        ``(...) float64``.
    """
    values = np.asarray(epsilons, dtype=np.float64)
    infinite = np.isinf(values)
    sums = counts @ np.where(infinite, 0.0, values)
    if infinite.any():
        sums = np.where(counts[..., infinite].any(axis=-1), np.inf, sums)
    return np.asarray(sums, dtype=np.float64)


def optimal_composition(
    epsilons: Sequence[float], counts: Sequence[int], *, delta: float
) -> float | NotApplicable:
    """Return the smallest epsilon that holds for all such records, by privacy-loss distributions.

    Equal epsilons: Kairouz, Oh, Viswanath (2015), Theorem 3.3; different ones: Murtagh, Vadhan
    (2016). The loss of n randomized responses is a shifted binomial, and losses of different
    kinds are convolved. Rounded up by 1e-6 of delta where the epsilons are multiples of a common
    number; else each is rounded up by at most a part in 1000 of the smallest, or more where that
    grid would be too long.

    Args:
        epsilons: ``(k,)``, as in `basic_composition`.
        counts: ``(k,)``: how many records of each kind.
        delta: From 1e-14 to 0.1.

    Returns:
        At most the sum of the epsilons; NotApplicable as of
        `fedhh.privacy_loss.sums.epsilon_of_sum`.
    """
    check_delta(delta)
    kinds: dict[float, int] = {}
    for epsilon, count in zip(epsilons, counts, strict=True):
        require_at_least(0, count=count)
        if not epsilon > 0:
            raise InputError(f"Expected 0 < epsilon <= inf, got epsilon={epsilon!r}.")
        if count:
            kinds[float(epsilon)] = kinds.get(float(epsilon), 0) + int(count)
    if not kinds or math.inf in kinds:
        return math.inf if kinds else 0.0
    return _optimal(tuple(sorted(kinds.items())), delta)


@lru_cache(maxsize=_REMEMBERED)
def _optimal(kinds: tuple[tuple[float, int], ...], delta: float) -> float | NotApplicable:
    share = _LOST_SHARE * delta / len(kinds) / 2
    lies = [likely_lies(epsilon, count, cut=share) for epsilon, count in kinds]
    gap, steps = _grid([epsilon for epsilon, _ in kinds], [most - least for least, most in lies])
    of_kind = PrivacyLossDistribution.of_randomized_responses
    losses = [
        of_kind(count, steps=step, gap=gap, lies=between)
        for (_, count), between, step in zip(kinds, lies, steps, strict=True)
    ]
    try:
        composed = epsilon_of_sum([(each, 1) for each in losses], delta=delta)
    except UncertifiedError as reason:
        return NotApplicable(str(reason))
    return min(composed, math.fsum(epsilon * count for epsilon, count in kinds))


def _grid(epsilons: list[float], widths: list[int]) -> tuple[float, list[int]]:
    """Return a grid's gap, and how many gaps each epsilon is, rounded up.

    Args:
        epsilons: Ascending, distinct.
        widths: Numbers of lies that are kept of each, less 1.
    """
    whole = whole_multiples(epsilons)
    if whole and sum(2 * n * w for n, w in zip(whole, widths, strict=True)) <= _LARGEST_EXACT_GRID:
        # No epsilon is rounded down.
        return max(each / n for each, n in zip(epsilons, whole, strict=True)) * _UP, whole
    span = sum(2 * width * each for width, each in zip(widths, epsilons, strict=True))
    gap = max(epsilons[0] / _STEPS, span / _LARGEST_GRID)
    return gap * _UP, [math.ceil(each / gap * (1 - _SAME)) for each in epsilons]


def whole_multiples(epsilons: Sequence[float]) -> list[int]:
    """Return how many times a common divisor each epsilon is, empty if no large one is known."""
    smallest = min(epsilons)
    ratios = [Fraction(each / smallest).limit_denominator(_LARGEST_RATIO) for each in epsilons]
    parts = math.lcm(*(ratio.denominator for ratio in ratios))
    exact = all(
        abs(float(ratio) * smallest - each) <= _SAME * each
        for ratio, each in zip(ratios, epsilons, strict=True)
    )
    return [int(ratio * parts) for ratio in ratios] if exact else []
