"""Privacy loss distributions on a grid, and those of sums of independent losses, rounded up.

Losses are added by Fourier transforms, whose rounding is absolute: relative to the likeliest sum.
So masses are tilted first, which makes the sums near the epsilon in question the likeliest ones
(Esscher transform): each mass is multiplied by e**(tilt * loss), which sums of losses keep. What
rounding may have taken from a mass is bounded (`fedhh.accounting.bounds.convolution`) and added to
it; a sum that wraps around adds to a mass that is not its own; a sum that is cut off counts as
infinite. So delta is never below the exact one.

dp-accounting has the same without tilts. fedhh does not use it here, since it loads scipy.signal
and scipy.stats, a second for every run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fedhh.accounting.bounds.binomial import lower_tail, pmf, upper_tail
from fedhh.accounting.bounds.convolution import ROUNDING, Floats, on_a_circle, transform_length
from fedhh.accounting.bounds.search import smallest_true
from fedhh.accounting.guarantees import NotApplicable

_BINOMIAL = 1e-11
"""Relative error of a binomial probability: measured up to 3e-13."""
_UNDERFLOW = 1e-300
_SUMMED = 1e-13
"""Relative rounding of a sum of positive numbers."""
_SAME = 1e-12
"""Relative rounding of an epsilon that is read off."""

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
_CLOSE, _NEAR = 0.05, 3.0


@dataclass(frozen=True, kw_only=True, eq=False)
class PrivacyLossDistribution:
    """A distribution of privacy losses, multiples of a gap.

    Attributes:
        gap: Distance of neighboring losses, above 0.
        lowest: The least loss, in gaps.
        masses: ``(n,) float64``: upper bounds on the probabilities of this loss and of those above
            it, gap by gap.
        infinite: Upper bound on the probability of an infinite loss.
        surplus: Upper bound on what rounding up has added, at most, to any delta.
    """

    gap: float
    lowest: int
    masses: Floats
    infinite: float
    surplus: float = 0.0

    @classmethod
    def dominating(cls, deltas: Floats, *, gap: float) -> PrivacyLossDistribution:
        """Return a distribution whose delta is at least that of a mechanism, at every epsilon.

        Its delta is the mechanism's at the grid's points, and linear in e**epsilon between them,
        where the mechanism's is convex: Doroshenko, Ghazi, Kamath, Kumar, Manurangsi (2022),
        "Connect the Dots", Algorithm 1.

        Args:
            deltas: ``(2 k + 1,) float64``, non-increasing: upper bounds on the mechanism's delta
                from epsilon = -k to +k gaps.
            gap: Distance of the epsilons.
        """
        falls = -np.diff(deltas)
        # Delta falls by U - W e**epsilon; W is what all losses above weigh.
        from_below, from_above = falls / -math.expm1(-gap), falls / math.expm1(gap)
        added = np.concatenate([[1 - deltas[0]], from_below])
        taken = np.concatenate([from_above, [0.0]])
        # Bounds need not be convex everywhere. More mass is never less delta.
        masses = np.maximum(added - taken, 0.0) + 4 * ROUNDING * (added + taken)
        return cls(gap=gap, lowest=-(len(deltas) // 2), masses=masses, infinite=float(deltas[-1]))

    @classmethod
    def of_losses(
        cls, places: npt.NDArray[np.int64], masses: Floats, *, gap: float, infinite: float = 0.0
    ) -> PrivacyLossDistribution:
        """Return the distribution of losses in any order, some of them equal.

        Args:
            places: ``(n,) int64``: losses, in gaps.
            masses: ``(n,) float64``: their probabilities.
            gap: As an attribute.
            infinite: As an attribute.
        """
        lowest = int(places.min())
        counted = np.bincount(places - lowest, weights=masses)
        return cls(gap=gap, lowest=lowest, masses=counted.astype(np.float64), infinite=infinite)

    @classmethod
    def of_randomized_responses(
        cls, count: int, *, steps: int, gap: float, lies: tuple[int, int] | None = None
    ) -> PrivacyLossDistribution:
        """Return the loss of several binary randomized responses: a shifted binomial.

        Args:
            count: How many, at least 1.
            steps: Epsilon of each, in gaps.
            gap: As an attribute.
            lies: Fewest and most lies that are kept; others count as infinite losses. All if None.
        """
        fewest, most = (0, count) if lies is None else lies
        lie = _chance_of_lie(steps * gap)
        masses: Floats = np.zeros((most - fewest) * 2 * steps + 1)
        masses[:: 2 * steps] = pmf(np.arange(most, fewest - 1, -1), count, lie)
        outside = 0.0
        if lies is not None:
            outside = float(lower_tail(fewest - 1, count, lie) + upper_tail(most + 1, count, lie))
        return cls(
            gap=gap,
            lowest=(count - 2 * most) * steps,
            masses=masses * (1 + _BINOMIAL),
            infinite=outside * (1 + _BINOMIAL),
        )

    @cached_property
    def losses(self) -> Floats:
        """``(n,) float64``: the losses of the masses."""
        return self.gap * np.arange(self.lowest, self.lowest + len(self.masses), dtype=np.float64)

    def delta(self, epsilon: float) -> float:
        """Return delta at an epsilon: the sum of mass (1 - e**(epsilon - loss)) above it."""
        first = max(math.floor(epsilon / self.gap) - self.lowest, 0)
        gains = np.maximum(-np.expm1(epsilon - self.losses[first:]), 0.0)
        # Not a dot product: BLAS starts threads for one.
        return self.infinite + float(np.sum(self.masses[first:] * gains)) * (1 + _SUMMED)

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon >= 0 with at most this delta, rounded up by 1e-12 relative.

        Between two losses, delta(epsilon) = U - W e**(epsilon - upper), and two of its values give
        U and W. Infinite if an infinite loss is likelier than delta.
        """
        if self.infinite > delta:
            return math.inf
        if self.delta(0.0) <= delta:
            return 0.0
        low, high = 0, self.lowest + len(self.masses) - 1
        while high - low > 1:
            middle = (low + high) // 2
            if self.delta(middle * self.gap) <= delta:
                high = middle
            else:
                low = middle
        upper = self.delta(high * self.gap)
        weight = (self.delta(low * self.gap) - upper) / -math.expm1(-self.gap)
        inside = math.log((upper + weight - delta) / weight)
        found = high * self.gap + min(0.0, max(-self.gap, inside))
        if self.delta(found) > delta:
            found = min(found * (1 + _SAME), high * self.gap)
        if self.delta(found) > delta:
            found = high * self.gap
        return found * (1 + _SAME)

    @property
    def corners(self) -> tuple[Floats, Floats]:
        """Return probabilities of the likeliest events, under the second and the first hypothesis.

        ``(m,) float64`` each, from 0 to 1. The line between them is an upper bound on the
        probability of any event under the first, given its probability under the second.
        """
        place, losses, logs = self._logs
        under_one = np.cumsum(np.r_[self.infinite, self.masses[place][::-1]])
        under_other = np.cumsum(np.r_[0.0, np.exp(logs - losses)[::-1]])
        under_one[-1] = under_other[-1] = 1.0
        return np.minimum(under_other, 1.0), np.minimum(under_one, 1.0)

    @cached_property
    def _logs(self) -> tuple[npt.NDArray[np.intp], Floats, Floats]:
        """Where masses are, their losses and logarithms."""
        place = np.flatnonzero(self.masses)
        return place, self.losses[place], np.log(self.masses[place])


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


def epsilon_of_sum(parts: Parts, *, delta: float) -> float | NotApplicable:
    """Return the smallest epsilon at which a sum of losses has at most this delta, rounded up.

    Returns:
        At least 0; NotApplicable where rounding could be more than a thousandth of what is
        computed, or where more than 2**23 sums would be kept.
    """
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0].epsilon(delta)
    cut = _CUT_SHARE * delta
    finite = delta - cut - sum(times * part.infinite for part, times in parts)
    if finite <= 0:
        return math.inf
    tilt, mean, deviation = _tilt_of(parts, delta=finite)
    epsilon = math.inf
    for _ in range(_TRIES):
        low, high = _window(parts, tilt, cut)
        if high - low >= _LONGEST:
            return NotApplicable(
                f"composition keeps at most {_LONGEST} sums of losses, got {high - low + 1}"
            )
        composed, noise = _composed(parts, tilt=tilt, window=(low, high), cut=cut)
        if noise > _LOUDEST:
            return NotApplicable(
                "composition in double precision certifies a relative error of at most "
                f"{_LOUDEST:g}, got {noise:.1e}"
            )
        epsilon = min(epsilon, composed.epsilon(delta))
        if abs(mean - epsilon) <= _NEAR * deviation:
            break
        # The approximation was off: once more, nearer.
        tilt, mean, deviation = _tilt_to(parts, epsilon)
    return epsilon


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
    infinite = cut - math.expm1(sum(times * math.log1p(-part.infinite) for part, times in parts))
    return PrivacyLossDistribution(
        gap=gap,
        lowest=low,
        masses=masses,
        infinite=infinite * (1 + _SUMMED),
        surplus=surplus,
    ), error / float(sums.max())


def _tilted(part: PrivacyLossDistribution, tilt: float) -> tuple[Floats, float, float]:
    """Return masses times e**(tilt * loss - log), of sum 1, that log, and the rounding's sum."""
    place, losses, logs = part._logs
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
        _, losses, logs = part._logs
        exponents = logs + tilt * losses
        top = float(exponents.max())
        weights = np.exp(exponents - top)
        total = float(np.sum(weights))
        weights /= total
        center = float(np.sum(weights * losses))
        log += times * (top + math.log(total))
        mean += times * center
        variance += times * float(np.sum(weights * (losses - center) ** 2))
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
    """Return the tilt, at least 0, whose mean is this one, that mean, and the deviation."""
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
    for order in _ORDERS / max(deviation, gap):
        right, left = tilt + order, tilt - order
        if right > 0:
            top = (_moments(parts, right)[0] - math.log(cut)) / right
            high = min(high, math.ceil(top / gap))
        bottom = (log - _moments(parts, left)[0] + math.log(_WRAPPED)) / order
        low = max(low, math.floor(bottom / gap))
    return low, max(low, high)


def _span(parts: Parts) -> tuple[int, int]:
    """Return the least and the largest sum, in gaps."""
    low = sum(times * part.lowest for part, times in parts)
    return low, low + sum(times * (len(part.masses) - 1) for part, times in parts)


def likely_lies(epsilon: float, count: int, *, cut: float) -> tuple[int, int]:
    """Return fewest and most lies of randomized responses, but for a probability on either side.

    Args:
        epsilon: Of each response.
        count: How many.
        cut: Above 0.
    """
    lie = _chance_of_lie(epsilon)
    most = smallest_true(lambda k: float(upper_tail(k, count, lie)) <= cut, low=1, high=count + 1)
    true = smallest_true(
        lambda k: float(lower_tail(count - k, count, lie)) <= cut, low=1, high=count + 1
    )
    return count + 1 - (true or count + 1), (most or count + 1) - 1


def _chance_of_lie(epsilon: float) -> float:
    """Return 1 / (1 + e**epsilon), at least 1e-300."""
    weight = math.exp(-epsilon)
    return max(weight / (1 + weight), _UNDERFLOW)
