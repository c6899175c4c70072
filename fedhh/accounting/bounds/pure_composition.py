"""Composition of pure local privacy: the epsilons of many records, added up or composed.

A record with epsilon tells its reader at most what randomized response with that epsilon tells
(Kairouz, Oh, Viswanath 2015). So the privacy-loss distribution of a randomized response is that of
any record in the worst case: +epsilon with probability e**epsilon / (1 + e**epsilon), else
-epsilon. Which records are sent, and their epsilons, must not depend on what earlier ones said.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

from fedhh.accounting.bounds.shuffle_bound import check_delta
from fedhh.privacy_loss.distribution import PrivacyLossDistribution
from fedhh.privacy_loss.grid import common_gap
from fedhh.privacy_loss.sums import Parts, compose
from fedhh.validation import InputError, require_at_least

Numbers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

Kinds = Sequence[tuple[float, int]]
"""Epsilon of each kind of record, and how many there are of it."""

_LONGEST = 1 << 20
"""Gaps of a grid within `_WIDE` standard deviations of a sum."""
_WIDE = 24
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


def optimal_composition(epsilons: Sequence[float], counts: Sequence[int], *, delta: float) -> float:
    """Return the smallest epsilon that holds for all such records, by privacy-loss distributions.

    Equal epsilons: Kairouz, Oh, Viswanath (2015), Theorem 3.3; different ones: Murtagh, Vadhan
    (2016). Where the epsilons are not multiples of a common number, each is rounded up by at most
    a part in 1000 of the smallest, or more where that grid would be too long.

    Args:
        epsilons: ``(k,)``, as in `basic_composition`.
        counts: ``(k,)``: how many records of each kind.
        delta: From 1e-14 to 0.1.

    Returns:
        At most the sum of the epsilons.
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
def _optimal(kinds: tuple[tuple[float, int], ...], delta: float) -> float:
    parts = responses(kinds, most=_LONGEST)
    composed = compose(parts, delta=delta).epsilon(delta)
    return min(composed, math.fsum(epsilon * count for epsilon, count in kinds))


def responses(kinds: Kinds, *, most: int) -> Parts:
    """Return losses of randomized responses on a common grid.

    Args:
        kinds: Epsilon of each kind, and how many responses of it.
        most: Gaps of the grid, at most, in the range of what is likely of the sum.
    """
    epsilons, counts = np.array(kinds, dtype=np.float64).T
    variances = (2 * epsilons) ** 2 * special.expit(epsilons) * special.expit(-epsilons)
    likely = math.sqrt(float(counts @ variances)) + float(epsilons.max())
    span = min(2 * float(counts @ epsilons), _WIDE * likely)
    gap = common_gap(epsilons, span=span, most=most)
    return [(PrivacyLossDistribution.of_response(each, gap=gap), count) for each, count in kinds]
