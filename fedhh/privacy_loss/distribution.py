"""Privacy loss distributions on a grid, rounded up; `fedhh.privacy_loss.sums` adds losses up."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fedhh.arrays import Floats, Ints
from fedhh.privacy_loss.convolution import ROUNDING
from fedhh.privacy_loss.grid import gaps_in
from fedhh.privacy_loss.search import smallest_true
from fedhh.validation import InputError

_RAISED = 16 * ROUNDING
"""What numbers are raised by that a few operations have rounded."""
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
    def dominating(
        cls, deltas: Floats, *, gap: float, other: Floats | None = None
    ) -> PrivacyLossDistribution:
        """Return a distribution whose delta is at least that of a mechanism, at every epsilon.

        Its delta is the mechanism's at the grid's points, and linear in e**epsilon between them,
        where the mechanism's is convex: Doroshenko, Ghazi, Kamath, Kumar, Manurangsi (2022),
        "Connect the Dots", Algorithm 1. At -epsilon a mechanism's delta is 1 - e**-epsilon +
        e**-epsilon times that of the other order.

        Args:
            deltas: ``(k,) float64``: upper bounds on the mechanism's delta at 0 gaps, 1, 2, ...,
                from 1 to 0 but for rounding. They need neither be convex nor fall.
            gap: Distance of the epsilons.
            other: ``(k,) float64``: the same with the hypotheses in the other order; the same
                numbers if None.

        Raises:
            InputError: A bound outside of this range.
        """
        off = ~((deltas >= -_WIGGLE) & (deltas <= 1 + _WIGGLE))
        if off.any():
            place = int(np.argmax(off))
            raise InputError(
                f"Expected deltas from 0 to 1, got {deltas[place]} at epsilon={place * gap:g}."
            )
        last = len(deltas) - 1
        negative: Floats = -gap * np.arange(last, 0, -1, dtype=np.float64)
        mirrored = (deltas if other is None else other)[:0:-1]
        below = -np.expm1(negative) + np.exp(negative) * mirrored
        bounds = np.clip(np.concatenate([below * (1 + _RAISED), deltas]), 0.0, 1.0)
        # What is private at an epsilon is so at every larger one.
        bounds = np.minimum.accumulate(bounds)
        falls = -np.diff(bounds)
        # Delta falls by U - W e**epsilon; W is what all losses above weigh.
        from_below, from_above = falls / -math.expm1(-gap), falls / math.expm1(gap)
        added = np.concatenate([[1 - bounds[0]], from_below])
        taken = np.concatenate([from_above, [0.0]])
        # Bounds need not be convex everywhere. More mass is never less delta.
        masses = np.maximum(added - taken, 0.0) + 4 * ROUNDING * (added + taken)
        return cls(gap=gap, lowest=-last, masses=masses, infinite=float(bounds[-1]))

    @classmethod
    def of_losses(
        cls, places: Ints, masses: Floats, *, gap: float, infinite: float = 0.0
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
    def of_response(cls, epsilon: float, *, gap: float) -> PrivacyLossDistribution:
        """Return the loss of a binary randomized response, its epsilon rounded up to the grid."""
        steps = gaps_in(epsilon, gap)
        weight = math.exp(-steps * gap)
        lie = max(weight / (1 + weight), _UNDERFLOW)
        return cls.of_losses(
            np.array([-steps, steps]), np.array([lie, 1 / (1 + weight)]) * (1 + _RAISED), gap=gap
        )

    def from_loss(self, lowest: int) -> PrivacyLossDistribution:
        """Return the same with all losses below so many gaps rounded up to that."""
        below = lowest - self.lowest
        masses = np.append(self.masses[: below + 1].sum() * (1 + SUMMED), self.masses[below + 1 :])
        return replace(self, lowest=lowest, masses=masses)

    @cached_property
    def losses(self) -> Floats:
        """``(n,) float64``: the losses of the masses."""
        return self.gap * np.arange(self.lowest, self.lowest + len(self.masses), dtype=np.float64)

    def delta(self, epsilon: float) -> float:
        """Return delta at an epsilon: the sum of mass (1 - e**(epsilon - loss)) above it."""
        first = max(math.floor(epsilon / self.gap) - self.lowest, 0)
        gains = -np.expm1(np.minimum(epsilon - self.losses[first:], 0.0))
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
        most = self.lowest + len(self.masses) - 1
        high = smallest_true(lambda k: self.delta(k * self.gap) <= delta, low=1, high=most)
        upper = self.delta(high * self.gap)
        weight = (self.delta((high - 1) * self.gap) - upper) / -math.expm1(-self.gap)
        inside = math.log((upper + weight - delta) / weight)
        found = high * self.gap + min(0.0, max(-self.gap, inside))
        if self.delta(found) > delta:
            found = min(found * (1 + _SAME), high * self.gap)
        if self.delta(found) > delta:
            found = high * self.gap
        return found * (1 + _SAME)

    @cached_property
    def positive(self) -> tuple[npt.NDArray[np.intp], Floats, Floats]:
        """Where masses are, their losses and logarithms."""
        place = np.flatnonzero(self.masses)
        return place, self.losses[place], np.log(self.masses[place])
