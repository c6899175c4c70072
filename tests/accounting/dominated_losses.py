"""Losses that a curve of delta dominates: what bounds a composed epsilon from below.

Let h(x) be delta at x = e^eps, which is convex, at x_0 < x_1 < ..., and l_i the line through the
dots at x_i and x_(i+1), of slope -W_i. By convexity l_i <= h outside of its interval. Inside, h is
at least l_(i-1) and at least l_(i+1), as both are lines of other intervals. l_i exceeds the larger
of the two by at most a b (x_(i+1) - x_i) / (a + b), with a = W_(i-1) - W_i and b = W_i - W_(i+1):
they meet l_i at the two ends of the interval, with differences of slope a and b. So l_i less that
amount is below h everywhere, and so is v = max(1 - x, 0, all lines lowered like this). v is convex,
piecewise linear, v(0) = 1 and v >= 1 - x: it is the delta of a pair of distributions with a loss of
ln y at every kink y, where the slope changes from -W to -W', of probability y (W - W'). Losses
rounded down to a grid have a smaller delta still, also of sums. Composition keeps the order of such
curves (Zhu, Dong, Wang 2022, Theorem 10). The error is of second order in the distance of the dots.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from fedhh.arrays import Floats

_LOWERED = 1e-6
"""Relative, by which the curve is lowered: computed curves are convex up to this."""


def dominated_losses(deltas: Floats, *, gap: float, grid: float) -> dict[int, float]:
    """Return probabilities of losses, in grid steps, whose delta is at most the curve's.

    Delta is convex in x = e**epsilon, so the line through two neighboring dots of the curve lies
    below it outside of their interval, and above it inside by at most what the lines of the two
    intervals next to it leave. Each line is lowered by that; then the largest of all lines is a
    convex curve below delta everywhere, that of a pair of distributions with finitely many losses,
    which are rounded down to a grid.

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
