"""Laws of privacy losses on a grid, and their composition by Fourier transforms.

dp-accounting has the same; fedhh does not use it, since it loads scipy.signal and scipy.stats, a
second for every run, and since some versions lose losses above 700, whose exponential is no double.
The tests compare the two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_ORDERS = 2.0 ** np.arange(-6, 7)
"""Orders of Chernoff bounds on a sum, in units of one over the number of losses."""

_SAME = 1e-12
"""Relative rounding of an epsilon that is read off."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LossLaw:
    """A law of privacy losses, multiples of a gap.

    Attributes:
        gap: Distance of neighboring losses, above 0.
        lowest: The least loss, in gaps.
        masses: ``(n,) float64``: probabilities of this loss and of those above it, gap by gap. Of
            composed laws, each may be off by the rounding of a Fourier transform, on either side.
        lost: Probability of what is left, below 1, which counts as an infinite loss.
    """

    gap: float
    lowest: int
    masses: Floats
    lost: float

    @classmethod
    def dominating(cls, deltas: Floats, *, gap: float) -> LossLaw:
        """Return a law whose delta is at least that of a mechanism, at every epsilon.

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
        masses = np.concatenate(
            [[1 - deltas[0] - from_above[0]], from_below[:-1] - from_above[1:], from_below[-1:]]
        )
        return cls(
            gap=gap,
            lowest=-(len(deltas) // 2),
            # Bounds need not be convex everywhere. More mass is never less delta.
            masses=np.maximum(masses, 0.0),
            lost=float(deltas[-1]),
        )

    def compose(self, other: LossLaw) -> LossLaw:
        """Return the law of the sum of this loss and another one, of the same gap."""
        size = len(self.masses) + len(other.masses) - 1
        length = _length(size)
        product = np.fft.rfft(self.masses, length) * np.fft.rfft(other.masses, length)
        return LossLaw(
            gap=self.gap,
            lowest=self.lowest + other.lowest,
            masses=np.fft.irfft(product, length)[:size],
            lost=self.lost + other.lost,
        )

    def self_compose(self, times: int, *, lost: float) -> LossLaw:
        """Return the law of the sum of so many independent losses of this law.

        Args:
            times: At least 1.
            lost: Probability of sums far from the others that may count as infinite, above 0. What
                the transform wraps around adds mass inside, and so to delta.
        """
        if times == 1:
            return self
        low, high = self._likely_sums(times, lost)
        length = _length(max(high - low + 1, len(self.masses)))
        wrapped = np.fft.irfft(np.fft.rfft(self.masses, length) ** times, length)
        return LossLaw(
            gap=self.gap,
            lowest=self.lowest * times + low,
            masses=np.roll(wrapped, -(low % length))[: high - low + 1],
            lost=lost - math.expm1(times * math.log1p(-self.lost)),
        )

    def delta(self, index: int) -> float:
        """Return delta at an epsilon of so many gaps: the sum of mass (1 - e**(epsilon - loss))."""
        first = max(index + 1 - self.lowest, 0)
        beyond = self.masses[first:]
        losses = np.arange(first, len(self.masses)) + (self.lowest - index)
        return self.lost + float(beyond @ -np.expm1(-self.gap * losses))

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon >= 0 with at most this delta, rounded up by 1e-12 relative.

        Between two losses, delta(epsilon) = U - W e**(epsilon - upper), and two of its values give
        U and W. Infinite if more than delta is lost.
        """
        if self.lost > delta:
            return math.inf
        if self.delta(0) <= delta:
            return 0.0
        low, high = 0, self.lowest + len(self.masses) - 1
        while high - low > 1:
            middle = (low + high) // 2
            if self.delta(middle) <= delta:
                high = middle
            else:
                low = middle
        upper = self.delta(high)
        weight = (self.delta(low) - upper) / -math.expm1(-self.gap)
        inside = math.log((upper + weight - delta) / weight)
        return (high * self.gap + min(0.0, max(-self.gap, inside))) * (1 + _SAME)

    def _likely_sums(self, times: int, lost: float) -> tuple[int, int]:
        """Return the ends, in gaps above ``times * lowest``, of all sums but for a probability.

        Chernoff's bound at some orders, half of the probability on either side.
        """
        size = len(self.masses)
        places = np.arange(size)
        low, high = 0, (size - 1) * times
        for order in _ORDERS / size:
            # e**(order * place) is at most e**64.
            above = times * math.log(float(self.masses @ np.exp(order * places)))
            below = times * math.log(float(self.masses @ np.exp(-order * places)))
            room = math.log(2 / lost)
            high = min(high, math.ceil((above + room) / order))
            low = max(low, math.floor(-(below + room) / order))
        return low, max(high, low)


def smallest_certified_delta(num_losses: int) -> float:
    """Return the smallest delta that convolved losses can be asked for; half of it is their error.

    Measured against exponentially tilted transforms.
    """
    return 8e-17 * math.sqrt(num_losses)


def _length(size: int) -> int:
    """Return a length of Fourier transforms that is at least a size."""
    return 1 << (size - 1).bit_length()
