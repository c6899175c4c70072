"""Composition: the maximum over disjoint cohorts, privacy-loss distributions over repeated use.

Of records with pure local privacy, each tells its reader at most what randomized response with its
epsilon tells (Kairouz, Oh, Viswanath 2015): a loss of +epsilon with probability e**epsilon / (1 +
e**epsilon), else of -epsilon. Which records are sent, and their epsilons, must not depend on what
earlier ones said.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated

import numpy as np
import scipy
from annotated_types import Ge

from fedhh.accounting.bounds.shuffle_bound import ShuffleBound, check_delta
from fedhh.arrays import Floats, Ints
from fedhh.privacy_loss.distribution import PrivacyLossDistribution
from fedhh.privacy_loss.grid import common_gap
from fedhh.privacy_loss.search import smallest_epsilon
from fedhh.privacy_loss.sums import epsilon_of_sum
from fedhh.settings import Positive, Settings
from fedhh.validation import InputError, require_at_least

_LOST_SHARE = 1e-3
"""Share of delta spent on losses of single uses that are hardly ever seen."""

_OF_GRID = 1e-3
"""Precision, relative, of where a grid ends."""
_LONGEST = 1 << 20
"""Gaps of a grid within `_WIDE` standard deviations of a sum of losses of records."""
_WIDE = 24
_REMEMBERED = 4096

REMEMBERED = 256
"""Results kept for later runs: a sweep's seeds mostly ask the same numbers again."""


@dataclass(frozen=True, kw_only=True)
class Precision(Settings):
    """How finely bounds are turned into privacy-loss distributions; coarser is looser.

    Attributes:
        grid_points: Number of positive losses, at least 10.
        tolerance: Relative width of the bins inside the bounds; see `ShuffleBound`.
    """

    grid_points: Annotated[int, Ge(10)]
    tolerance: Positive


FINE = Precision(grid_points=400, tolerance=1e-4)
"""Within about 1e-3 of arbitrarily fine."""
QUICK = Precision(grid_points=200, tolerance=1e-3)
"""Within about 2e-3 of `FINE`, for reports that must not delay a run."""
COARSE = Precision(grid_points=40, tolerance=2e-2)
"""Within about 1e-2 of `QUICK`, to say where a search of that precision starts."""


def disjoint_epsilon(bounds: Sequence[ShuffleBound], *, delta: float) -> float:
    """Return the epsilon of several rounds, each asking other clients: the maximum.

    One item, or one client with all its items, takes part in one round only. What later rounds ask
    depends on earlier results, which is post-processing. It holds at the same delta for all rounds,
    and as long as who is asked when does not depend on the data.

    Args:
        bounds: One for each round, at least one. Quickest with the worst one first: a round that
            is not worse than an earlier one costs a single evaluation.
        delta: Target, from 1e-14 to 0.1.
    """
    check_delta(delta)
    require_at_least(1, num_bounds=len(bounds))
    epsilon = bounds[0].epsilon(delta)
    for bound in bounds[1:]:
        if bound.delta(epsilon) > delta:
            epsilon = max(epsilon, bound.epsilon(delta))
    return epsilon


@dataclass(frozen=True, kw_only=True)
class Use(Settings):
    """A mechanism and how often one item (or one client) goes through it.

    Attributes:
        bound: Bound on one use.
        times: Number of uses, at least 1.
    """

    bound: ShuffleBound
    times: Annotated[int, Ge(1)]


def composed_epsilon(uses: Sequence[Use], *, delta: float, precision: Precision = FINE) -> float:
    """Return an epsilon of all uses together, by numerical composition, rounded up.

    Uses are separate shuffles. Several reports of one client in *one* shuffle are not: for those
    see `fedhh.accounting.user_level`.

    The bounds' delta(epsilon) become privacy-loss distributions that dominate them (connect the
    dots: Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022, arXiv:2207.04380), which are
    convolved with all rounding on the safe side; valid for mechanisms chosen adaptively (Zhu,
    Dong, Wang 2022; numbers of theorems stand in `fedhh.accounting.sources`).

    Args:
        uses: At least one.
        delta: Target, from 1e-14 to 0.1.
        precision: Every one gives an upper bound.

    Returns:
        At most the sum of the local epsilons.

    Raises:
        InputError: uses is empty, or an argument is out of range.
    """
    check_delta(delta)
    require_at_least(1, num_uses=len(uses))
    total = sum(use.times for use in uses)
    quick = [
        replace(use.bound, tolerance=max(use.bound.tolerance, precision.tolerance)) for use in uses
    ]
    if total == 1:
        return smallest_epsilon(quick[0].delta, delta=delta, upper=quick[0].local_epsilon)
    largest, rare = 0.0, _LOST_SHARE * delta / total
    for bound in sorted(quick, key=lambda each: -each.delta(0.0)):
        if bound.delta(largest) > rare:
            upper = bound.local_epsilon
            largest = smallest_epsilon(bound.delta, delta=rare, upper=upper, precision=_OF_GRID)
    gap = largest / precision.grid_points
    epsilons: Floats = gap * np.arange(precision.grid_points + 1, dtype=np.float64)
    deltas = [bound.deltas(epsilons) for bound in quick]
    if sum(use.times * float(each[0]) for each, use in zip(deltas, uses, strict=True)) <= delta:
        return 0.0
    losses = [
        (PrivacyLossDistribution.dominating(each, gap=gap), use.times)
        for each, use in zip(deltas, uses, strict=True)
    ]
    composed = epsilon_of_sum(losses, delta=delta)
    return min(composed, sum(use.times * use.bound.local_epsilon for use in uses))


@lru_cache(maxsize=REMEMBERED)
def remembered_epsilon(uses: tuple[Use, ...], *, delta: float, precision: Precision) -> float:
    """Return `composed_epsilon`, which is remembered."""
    return composed_epsilon(uses, delta=delta, precision=precision)


def basic_composition(epsilons: Sequence[float], counts: Ints) -> Floats:
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
    epsilons, counts = np.array(kinds, dtype=np.float64).T
    variances = (2 * epsilons) ** 2 * scipy.special.expit(epsilons) * scipy.special.expit(-epsilons)
    likely = math.sqrt(float(counts @ variances)) + float(epsilons.max())
    span = min(2 * float(counts @ epsilons), _WIDE * likely)
    gap = common_gap(epsilons, span=span, most=_LONGEST)
    response = PrivacyLossDistribution.of_response
    parts = [(response(each, gap=gap), count) for each, count in kinds]
    return min(
        epsilon_of_sum(parts, delta=delta), math.fsum(epsilon * count for epsilon, count in kinds)
    )
