"""Distributions of sums of independent privacy losses, rounded up.

Losses are added by Fourier transforms, whose rounding is absolute: relative to the likeliest sum.
So masses are tilted first, which makes the sums near the epsilon in question the likeliest ones
(Esscher transform): each mass is multiplied by e**(tilt * loss), which sums of losses keep. What
rounding may have taken from a mass is bounded (`fedhh.privacy_loss.convolution`) and added to
it; a sum that wraps around adds to a mass that is not its own; a sum that is cut off counts as
infinite. So delta is never below the exact one. docs/accounting.md, section 9, has the proof, and
why dp-accounting, which adds up losses without tilts, does not take the place of this.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fedhh.arrays import Floats
from fedhh.privacy_loss.convolution import ROUNDING, on_a_circle, transform_length
from fedhh.privacy_loss.distribution import SUMMED, PrivacyLossDistribution

_WRAPPED = 1e-12
"""Tilted probability of smaller sums, which may wrap around."""
_CUT_SHARE = 1e-9
"""Share of delta spent on larger sums, which are cut off."""
_STEEPEST = 50.0
"""Largest tilt of neighboring losses."""
_RATIO = math.sqrt(2.0)
"""Of neighboring tilts."""
_LONGEST = 1 << 23
"""Sums that are kept, at most."""
_WORTH = 1e-3
"""Share of an epsilon that another tilt has to save."""
_MOST_TRIED = 1 << 16
"""Sums of which several tilts are tried, at most."""

Parts = Sequence[tuple[PrivacyLossDistribution, int]]
"""Distributions of one gap, and how many independent losses of each are added: at least 1."""


def compose(parts: Parts) -> PrivacyLossDistribution:
    """Return the distribution of a sum of independent losses, rounded up.

    All sums are kept, accurate relative to the likeliest; `epsilon_of_sum` is for rare ones.

    Args:
        parts: Whose losses are added.
    """
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0]
    return _composed(parts, tilt=0.0, window=_span(parts), cut=0.0)


def epsilon_of_sum(parts: Parts, *, delta: float) -> float:
    """Return the epsilon at delta of a sum of independent losses, rounded up.

    Args:
        parts: Whose losses are added.
        delta: Above 0; sums near its epsilon are accurate, smaller ones are rounded up, larger ones
            infinite.

    Returns:
        Infinite where none is proven, or more than 2**23 sums would be kept.
    """
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0].epsilon(delta)
    cut, least = _CUT_SHARE * delta, math.inf
    finite = delta - cut - _any_infinite(parts)
    if finite <= 0:
        return least
    tilts = _tilts(parts)
    logs = _logs(parts, tilts)
    zero = len(tilts) // 2
    orders = tilts[zero + 1 :]
    by_order = np.log1p(-1 / (1 + orders)) - (math.log(finite) + np.log1p(orders)) / orders
    # Canonne, Kamath, Steinke (2020), Proposition 12: the best Renyi order is near the best tilt.
    first = zero + 1 + int(np.argmin(by_order + logs[zero + 1 :] / orders))
    for place in range(first, zero - 1, -1):
        low, high = _window(parts, tilts, logs, place=place, cut=cut)
        if high - low >= _LONGEST:
            break
        found = _composed(parts, tilt=float(tilts[place]), window=(low, high), cut=cut)
        epsilon, before = found.epsilon(delta), least
        least = min(epsilon, least)
        if not epsilon < before * (1 - _WORTH) or high - low > _MOST_TRIED:
            break
    return least


def _composed(
    parts: Parts, *, tilt: float, window: tuple[int, int], cut: float
) -> PrivacyLossDistribution:
    """Return the distribution of a sum.

    Args:
        parts: Whose losses are added.
        tilt: Sums are accurate relative to what is likeliest of tilted losses.
        window: The least and the largest sum that are kept, in gaps. Smaller ones count as the
            least.
        cut: Upper bound on the probability of larger ones; they count as infinite.
    """
    gap, (low, high) = parts[0][0].gap, window
    base = _span(parts)[0]
    length = transform_length(max(high - low + 1, *(len(part.masses) for part, _ in parts)))
    tilted = [(*_tilted(part, tilt), times) for part, times in parts]
    around, error = on_a_circle([(masses, off, times) for masses, _, off, times in tilted], length)
    sums = np.maximum(np.roll(around, -((low - base) % length))[: high - low + 1], 0.0)
    exponents = [times * log for _, log, _, times in tilted]
    losses = gap * np.arange(low, high + 1, dtype=np.float64)
    off = 2 * ROUNDING * (4 + sum(map(abs, exponents)) + abs(tilt) * float(np.abs(losses).max()))
    with np.errstate(over="ignore"):
        back = np.exp(math.fsum(exponents) - tilt * losses) * (1 + off)
        masses = np.minimum((sums + error) * back, 1.0)
        surplus = float(np.sum(np.minimum(2 * error * back + 2 * off * masses, 1.0)))
    if low > base:
        masses[0] = 1.0
    infinite = cut + _any_infinite(parts)
    return PrivacyLossDistribution(
        gap=gap,
        lowest=low,
        masses=masses,
        infinite=infinite * (1 + SUMMED),
        surplus=surplus,
    )


def _any_infinite(parts: Parts) -> float:
    if any(part.infinite >= 1 for part, _ in parts):
        return 1.0
    return -math.expm1(sum(times * math.log1p(-part.infinite) for part, times in parts))


def _tilted(part: PrivacyLossDistribution, tilt: float) -> tuple[Floats, float, float]:
    """Return masses times e**(tilt * loss - log), of sum 1, that log, and the rounding's sum."""
    place, losses, logs = part.positive
    exponents = logs + tilt * losses
    top = float(exponents.max())
    log = top + math.log(float(np.sum(np.exp(exponents - top))))
    masses: Floats = np.zeros(len(part.masses))
    kept = np.exp(exponents - log)
    masses[place] = kept
    sizes = 2 + abs(log) + 2 * (np.abs(logs) + np.abs(tilt * losses))
    return masses, log, ROUNDING * float(np.sum(kept * sizes))


def _tilts(parts: Parts) -> Floats:
    """Return ascending tilts, from one that hardly matters over all sums to the steepest."""
    gap, (low, high) = parts[0][0].gap, _span(parts)
    smallest, largest = 1 / (gap * (high - low + 1)), _STEEPEST / gap
    steps = np.arange(math.ceil(math.log(largest / smallest, _RATIO)) + 1)
    positive = smallest * _RATIO**steps
    return np.concatenate([-positive[::-1], [0.0], positive])


def _logs(parts: Parts, tilts: Floats) -> Floats:
    """Return ``(k,)`` logs of the sum's E[e**(tilt * loss)], for ``(k,)`` tilts."""
    found: Floats = np.zeros(len(tilts))
    for part, times in parts:
        _, losses, logs = part.positive
        exponents = logs + tilts[:, None] * losses
        top = exponents.max(axis=1)
        found += times * (top + np.log(np.exp(exponents - top[:, None]).sum(axis=1)))
    return found


def _window(
    parts: Parts, tilts: Floats, logs: Floats, *, place: int, cut: float
) -> tuple[int, int]:
    """Return the ends, in gaps, of the sums that matter under a tilt.

    By Chernoff's bound, larger ones have at most probability ``cut`` together, and smaller ones a
    tilted probability of `_WRAPPED`.
    """
    gap = parts[0][0].gap
    low, high = _span(parts)
    above, orders = tilts > 0, tilts[place] - tilts[:place]
    top = (logs[above] - math.log(cut)) / tilts[above]
    bottom = (logs[place] - logs[:place] + math.log(_WRAPPED)) / orders
    low = max(low, math.floor(bottom.max() / gap))
    return low, max(low, min(high, math.ceil(top.min() / gap)))


def _span(parts: Parts) -> tuple[int, int]:
    low = sum(times * part.lowest for part, times in parts)
    return low, low + sum(times * (len(part.masses) - 1) for part, times in parts)
