"""Adaptive composition of rounds whose divergences are bounded: privacy losses on a grid.

Source: Zhu, Dong, Wang (2022), "Optimal accounting of differential privacy via characteristic
function", Theorem 10 (dominating pairs compose adaptively); Doroshenko, Ghazi, Kamath, Kumar,
Manurangsi (2022), "Connect the Dots", Algorithm 1. Numbering not verified. How losses are added up
stands in `fedhh.privacy_loss.sums`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from fedhh.privacy_loss.distribution import PrivacyLossDistribution
from fedhh.privacy_loss.sums import UncertifiedError, epsilon_of_sum

Floats = npt.NDArray[np.float64]

_INFINITE = 50.0
"""Losses of one round above this count as infinite."""
_FINE, _CELLS = 24, 1024
"""Gaps between 0 and the lowest epsilon; at most so many up to the largest finite loss."""
_ROUNDING = 1e-9
"""Of delta, relative: the rounding of the masses."""


def composed_epsilon(
    deltas: Callable[[Floats], Floats], *, lowest: float, num_rounds: int, delta: float
) -> float:
    """Return an epsilon that so many rounds have at delta; infinite if none has it.

    The relation of neighbors is symmetric: the bounds are for both orders.

    Args:
        deltas: Upper bounds on the divergence of one round, ``(k,) float64`` for rising epsilons.
        lowest: The least epsilon that it may be asked for, above 0.
        num_rounds: Rounds L.
        delta: Above 0 and below 1.
    """
    beyond = float(deltas(np.array([max(_INFINITE, lowest)]))[0])
    room = -math.expm1(math.log1p(-delta) / num_rounds) - beyond
    if room <= 0:
        return math.inf
    probes = np.geomspace(lowest, max(_INFINITE, 2 * lowest), 128)
    fine = deltas(probes) <= beyond + room / 10
    top = float(probes[np.argmax(fine)]) if fine.any() else float(probes[-1])
    first = max(1, min(_FINE, math.floor(_CELLS * lowest / top)))
    gap = max(lowest / first, top / _CELLS)
    last = max(first + 1, math.ceil(top / gap))
    epsilons: Floats = gap * np.arange(first, last + 1, dtype=np.float64)
    # The product may fall short of `lowest` by a rounding.
    epsilons[0] = max(epsilons[0], lowest)
    losses = _dominating(deltas(epsilons), gap=gap, first=first)
    try:
        return epsilon_of_sum([(losses, num_rounds)], delta=delta * (1 - _ROUNDING))
    except UncertifiedError:
        return math.inf


def _dominating(bounds: Floats, *, gap: float, first: int) -> PrivacyLossDistribution:
    """Return losses whose delta is at least the bounded one, at every epsilon.

    The largest divergence is convex in x = e**epsilon and 1 at x = 0, and its value at 1 / x
    follows from that at x by symmetry, so it lies below the convex hull of all bounds; between
    two multiples of the gap, below the chord. Losses below ``-first`` gaps count as that: a
    larger loss is never less delta.

    Args:
        bounds: ``(k,) float64``, of multiples of the gap from ``first`` on.
        gap: Distance of the losses.
        first: At least 1.
    """
    last = first + len(bounds) - 1
    x = np.exp(gap * np.arange(first, last + 1))
    mirrored = 1 - (1 - bounds) / x
    points = np.concatenate([[0.0], 1 / x[::-1], x])
    corners, heights = _convex_hull(points, np.concatenate([[1.0], mirrored[::-1], bounds]))
    grid = np.exp(gap * np.arange(-last, last + 1))
    nodes = np.concatenate([[0.0], grid])
    slopes = -np.diff(np.interp(nodes, points[corners], heights)) / np.diff(nodes)
    falls = slopes - np.append(slopes[1:], 0.0)
    masses = np.maximum(falls * grid, 0.0)
    low = last - first
    kept = np.append(masses[: low + 1].sum(), masses[low + 1 :])
    return PrivacyLossDistribution(gap=gap, lowest=-first, masses=kept, infinite=float(bounds[-1]))


def _convex_hull(x: Floats, y: Floats) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return the corners of the largest convex function below the points: places and values."""
    corners: list[int] = []
    for place in range(len(x)):
        while len(corners) > 1:
            a, b = corners[-2:]
            if (y[b] - y[a]) * (x[place] - x[b]) < (y[place] - y[b]) * (x[b] - x[a]):
                break
            corners.pop()
        corners.append(place)
    chosen = np.array(corners)
    return chosen, y[chosen]
