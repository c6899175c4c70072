"""1BitMean and dBitFlip over many days: bits about a number or a bucket, remembered for each.

Source: Ding, Kulkarni, Yekhanin (2017), "Collecting telemetry data privately", NIPS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedhh.longitudinal.memoization.bits import BitPair, Bits, Classes, MemoizedBits
from fedhh.longitudinal.memoization.daily import Floats, Public, same_pattern
from fedhh.oracles.base import as_numbers, require_in_domain
from fedhh.validation import (
    InputError,
    require_at_least,
    require_epsilon,
    require_inside,
    require_positive,
    shown,
)

LARGEST_EPSILON = 30.0
"""Beyond it floating point cannot tell a permanent response from none."""


@dataclass(frozen=True, kw_only=True)
class FlippedBits(MemoizedBits):
    """Memoized bits with the paper's output perturbation: each is flipped with chance gamma daily.

    Attributes:
        epsilon: Of the permanent response.
        gamma: Chance that a sent bit is flipped, below 1/2.
    """

    epsilon: float
    gamma: float = 0.0

    def __post_init__(self) -> None:
        require_epsilon(epsilon=self.epsilon)
        if self.epsilon > LARGEST_EPSILON:
            raise InputError(
                f"Expected epsilon <= {LARGEST_EPSILON:g}, got epsilon={self.epsilon!r}."
            )
        if not 0 <= self.gamma < 0.5:
            raise InputError(f"Expected 0 <= gamma < 0.5, got gamma={shown(self.gamma)}.")

    @property
    def daily_one(self) -> float:
        return 1 - self.gamma

    @property
    def daily_zero(self) -> float:
        return self.gamma


@dataclass(frozen=True, kw_only=True)
class MemoizedOneBitMean(FlippedBits):
    """1BitMean with alpha-point rounding, permanent responses and output perturbation.

    A device rounds its number to one of M/S + 1 grid points by an alpha of its own, drawn once. For
    each grid point y it draws a bit, once: 1 with chance 1/(e + 1) + (y/M) (e - 1)/(e + 1), where
    e = exp(epsilon). Every day it sends today's point's bit, flipped with chance gamma.

    Formal guarantees:
        * All reports about one value: epsilon, attained by 0 against M. One report: less, if gamma
          is above 0.
        * Two histories whose *rounded* values repeat and differ on the same days, with w distinct
          ones, for every alpha: w epsilon (the paper's theorem on behavior patterns of width w,
          which is about rounded values). Always one value against always another is such a pair,
          and so are histories of grid points. Other values of one pattern are not: two that are
          close are rounded to one point by most alphas, two that are not by few, and reports show
          that; nothing bounds it, since values may be as close as one likes. `epsilon_of_histories`
          says which.
        * Not protected: that a rounded value changed. With gamma = 0, a bit that differs from
          yesterday's proves a change. With gamma above 0, each report hides its day's permanent
          bit by ln((1 - gamma) / gamma), but the days add up.
        * `estimate` is unbiased, and off by `error_bound` at most but with chance delta.

    Attributes:
        maximum: M; values are numbers in [0, M].
        num_steps: M/S: grid points but one; 1 rounds to 0 or M.
    """

    maximum: float
    num_steps: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(maximum=self.maximum)
        require_at_least(1, num_steps=self.num_steps)

    @property
    def step(self) -> float:
        """S, the distance of grid points."""
        return self.maximum / self.num_steps

    @property
    def num_bits(self) -> int:
        return 1

    @property
    def rounds(self) -> bool:
        return True

    def draw_public(self, num_devices: int, *, rng: np.random.Generator) -> Public:
        return np.empty((num_devices, 0), dtype=np.int64)

    def thresholds(self, values: npt.ArrayLike) -> tuple[Classes, Floats]:
        return alpha_points(values, step=self.step, num_steps=self.num_steps)

    def chances(self, public: Public, classes: Classes) -> Floats:
        low = 1 / (1 + math.exp(self.epsilon))
        return (low + (1 - 2 * low) * classes / self.num_steps)[:, None]

    @property
    def farthest(self) -> tuple[BitPair, ...]:
        low = 1 / (1 + math.exp(self.epsilon))
        return (BitPair(1 - low, low, 1),)

    @property
    def _slope(self) -> float:
        """What a report's chance of a 1 rises by, from 0 to M."""
        return math.tanh(self.epsilon / 2) * (1 - 2 * self.gamma)

    def estimate(self, reports: Bits, public: Public) -> Floats:
        """Return the estimate of the mean of all devices' values, ``() float64``.

        M/n times the sum of (b (e + 1) - 1) / (e - 1), where with output perturbation
        (b - gamma) / (1 - 2 gamma) stands for b. It may be outside [0, M].
        """
        require_at_least(1, num_reports=len(reports))
        centered = np.asarray(reports.mean(), dtype=np.float64) - 0.5
        return np.asarray(self.maximum * (0.5 + centered / self._slope))

    def variance(self, values: npt.ArrayLike) -> float:
        """Return the exact variance of a day's estimate for devices with these ``(n,)`` values.

        Over all that devices draw. Alpha adds nothing: a bit's chance is linear in the rounded
        value, whose mean is the value.
        """
        self.thresholds(values)
        numbers = np.asarray(values, dtype=np.float64)
        require_at_least(1, num_values=len(numbers))
        ones = 0.5 + self._slope * (numbers / self.maximum - 0.5)
        return float((ones * (1 - ones)).sum() * (self.maximum / self._slope / len(numbers)) ** 2)

    def error_bound(self, num_devices: int, *, delta: float) -> float:
        """Return what a day's estimate is off by at most, but with chance ``delta``.

        The paper's (M / sqrt(2 n)) (e + 1) / (e - 1) sqrt(ln(2 / delta)), by Hoeffding's
        inequality, and that over 1 - 2 gamma with output perturbation: each device adds one of two
        numbers that are M (e + 1) / ((e - 1) (1 - 2 gamma)) apart, in the mean its value.
        """
        require_at_least(1, num_devices=num_devices)
        require_inside(0, 1, delta=delta)
        spread = math.sqrt(math.log(2 / delta) / (2 * num_devices))
        return self.maximum * spread / self._slope


def alpha_points(values: npt.ArrayLike, *, step: float, num_steps: int) -> tuple[Classes, Floats]:
    """Return ``(t,)`` grid points below numbers, and offsets in (0, 1] from which on they round up.

    With offset a, uniform in [0, 1), x = (l + r) step is rounded up where a >= 1 - r: with chance
    r, so that the mean is x exactly. For whole numbers and a whole step this is the distribution of
    Ding et al. (2017), section 3: up where x + alpha reaches the next grid point, alpha uniform
    among 0 .. step - 1. Numbers are in [0, ``num_steps * step``].
    """
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1 or not ((numbers >= 0) & (numbers <= num_steps * step)).all():
        got = f"{numbers.min():g} to {numbers.max():g}" if numbers.size else str(numbers.shape)
        raise InputError(
            f"Expected values as one axis of numbers in [0, {num_steps * step:g}], got {got}; "
            "clip them on the device."
        )
    places = numbers / step
    below = np.minimum(np.floor(places), num_steps)
    return below.astype(np.int64), np.asarray(1 - (places - below), dtype=np.float64)


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
