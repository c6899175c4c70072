"""dBitFlip over many days: bits about d buckets, remembered for each value.

Source: Ding, Kulkarni, Yekhanin (2017), "Collecting telemetry data privately", NIPS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedhh.longitudinal.memoization.bits import BitPair, Bits, Classes
from fedhh.longitudinal.memoization.daily import Floats, Public, same_pattern
from fedhh.longitudinal.memoization.one_bit_mean import FlippedBits, alpha_points
from fedhh.oracles.base import as_numbers, require_in_domain
from fedhh.validation import InputError, require_at_least, require_positive


@dataclass(frozen=True, kw_only=True)
class MemoizedDBitFlip(FlippedBits):
    """dBitFlip with permanent responses (the paper's dBitFlipPM), rounding and perturbation.

    A device draws d of K buckets once, and says which. For each bucket that its value is ever in,
    it draws d bits, once: with h = exp(epsilon/2), a drawn bucket's bit is 1 with chance h/(h + 1)
    if the value is in it, else 1/(h + 1). Every day it sends the bits of today's bucket, each
    flipped with chance gamma.

    Formal guarantees:
        * All reports about one value: epsilon, attained by two drawn buckets; with d = 1 no device
          gives away more than epsilon/2.
        * Two histories of buckets that repeat and differ on the same days, w distinct ones: epsilon
          min(w, d), and epsilon min(2, d)/2 if w = 1: of w independent responses, only those to
          drawn buckets differ in distribution. With ``only_drawn`` and K >= d + 2, nothing bounds
          that for w >= 2: two buckets of one history may share a response where those of the other
          do not, and reports then differ in when they repeat. What is left are histories of w = 1,
          and those of w = 2 that swap the same two buckets, which no device draws or shares
          otherwise: epsilon min(2, d). With K <= d + 1 at most one bucket is not drawn, and nothing
          is shared.
        * With ``step``, all this is about buckets, not about numbers before they are rounded.
        * Not protected: that a value changed bucket, of which any bit may tell, also between two
          buckets that were not drawn. With ``only_drawn`` that last change leaves no trace at all.
        * Which buckets were drawn is public, and is a mark of the device: log2 C(K, d) bits.

    Attributes:
        num_buckets: K; values are 0 .. K - 1.
        num_drawn: d, from 1 to K.
        step: If given, values are numbers in [0, (K - 1) step], rounded to a bucket by the device's
            alpha.
        only_drawn: Whether all buckets that a device has not drawn share one permanent response,
            as in the code of Arcolezi, Pinzon, Palamidessi, Gambs (2023), "Frequency estimation of
            evolving data under local differential privacy", EDBT, which then has d + 1 in all.
    """

    num_buckets: int
    num_drawn: int = 16
    step: float | None = None
    only_drawn: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(2, num_buckets=self.num_buckets)
        require_at_least(1, num_drawn=self.num_drawn)
        if self.num_drawn > self.num_buckets:
            raise InputError(
                f"Expected num_drawn <= num_buckets={self.num_buckets}, got "
                f"num_drawn={self.num_drawn}."
            )
        if self.step is not None:
            require_positive(step=self.step)

    @property
    def num_bits(self) -> int:
        return self.num_drawn

    @property
    def rounds(self) -> bool:
        return self.step is not None

    @property
    def keep_probability(self) -> float:
        """Chance of a permanent 1 in the value's bucket, h / (h + 1)."""
        return 1 / (1 + math.exp(-self.epsilon / 2))

    @property
    def public_bits(self) -> float:
        """The drawn buckets', log2 C(K, d)."""
        s, d = self.num_buckets, self.num_drawn
        ways = math.lgamma(s + 1) - math.lgamma(d + 1) - math.lgamma(s - d + 1)
        return ways / math.log(2)

    def draw_public(self, num_devices: int, *, rng: np.random.Generator) -> Public:
        """Return ``(n, d) int64``: distinct buckets, ascending; Floyd's algorithm."""
        drawn = np.full((num_devices, self.num_drawn), -1, dtype=np.int64)
        for place, last in enumerate(range(self.num_buckets - self.num_drawn, self.num_buckets)):
            each = rng.integers(last + 1, size=num_devices)
            taken = (drawn[:, :place] == each[:, None]).any(axis=1)
            drawn[:, place] = np.where(taken, last, each)
        drawn.sort(axis=1)
        return drawn

    def thresholds(self, values: npt.ArrayLike) -> tuple[Classes, Floats]:
        """Return values' buckets; of numbers those below, and what offset rounds them up."""
        if self.step is not None:
            return alpha_points(values, step=self.step, num_steps=self.num_buckets - 1)
        buckets = as_numbers(values)
        require_in_domain(buckets, self.num_buckets)
        return buckets, np.ones(len(buckets))

    def classes(self, public: Public, rounded: Classes) -> Classes:
        """Return buckets; with ``only_drawn``, K for each that the device has not drawn."""
        shared = super().classes(public, rounded)
        if not self.only_drawn:
            return shared
        known = (public[:, :, None] == rounded[:, None, :]).any(axis=1)
        return np.where(known, shared, self.num_buckets)

    def chances(self, public: Public, classes: Classes) -> Floats:
        keep = self.keep_probability
        return np.where(public == classes[:, None], keep, 1 - keep)

    @property
    def farthest(self) -> tuple[BitPair, ...]:
        """Two drawn buckets; with d = 1, a drawn one and another."""
        keep = self.keep_probability
        if self.num_drawn == 1:
            return (BitPair(keep, 1 - keep, 1),)
        pairs = (
            BitPair(keep, 1 - keep, 1),
            BitPair(1 - keep, keep, 1),
            BitPair(1 - keep, 1 - keep, self.num_drawn - 2),
        )
        return tuple(pair for pair in pairs if pair.times)

    def epsilon_of_same_pattern(self, width: int) -> float:
        """Return epsilon min(width, d); for one bucket, `epsilon_forever`.

        math.inf for two and more if they may share a response: ``only_drawn``, and K >= d + 2.
        """
        require_at_least(1, width=width)
        if width == 1:
            return self.epsilon_forever
        return math.inf if self._shares else self.epsilon * min(width, self.num_drawn)

    @property
    def _shares(self) -> bool:
        """Whether two buckets may share a permanent response."""
        return self.only_drawn and self.num_buckets >= self.num_drawn + 2

    def _epsilon_of_rounded(self, first: Classes, second: Classes) -> float:
        """Return the bound; two buckets that swap are drawn, and share a response, together."""
        swap = self._shares and not np.array_equal(first, second) and same_pattern(first, second)
        if swap and np.unique(first).size == 2 and set(first.tolist()) == set(second.tolist()):
            return self.epsilon * min(2, self.num_drawn)
        return super()._epsilon_of_rounded(first, second)

    @property
    def _sent(self) -> tuple[float, float]:
        """Chances that a sent bit is 1, of the value's own bucket and of another."""
        slope = 1 - 2 * self.gamma
        keep = self.keep_probability
        return self.gamma + slope * keep, self.gamma + slope * (1 - keep)

    def estimate(self, reports: Bits, public: Public) -> Floats:
        """Return ``(K,) float64``: unbiased counts of devices in each bucket.

        (K / d) times the sum, over the devices that drew it, of (b - zero) / (one - zero), by the
        chances of a 1 in the own bucket and in another; without output perturbation that is the
        paper's (b (h + 1) - 1) / (h - 1).
        """
        own, other = self._sent
        weights = (reports - other) / (own - other)
        sums = np.bincount(public.ravel(), weights=weights.ravel(), minlength=self.num_buckets)
        return np.asarray(sums * (self.num_buckets / self.num_drawn), dtype=np.float64)

    def variance(self, count: npt.ArrayLike, num_devices: int, *, days: int = 1) -> Floats:
        """Return the exact variance of a bucket's estimate, over all that devices draw.

        With h = exp(epsilon/2) and gamma = 0, a device elsewhere adds (K/d) h/(h - 1)^2, one in the
        bucket (K/d) (1 + h/(h - 1)^2) - 1.

        Args:
            count: How many of the devices are in it.
            num_devices: n.
            days: The average of so many days' estimates, whose values do not change: drawn buckets
                and permanent responses stay, so that only output perturbation averages out.
        """
        require_at_least(1, num_devices=num_devices, days=days)
        own, other = self._sent
        keep, slope = self.keep_probability, 1 - 2 * self.gamma
        # The same for both bits: keep (1 - keep) does not distinguish them, nor do their flips.
        permanent = keep * (1 - keep) * slope**2
        daily = self.gamma * (1 - self.gamma)
        bit = (permanent + daily / days) / (own - other) ** 2
        scale = self.num_buckets / self.num_drawn
        count = np.asarray(count, dtype=np.float64)
        return np.asarray(num_devices * scale * bit + count * (scale - 1), dtype=np.float64)
