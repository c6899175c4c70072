"""Distributions of sums of independent privacy losses, rounded up, and their epsilons.

Losses are added by Fourier transforms, whose rounding is absolute: relative to the likeliest sum.
So masses are tilted first, which makes the sums near the epsilon in question the likeliest ones
(Esscher transform): each mass is multiplied by e**(tilt * loss), which sums of losses keep. What
rounding may have taken from a mass is bounded (`fedhh.privacy_loss.convolution`) and added to
it; a sum that wraps around adds to a mass that is not its own; a sum that is cut off counts as
infinite. So delta is never below the exact one.

dp-accounting has the same without tilts. fedhh does not use it here, since it loads scipy.signal
and scipy.stats, a second for every run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from fedhh.privacy_loss.convolution import ROUNDING, Floats, on_a_circle, transform_length
from fedhh.privacy_loss.distribution import SUMMED, PrivacyLossDistribution

_ORDERS = 2.0 ** np.arange(-2, 7)
"""Orders of Chernoff bounds on a sum, in units of one over its standard deviation."""
_WRAPPED = 1e-12
"""Tilted probability of smaller sums, which may wrap around."""
_CUT_SHARE = 1e-9
"""Share of delta spent on larger sums, which are cut off."""
_STEEPEST = 50.0
"""Largest tilt of neighboring losses."""
_LONGEST = 1 << 23
_LOUDEST = 1e-3
_STEPS, _TRIES = 60, 2
_RATIO, _BETWEEN = math.sqrt(2.0), 8
"""Of neighboring tilts that are tried where the saddle-point approximation fails."""
_WORTH = 1e-3
"""Share of an epsilon that another tilt has to save."""
_MOST_TRIED = 1 << 16
"""Sums of which several tilts are tried, at most."""
_CLOSE, _NEAR = 0.05, 3.0


class UncertifiedError(ArithmeticError):
    """Double precision certifies no epsilon for a sum of losses; the message says why."""


Parts = Sequence[tuple[PrivacyLossDistribution, int]]
"""Distributions of one gap, and how many independent losses of each are added: at least 1."""
_Moments = tuple[float, float, float]


def compose(parts: Parts) -> PrivacyLossDistribution:
    """Return the distribution of a sum of independent losses: all sums, none cut off.

    Masses are accurate relative to the likeliest one.
    """
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0]
    return _composed(parts, tilt=0.0, window=_span(parts), cut=0.0)[0]


def epsilon_of_sum(parts: Parts, *, delta: float) -> float:
    """Return the smallest epsilon at which a sum of losses has at most this delta, rounded up.

    Returns:
        At least 0; infinite if an infinite loss is likelier than delta.

    Raises:
        UncertifiedError: Rounding could be more than a thousandth of what is computed, or more than
            2**23 sums would be kept.
    """
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0].epsilon(delta)
    cut = _CUT_SHARE * delta
    finite = delta - cut - _any_infinite(parts)
    if finite <= 0:
        return math.inf
    tilt, mean, deviation = _tilt_of(parts, delta=finite)
    epsilon = math.inf
    for _ in range(_TRIES):
        epsilon = min(epsilon, _epsilon_at(parts, tilt, delta=delta, cut=cut))
        if abs(mean - epsilon) <= _NEAR * deviation:
            break
        # The approximation was off: once more, nearer.
        tilt, mean, deviation = _tilt_to(parts, epsilon)
    low, high = _span(parts)
    if high - low > _MOST_TRIED:
        return epsilon
    return _with_smaller_tilts(parts, epsilon, tilt, delta=delta, cut=cut)


def _epsilon_at(parts: Parts, tilt: float, *, delta: float, cut: float) -> float:
    """Return the epsilon of a sum, by sums that are accurate relative to the likely tilted ones."""
    low, high = _window(parts, tilt, cut)
    if high - low >= _LONGEST:
        raise UncertifiedError(
            f"composition keeps at most {_LONGEST} sums of losses, got {high - low + 1}"
        )
    composed, noise = _composed(parts, tilt=tilt, window=(low, high), cut=cut)
    if noise > _LOUDEST:
        raise UncertifiedError(
            "composition in double precision certifies a relative error of at most "
            f"{_LOUDEST:g}, got {noise:.1e}"
        )
    return composed.epsilon(delta)


def _with_smaller_tilts(
    parts: Parts, epsilon: float, tilt: float, *, delta: float, cut: float
) -> float:
    """Return the least epsilon of smaller tilts too, if one is well below a found one.

    Every tilt gives an upper bound. The found tilt is too large where what is likely and what is
    rare lie far apart, so that the mean lies where nothing is.
    """
    least, best = epsilon, tilt
    while True:
        smaller = best / _RATIO
        found = _epsilon_at(parts, smaller, delta=delta, cut=cut)
        if not found < least * (1 - _WORTH):
            break
        least, best = found, smaller
    if best == tilt:
        return least
    for between in best * _RATIO ** np.linspace(0, 1, _BETWEEN, endpoint=False)[1:]:
        least = min(least, _epsilon_at(parts, float(between), delta=delta, cut=cut))
    return least


def _composed(
    parts: Parts, *, tilt: float, window: tuple[int, int], cut: float
) -> tuple[PrivacyLossDistribution, float]:
    """Return the distribution of a sum, and how far off its tilted masses are at most.

    Args:
        parts: Whose losses are added.
        tilt: Sums are accurate relative to what is likeliest of tilted losses.
        window: The least and the largest sum that are kept, in gaps. Smaller ones count as the
            least.
        cut: Upper bound on the probability of larger ones; they count as infinite.

    Returns:
        The second number is relative to the largest tilted mass.
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
    ), error / float(sums.max())


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


def _moments(parts: Parts, tilt: float) -> _Moments:
    """Return the log of the sum's E[e**(tilt * loss)], and the tilted mean and deviation."""
    log = mean = variance = 0.0
    for part, times in parts:
        _, losses, logs = part.positive
        exponents = logs + tilt * losses
        top = float(exponents.max())
        weights = np.exp(exponents - top)
        total = float(weights.sum())
        weights /= total
        center = float((weights * losses).sum())
        log += times * (top + math.log(total))
        mean += times * center
        variance += times * float((weights * (losses - center) ** 2).sum())
    return log, mean, math.sqrt(variance)


def _tilt_of(parts: Parts, *, delta: float) -> _Moments:
    """Return the tilt whose mean is about the epsilon of a delta, that mean, and the deviation.

    The saddle-point approximation of delta (Daniels 1954): near the mean, (1 - e**-y) e**(-tilt y)
    has the integral 1 / (tilt (1 + tilt)), of a density of 1 / (sqrt(2 pi) deviation) and less.
    """
    target = math.log(delta)

    def above(tilt: float, found: _Moments) -> float:
        log, mean, deviation = found
        likely = math.log1p(math.sqrt(2 * math.pi) * deviation * tilt * (1 + tilt))
        return target - (log - tilt * mean - likely)

    return _tilt_with(parts, above)


def _tilt_to(parts: Parts, mean: float) -> _Moments:
    return _tilt_with(parts, lambda _, found: found[1] - mean)


def _tilt_with(parts: Parts, above: Callable[[float, _Moments], float]) -> _Moments:
    """Return the tilt from which on something is above 0, its mean and deviation."""
    low, high = 0.0, _STEEPEST / parts[0][0].gap
    step = min(high, 1.0)
    while step < high and above(step, _moments(parts, step)) < 0:
        low, step = step, 2 * step
    high = min(step, high)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        found = _moments(parts, middle)
        if above(middle, found) < 0:
            low = middle
        else:
            high = middle
        if high - low <= _CLOSE / max(found[2], 1 / high):
            break
    _, mean, deviation = _moments(parts, high)
    return high, mean, deviation


def _window(parts: Parts, tilt: float, cut: float) -> tuple[int, int]:
    """Return the ends, in gaps, of the sums that matter near the mean of tilted losses.

    By Chernoff's bound, larger ones have at most probability ``cut`` together, and smaller ones a
    tilted probability of `_WRAPPED`.
    """
    gap = parts[0][0].gap
    low, high = _span(parts)
    log, _, deviation = _moments(parts, tilt)
    orders: Floats = np.asarray(_ORDERS / max(deviation, gap))
    right, left = tilt + orders, tilt - orders
    top = (_logs(parts, right) - math.log(cut)) / right
    bottom = (log - _logs(parts, left) + math.log(_WRAPPED)) / orders
    low = max(low, math.floor(bottom.max() / gap))
    return low, max(low, min(high, math.ceil(top.min() / gap)))


def _logs(parts: Parts, tilts: Floats) -> Floats:
    """Return ``(k,)`` logs of the sum's E[e**(tilt * loss)], for ``(k,)`` tilts."""
    found: Floats = np.zeros(len(tilts))
    for part, times in parts:
        _, losses, logs = part.positive
        exponents = logs + tilts[:, None] * losses
        top = exponents.max(axis=1)
        found += times * (top + np.log(np.exp(exponents - top[:, None]).sum(axis=1)))
    return found


def _span(parts: Parts) -> tuple[int, int]:
    low = sum(times * part.lowest for part, times in parts)
    return low, low + sum(times * (len(part.masses) - 1) for part, times in parts)
