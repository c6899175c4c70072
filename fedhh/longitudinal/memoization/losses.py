"""Privacy losses of exact values, and the total variation distance of products of hypotheses."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedhh.arrays import Floats
from fedhh.privacy_loss.distribution import PrivacyLossDistribution
from fedhh.privacy_loss.grid import common_divisor
from fedhh.privacy_loss.sums import compose

_GRIDS = (2**13, 2**16, 2**19)
"""Points of the grid, the next if bounds are farther apart than `_CLOSE`."""

_CLOSE = 5e-4
_LATTICE_TOLERANCE = 1e-9
"""Share of a grid's unit by which floating point may move a loss on it."""

_SAME = 1e-12
"""Losses are rounded to multiples of it before equal ones are counted once."""

_MOST_MERGED = 4096
# What rounding in floating point may add to a probability, generously.
_NOISE = 1e-10


@dataclass(frozen=True, eq=False)
class ExactLosses:
    """The distribution of the log-likelihood ratio of two hypotheses, under the first; no grid.

    Attributes:
        losses: ``(r,) float64``, finite.
        masses: ``(r,) float64``, their probabilities under the first hypothesis.
        certain: Probability, under the first, of what cannot happen under the second.
    """

    losses: Floats
    masses: Floats
    certain: float

    @classmethod
    def of(cls, first: Floats, second: Floats) -> ExactLosses:
        """Return the distribution, given ``(r,)`` log-probabilities under both hypotheses."""
        possible = first > -math.inf
        first, second = first[possible], second[possible]
        masses = np.exp(first)
        both = second > -math.inf
        return cls(first[both] - second[both], masses[both], float(masses[~both].sum()))

    @property
    def largest(self) -> float:
        """The largest loss; math.inf if something is certain."""
        return math.inf if self.certain > 0 else float(self.losses.max())

    def plus(self, other: ExactLosses) -> ExactLosses:
        """Return the distribution of the sum of two independent losses, equal ones counted once."""
        losses = np.add.outer(self.losses, other.losses).ravel()
        masses = np.multiply.outer(self.masses, other.masses).ravel()
        certain = 1 - (1 - self.certain) * (1 - other.certain)
        return _counted_once(ExactLosses(losses, masses, certain))


def _counted_once(exact: ExactLosses) -> ExactLosses:
    """Return the same distribution, losses that differ by rounding alone taken together."""
    places, which = np.unique(np.rint(exact.losses / _SAME), return_inverse=True)
    masses = np.bincount(which, weights=exact.masses, minlength=len(places))
    return ExactLosses(places * _SAME, masses.astype(np.float64), exact.certain)


Parts = Sequence[tuple[ExactLosses, int]]
"""Distributions of independent losses, and how often each is added."""


def total_variation(parts: Parts) -> tuple[float, float]:
    """Return bounds on the total variation distance of two products of hypotheses, in [0, 1].

    It is the sum over losses of mass (1 - e**-loss), where that is positive. Losses are rounded
    to a grid, down for the lower bound and up for the upper one, unless they lie on one: then the
    bounds are equal but for floating point.
    """
    merged = _merged(parts)
    silent = math.prod((1 - each.certain) ** times for each, times in merged)
    finite = [(each, times) for each, times in merged if each.losses.size and times]
    if silent <= 0 or not finite:
        return 1 - silent, 1 - silent
    span = sum(times * float(np.ptp(np.append(each.losses, 0.0))) for each, times in finite)
    added = sum(times for _, times in finite)
    sure = 1 - silent
    noise = _NOISE + added * _SAME
    if span <= _NOISE:
        return max(0.0, sure - noise - span), min(1.0, sure + noise + span)
    sizes = np.abs(np.concatenate([each.losses for each, _ in finite]))
    unit = common_divisor(sizes[sizes > _SAME / 2])
    if span < unit * _GRIDS[-1]:
        both, surplus = _advantage(finite, unit, np.rint)
        noise += added * unit * _LATTICE_TOLERANCE
        return max(0.0, both + sure - surplus - noise), min(1.0, both + sure + noise)
    low, high = sure, 1.0
    for points in _GRIDS:
        # Rounding every loss by up to a point, more losses than points say nothing.
        if added > points:
            continue
        least, surplus = _advantage(finite, span / points, np.floor)
        low = least + sure - surplus - noise
        high = _advantage(finite, span / points, np.ceil)[0] + sure + noise
        if high - low < _CLOSE:
            break
    return max(0.0, low), min(1.0, high)


def _merged(parts: Parts) -> list[tuple[ExactLosses, int]]:
    """Return distributions that are added equally often as one, where that is small.

    A bit that one value sets and another's may together lie on a grid where neither does.
    """
    merged: list[tuple[ExactLosses, int]] = []
    ordered = sorted(parts, key=lambda each: each[1])
    for times, group in itertools.groupby(ordered, key=lambda each: each[1]):
        one, *others = (_counted_once(each) for each, _ in group)
        for each in others:
            if one.losses.size * each.losses.size <= _MOST_MERGED:
                one = one.plus(each)
            else:
                merged.append((each, times))
        merged.append((one, times))
    return merged


def _advantage(parts: Parts, unit: float, rounding: np.ufunc) -> tuple[float, float]:
    """Return the sum over finite losses of mass (1 - e**-loss), where that is positive, rounded up.

    The second number is at most what rounding up has added.
    """
    rounded = [
        PrivacyLossDistribution.of_losses(
            rounding(each.losses / unit).astype(np.int64), each.masses, gap=unit
        )
        for each, _ in parts
    ]
    composed = compose([(each, times) for each, (_, times) in zip(rounded, parts, strict=True)])
    return composed.delta(0.0), composed.surplus
