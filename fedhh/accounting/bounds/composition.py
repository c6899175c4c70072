"""Composition: the maximum over disjoint cohorts, privacy-loss distributions over repeated use.

Losses that dominate a bound's curve give upper bounds; `dominated_losses` lower ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from fedhh.accounting.bounds.shuffle_bound import ShuffleBound, check_delta
from fedhh.accounting.guarantees import NotApplicable
from fedhh.privacy_loss.binomial import Floats
from fedhh.privacy_loss.distribution import PrivacyLossDistribution, falling
from fedhh.privacy_loss.search import smallest_epsilon
from fedhh.privacy_loss.sums import UncertifiedError, epsilon_of_sum
from fedhh.validation import require_at_least, require_positive

_LOST_SHARE = 1e-3
"""Share of delta spent on losses of single uses that are hardly ever seen."""

_OF_GRID = 1e-3
"""Precision, relative, of where a grid ends."""
_ROUNDING = 1e-15
_LOWERED = 1e-6
"""Relative, by which the curve is lowered: computed curves are convex up to this."""


@dataclass(frozen=True, kw_only=True)
class Precision:
    """How finely bounds are turned into privacy-loss distributions; coarser is looser.

    Attributes:
        grid_points: Number of positive losses, at least 10.
        tolerance: Relative width of the bins inside the bounds; see `ShuffleBound`.
    """

    grid_points: int
    tolerance: float

    def __post_init__(self) -> None:
        require_at_least(10, grid_points=self.grid_points)
        require_positive(tolerance=self.tolerance)


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
class Use:
    """A mechanism and how often one item (or one client) goes through it.

    Attributes:
        bound: Bound on one use.
        times: Number of uses, at least 1.
    """

    bound: ShuffleBound
    times: int

    def __post_init__(self) -> None:
        require_at_least(1, times=self.times)


def composed_epsilon(
    uses: Sequence[Use], *, delta: float, precision: Precision = FINE
) -> float | NotApplicable:
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
        At most the sum of the local epsilons; NotApplicable as of
        `fedhh.privacy_loss.sums.epsilon_of_sum`, for very many uses.

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
    if sum(use.times * bound.delta(0.0) for bound, use in zip(quick, uses, strict=True)) <= delta:
        return 0.0
    largest = max(
        smallest_epsilon(
            bound.delta,
            delta=_LOST_SHARE * delta / total,
            upper=bound.local_epsilon,
            precision=_OF_GRID,
        )
        for bound in quick
    )
    gap = largest / precision.grid_points
    losses = [
        (
            PrivacyLossDistribution.dominating(
                curve(bound, gap=gap, points=precision.grid_points, rounding=_ROUNDING), gap=gap
            ),
            use.times,
        )
        for bound, use in zip(quick, uses, strict=True)
    ]
    try:
        composed = epsilon_of_sum(losses, delta=delta)
    except UncertifiedError as reason:
        return NotApplicable(str(reason))
    return min(composed, sum(use.times * use.bound.local_epsilon for use in uses))


def curve(bound: ShuffleBound, *, gap: float, points: int, rounding: float = 0.0) -> Floats:
    """Return ``(2 points + 1,)`` upper bounds on delta from epsilon = -points to +points gaps.

    The bounds are the same in both directions, so
    delta(-epsilon) = 1 - e**-epsilon + e**-epsilon delta(epsilon).

    Args:
        bound: Of one use.
        gap: Distance of the epsilons.
        points: Number of positive ones.
        rounding: Relative, by which deltas at negative epsilons are raised.
    """
    epsilons: Floats = gap * np.arange(points + 1, dtype=np.float64)
    positive = bound.deltas(epsilons)
    negative = (-np.expm1(-epsilons) + np.exp(-epsilons) * positive) * (1 + rounding)
    return falling(np.concatenate([negative[:0:-1], positive]))


def dominated_losses(deltas: Floats, *, gap: float, grid: float) -> dict[int, float]:
    """Return probabilities of losses, in grid steps, whose delta is at most the curve's.

    Delta is convex in x = e**epsilon, so the line through two neighboring dots of the curve lies
    below it outside of their interval, and above it inside by at most what the lines of the two
    intervals next to it leave. Each line is lowered by that; then the largest of all lines is a
    convex curve below delta everywhere, that of a pair of distributions with finitely many losses,
    which are rounded down to a grid. The proof stands in docs/accounting.md, section 10.

    Args:
        deltas: ``(2 k + 1,) float64``, non-increasing: the curve from epsilon = -k to +k gaps.
        gap: Distance of the epsilons.
        grid: Distance of the losses.
    """
    x = np.exp((np.arange(len(deltas)) - len(deltas) // 2) * gap)
    falls, widths = -np.diff(deltas), np.diff(x)
    # The line through two dots is level - slope * x.
    slopes = falls / widths
    levels = deltas[1:] + falls / -math.expm1(-gap)
    turns = np.maximum(-np.diff(slopes), 0.0)
    left, right = turns[:-1], turns[1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.where(left + right > 0, left * right / (left + right), 0.0) * widths[1:-1]
    # The lines of the first and the last interval have a neighbor on one side only.
    kept = 1 - _LOWERED
    lines = [
        (1.0, 1.0),  # No curve is below 1 - x, nor below 0.
        *zip(kept * (levels[1:-1] - excess), kept * slopes[1:-1], strict=True),
        (0.0, 0.0),
    ]
    masses: dict[int, float] = {}
    for (level, slope), (next_level, next_slope) in pairwise(_envelope(lines)):
        loss = math.log((level - next_level) / (slope - next_slope))
        place = math.floor(loss / grid)
        masses[place] = masses.get(place, 0.0) + float(level - next_level)
    return masses


def _envelope(lines: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return those of some lines (level, slope) that are the largest somewhere at x > 0.

    Args:
        lines: Slopes falling, but for rounding; the first and the last are kept.
    """
    kept = [lines[0]]
    for level, slope in lines[1:]:
        if not 0 <= slope < kept[0][1] or not 0 <= level < kept[0][0]:
            continue
        while len(kept) > 1 and (
            slope >= kept[-1][1] or _meet(kept[-1], (level, slope)) <= _meet(kept[-2], kept[-1])
        ):
            kept.pop()
        kept.append((level, slope))
    return kept


def _meet(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Return the x at which two lines meet, the first one being the steeper."""
    return (one[0] - other[0]) / (one[1] - other[1])
