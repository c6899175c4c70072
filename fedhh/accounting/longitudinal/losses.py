"""Laws of a privacy loss, their sums, and what the best observer makes of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

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
class LossLaw:
    """How the log-likelihood ratio of two hypotheses is distributed under the first.

    Attributes:
        losses: ``(r,) float64``, finite.
        masses: ``(r,) float64``, their probabilities under the first hypothesis.
        certain: Probability, under the first, of what cannot happen under the second.
    """

    losses: Floats
    masses: Floats
    certain: float

    @classmethod
    def of(cls, first: Floats, second: Floats) -> LossLaw:
        """Return the law, given log-probabilities of all outcomes.

        Args:
            first: ``(r,) float64``, under the first hypothesis.
            second: ``(r,) float64``, under the second.
        """
        possible = first > -math.inf
        first, second = first[possible], second[possible]
        masses = np.exp(first)
        both = second > -math.inf
        return cls(first[both] - second[both], masses[both], float(masses[~both].sum()))

    @property
    def largest(self) -> float:
        """The largest loss; math.inf if something is certain."""
        if self.certain > 0:
            return math.inf
        return float(self.losses.max())

    def with_law(self, other: LossLaw) -> LossLaw:
        """Return the law of the sum of two independent losses, equal losses counted once."""
        losses = np.add.outer(self.losses, other.losses).ravel()
        masses = np.multiply.outer(self.masses, other.masses).ravel()
        certain = 1 - (1 - self.certain) * (1 - other.certain)
        return _counted_once(LossLaw(losses, masses, certain))


def _counted_once(law: LossLaw) -> LossLaw:
    """Return the same law, losses that differ by rounding alone taken together."""
    places, which = np.unique(np.rint(law.losses / _SAME), return_inverse=True)
    masses = np.bincount(which, weights=law.masses, minlength=len(places))
    return LossLaw(places * _SAME, masses.astype(np.float64), law.certain)


def total_variation(laws: Sequence[tuple[LossLaw, int]]) -> tuple[float, float]:
    """Return bounds on the total variation distance of two products of hypotheses.

    It is the sum over losses of mass (1 - e**-loss), where that is positive. Losses are rounded
    to a grid, down for the lower bound and up for the upper one, unless they lie on one.

    Args:
        laws: Laws of independent losses, and how often each is added.

    Returns:
        Two numbers in [0, 1]; equal but for floating point where losses lie on a grid.
    """
    merged = _merged(laws)
    silent = math.prod((1 - law.certain) ** times for law, times in merged)
    finite = [(law, times) for law, times in merged if law.losses.size and times]
    if silent <= 0 or not finite:
        return 1 - silent, 1 - silent
    span = sum(times * float(np.ptp(np.append(law.losses, 0.0))) for law, times in finite)
    added = sum(times for _, times in finite)
    sure = 1 - silent
    noise = _NOISE + added * _SAME
    if span <= _NOISE:
        return max(0.0, sure - noise - span), min(1.0, sure + noise + span)
    unit = _lattice(np.concatenate([law.losses for law, _ in finite]))
    if unit is not None and span / unit < _GRIDS[-1]:
        both = _advantage(finite, unit, np.rint) + sure
        noise += added * unit * _LATTICE_TOLERANCE
        return max(0.0, both - noise), min(1.0, both + noise)
    low, high = sure, 1.0
    for points in _GRIDS:
        # Rounding every loss by up to a point, more losses than points say nothing.
        if added > points:
            continue
        low = _advantage(finite, span / points, np.floor) + sure - noise
        high = _advantage(finite, span / points, np.ceil) + sure + noise
        if high - low < _CLOSE:
            break
    return max(0.0, low), min(1.0, high)


def _merged(laws: Sequence[tuple[LossLaw, int]]) -> list[tuple[LossLaw, int]]:
    """Return laws that are added equally often as one, where that is small.

    A bit that one value sets and another's may together lie on a grid where neither does.
    """
    merged: list[tuple[LossLaw, int]] = []
    ordered = sorted(laws, key=lambda each: each[1])
    for times, group in itertools.groupby(ordered, key=lambda each: each[1]):
        one: LossLaw | None = None
        for each, _ in group:
            law = _counted_once(each)
            if one is None:
                one = law
            elif one.losses.size * law.losses.size <= _MOST_MERGED:
                one = one.with_law(law)
            else:
                merged.append((law, times))
        if one is not None:
            merged.append((one, times))
    return merged


def _lattice(losses: Floats) -> float | None:
    """Return a unit that all losses are multiples of, None if none is seen."""
    sizes = np.abs(losses)
    sizes = sizes[sizes > _SAME]
    if not sizes.size:
        return None
    unit = float(sizes.min())
    off = np.abs(sizes / unit - np.rint(sizes / unit))
    return unit if (off < _LATTICE_TOLERANCE).all() else None


def _advantage(laws: Sequence[tuple[LossLaw, int]], unit: float, rounding: np.ufunc) -> float:
    """Return the sum over finite losses of mass (1 - e**-loss), where that is positive."""
    cells = [rounding(law.losses / unit).astype(np.int64) for law, _ in laws]
    lows = [min(0, int(each.min())) for each in cells]
    span = sum(
        times * (max(0, int(each.max())) - low)
        for (_, times), each, low in zip(laws, cells, lows, strict=True)
    )
    size = 1 << max(1, span).bit_length()
    product = np.ones(size // 2 + 1, dtype=np.complex128)
    for (law, times), each, low in zip(laws, cells, lows, strict=True):
        masses = np.bincount(each - low, weights=law.masses, minlength=size)
        product *= np.fft.rfft(masses) ** times
    total = np.fft.irfft(product, size)
    start = sum(times * low for (_, times), low in zip(laws, lows, strict=True))
    losses = (np.arange(span + 1) + start) * unit
    gain = -np.expm1(-np.maximum(losses, 0.0))
    return float(np.maximum(total[: span + 1], 0.0) @ gain)
