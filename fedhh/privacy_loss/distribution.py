"""Privacy loss distributions on a grid, rounded up; `fedhh.privacy_loss.sums` adds losses up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fedhh.privacy_loss.binomial import lower_tail, pmf, upper_tail
from fedhh.privacy_loss.convolution import ROUNDING, Floats
from fedhh.privacy_loss.search import smallest_true
from fedhh.validation import InputError

_BINOMIAL = 1e-11
"""Relative error of a binomial probability: measured up to 3e-13."""
_UNDERFLOW = 1e-300
SUMMED = 1e-13
"""Relative rounding of a sum of positive numbers."""
_SAME = 1e-12
"""Relative rounding of an epsilon that is read off."""
_WIGGLE = 1e-12
"""By how much a computed curve may leave the range from 0 to 1 by rounding alone."""


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
            deltas: ``(2 k + 1,) float64``: upper bounds on the mechanism's delta from epsilon = -k
                to +k gaps, from 1 to 0 but for rounding. They need neither be convex nor fall.
            gap: Distance of the epsilons.

        Raises:
            InputError: A bound outside of this range.
        """
        off = ~((deltas >= -_WIGGLE) & (deltas <= 1 + _WIGGLE))
        if off.any():
            place = int(np.argmax(off))
            raise InputError(
                f"Expected deltas from 0 to 1, got {deltas[place]} at place {place} of "
                f"{len(deltas)} (from epsilon -k to k)."
            )
        deltas = falling(np.clip(deltas, 0.0, 1.0))
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
        return self.infinite + float(np.sum(self.masses[first:] * gains)) * (1 + SUMMED)

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
        place, losses, logs = self.positive
        under_one = np.cumsum(np.r_[self.infinite, self.masses[place][::-1]])
        under_other = np.cumsum(np.r_[0.0, np.exp(logs - losses)[::-1]])
        under_one[-1] = under_other[-1] = 1.0
        return np.minimum(under_other, 1.0), np.minimum(under_one, 1.0)

    @cached_property
    def positive(self) -> tuple[npt.NDArray[np.intp], Floats, Floats]:
        """Where masses are, their losses and logarithms."""
        place = np.flatnonzero(self.masses)
        return place, self.losses[place], np.log(self.masses[place])


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


def falling(deltas: Floats) -> Floats:
    """Return upper bounds of which none is above an earlier one, for ascending epsilons.

    A mechanism that is (epsilon, delta)-private is so at every larger epsilon.
    """
    return np.asarray(np.minimum.accumulate(deltas))


def _chance_of_lie(epsilon: float) -> float:
    """Return 1 / (1 + e**epsilon), at least 1e-300."""
    weight = math.exp(-epsilon)
    return max(weight / (1 + weight), _UNDERFLOW)
