"""Memoized answers that are bits: a permanent response to each, and one drawn from it every day."""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from fedhh.longitudinal.memoization.daily import (
    DailyAnswer,
    Floats,
    MemoizedState,
    Public,
    as_days,
    as_histories,
    draw_keys,
    same_pattern,
)
from fedhh.random import GOLDEN, scatter
from fedhh.validation import require_at_least

Bits = npt.NDArray[np.bool_]
Classes = npt.NDArray[np.int64]

_BITS_AT_ONCE = 2**21
_TO_UNIT = 2.0**-53


class BitPair(NamedTuple):
    """Bits of a report that one value and another make alike.

    Attributes:
        first: Chance of a permanent 1 under the first value.
        second: Under the second.
        times: How many bits of a report are such.
    """

    first: float
    second: float
    times: int

    @property
    def epsilon(self) -> float:
        """Privacy of one such permanent bit."""
        return max(
            math.log(self.first / self.second), math.log((1 - self.first) / (1 - self.second))
        )


class MemoizedBits(DailyAnswer):
    """Bits with a permanent response for each value's class, and a daily response to that.

    The permanent response to a class is b independent bits, drawn once per device and class; a
    day's report shows each of today's class: a 1 with chance `daily_one` if the permanent bit is
    1, `daily_zero` if it is 0, independently every day. A report is ``(b,) bool``.
    """

    @property
    @abstractmethod
    def num_bits(self) -> int:
        """b, the bits of a report."""

    @property
    @abstractmethod
    def daily_one(self) -> float:
        """Chance that a permanent 1 is sent as 1."""

    @property
    @abstractmethod
    def daily_zero(self) -> float:
        """Chance that a permanent 0 is sent as 1, below `daily_one`."""

    @abstractmethod
    def draw_public(self, num_devices: int, *, rng: np.random.Generator) -> Public:
        """Return ``(n, w) int64``: what reports show of the devices themselves."""

    @property
    def rounds(self) -> bool:
        """Whether values are rounded with a secret offset of the device."""
        return False

    @abstractmethod
    def thresholds(self, values: npt.ArrayLike) -> tuple[Classes, Floats]:
        """Return how values are rounded: ``(t,)`` classes for offset 0, and ``(t,)`` thresholds.

        From that offset on the class is the next one; a threshold is at least 1 if it never is.
        """

    def roundings(self, values: npt.ArrayLike) -> Iterator[tuple[float, Classes]]:
        """Yield each way in which ``(t,)`` values are rounded, with its chance over offsets."""
        rounded, threshold = self.thresholds(values)
        cuts = np.unique(np.r_[0.0, 1.0, threshold[threshold < 1]]).tolist()
        for low, high in itertools.pairwise(cuts):
            yield high - low, rounded + (low >= threshold)

    def classes(self, public: Public, rounded: Classes) -> Classes:
        """Return ``(n, t)``: which permanent responses ``(n, t)`` rounded values use."""
        return np.broadcast_to(rounded, (len(public), rounded.shape[1]))

    @abstractmethod
    def chances(self, public: Public, classes: Classes) -> Floats:
        """Return ``(n, b) float64``: each permanent bit's chance to be 1, by ``(n,)`` classes."""

    @property
    @abstractmethod
    def farthest(self) -> tuple[BitPair, ...]:
        """All bits of a report, under the two values that are easiest to distinguish.

        Values need not differ in every bit.
        """

    def begin(self, num_devices: int, *, rng: np.random.Generator) -> MemoizedState:
        require_at_least(0, num_devices=num_devices)
        public = self.draw_public(num_devices, rng=rng)
        offsets = rng.random(num_devices) if self.rounds else np.zeros(num_devices)
        return MemoizedState(public, offsets, draw_keys(num_devices, rng=rng))

    def permanent(self, state: MemoizedState, values: npt.ArrayLike) -> Bits:
        """Return ``(n, b) bool``: the permanent responses to ``(n,)`` values, never sent as such.

        The same state and value give the same bits.
        """
        rounded, threshold = self.thresholds(values)
        state.require_one_value_each(rounded)
        rounded = rounded + (state.offsets >= threshold)
        classes = self.classes(state.public, rounded[:, None])[:, 0]
        starts = scatter(state.keys ^ scatter(classes.astype(np.uint64) + GOLDEN))
        places = np.arange(1, self.num_bits + 1, dtype=np.uint64) * GOLDEN
        coins = (scatter(starts[:, None] + places) >> np.uint64(11)) * _TO_UNIT
        return np.asarray(coins < self.chances(state.public, classes))

    def answer(
        self, state: MemoizedState, values: npt.ArrayLike, *, rng: np.random.Generator
    ) -> Bits:
        values = np.asarray(values)
        state.require_one_value_each(values)
        reports = np.empty((state.num_devices, self.num_bits), dtype=np.bool_)
        step = max(1, _BITS_AT_ONCE // self.num_bits)
        for start in range(0, state.num_devices, step):
            stop = min(start + step, state.num_devices)
            permanent = self.permanent(state.rows(start, stop), values[start:stop])
            if self.daily_zero > 0 or self.daily_one < 1:
                coins = rng.random(permanent.shape)
                permanent = coins < np.where(permanent, self.daily_one, self.daily_zero)
            reports[start:stop] = permanent
        return reports

    def log_prob(self, reports: Bits, values: npt.ArrayLike, public: Public) -> Floats:
        """Return the exact log-probability of ``(n, t, b)`` reports; see `DailyAnswer.log_prob`.

        Secret offsets are summed over: between the thresholds of t values, rounding is the same.
        """
        parts = [
            math.log(chance) + self._log_prob_of(reports, rounded, public)
            for chance, rounded in self.roundings(as_days(values, reports.shape[1]))
        ]
        return np.asarray(special.logsumexp(parts, axis=0) if self.rounds else parts[0])

    def _log_prob_of(self, reports: Bits, rounded: Classes, public: Public) -> Floats:
        classes = self.classes(public, rounded[None, :])
        total = np.zeros(len(reports))
        for each in np.unique(classes):
            mask = classes == each
            ones = np.einsum("nt,ntb->nb", mask, reports, dtype=np.int64)
            zeros = mask.sum(axis=1)[:, None] - ones
            chance = self.chances(public, np.full(len(public), each))
            with np.errstate(divide="ignore"):
                one = np.log(chance) + log_of_days(ones, zeros, self.daily_one)
                zero = np.log1p(-chance) + log_of_days(ones, zeros, self.daily_zero)
            total += np.logaddexp(one, zero).sum(axis=1)
        return total

    def epsilon_after(self, days: int) -> float:
        """Return the exact privacy of a value that never changes, given ``days`` reports.

        Bits are independent, and a bit's likelihood ratio is monotone in the number of ones: it is
        largest where all its reports are equal.
        """
        require_at_least(1, days=days)
        return sum(
            pair.times
            * max(self._loss_of_equal_reports(pair, days, ones) for ones in (True, False))
            for pair in self.farthest
        )

    def _loss_of_equal_reports(self, pair: BitPair, days: int, ones: bool) -> float:
        likely, rare = self.daily_one, self.daily_zero
        first, second, _ = pair
        if not ones:
            likely, rare = 1 - rare, 1 - likely
            first, second = 1 - first, 1 - second
        # Chances relative to the likelier permanent bit, so that many days do not underflow.
        other = (rare / likely) ** days
        return math.log(first + (1 - first) * other) - math.log(second + (1 - second) * other)

    @property
    def epsilon_forever(self) -> float:
        """Privacy of the permanent response, which all reports about one value are made from."""
        return sum(pair.times * pair.epsilon for pair in self.farthest)

    def epsilon_of_same_pattern(self, width: int) -> float:
        """Return ``width`` times `epsilon_forever`: permanent responses are independent."""
        require_at_least(1, width=width)
        return width * self.epsilon_forever

    def epsilon_of_histories(self, first: npt.ArrayLike, second: npt.ArrayLike) -> float:
        """Return what bounds all reports of two histories, values that are rounded included.

        Reports are a mixture over the device's offset, which is drawn alike in both: what bounds
        the distribution of each offset bounds the mixture. So both histories, rounded, have to be
        of one pattern for every offset; see `DailyAnswer.epsilon_of_histories`.
        """
        both = np.concatenate(as_histories(first, second))
        return max(
            self._epsilon_of_rounded(*np.split(rounded, 2)) for _, rounded in self.roundings(both)
        )

    def _epsilon_of_rounded(self, first: Classes, second: Classes) -> float:
        if np.array_equal(first, second):
            return 0.0
        if not same_pattern(first, second):
            return math.inf
        return self.epsilon_of_same_pattern(np.unique(first).size)


def log_of_days(ones: Classes, zeros: Classes, chance: float) -> Floats:
    """Return the log-probability of so many ones and zeros in order; 0 to the power 0 is 1."""
    if 0 < chance < 1:
        return np.asarray(ones * math.log(chance) + zeros * math.log1p(-chance), dtype=np.float64)
    return np.asarray(special.xlogy(ones, chance) + special.xlog1py(zeros, -chance))
