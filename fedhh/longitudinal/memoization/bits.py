"""Bits that a device remembers: a permanent response to each value, and one drawn from it daily.

All of a device's reports can be linked to it: guarantees hold against an observer who links them.
Delta is 0. Neighbors are named with each number.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from fedhh.arrays import Floats, UInts
from fedhh.random import GOLDEN, scatter
from fedhh.validation import InputError, require_at_least

Bits = npt.NDArray[np.bool_]
Classes = npt.NDArray[np.int64]
Public = npt.NDArray[np.int64]
Values = npt.NDArray[Any]

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


@dataclass(frozen=True, eq=False)
class Memory:
    """What devices draw once and keep.

    A device's permanent responses are a pseudo-random function of its key and of the value: a
    table that is filled where it is looked up, in 8 bytes whatever the number of values.

    Attributes:
        public: ``(n, w) int64``: what each of a device's reports shows of the device itself, such
            as its cohort. Drawn independently of all values.
        offsets: ``(n,) float64`` in [0, 1): each device's secret alpha of alpha-point rounding, in
            steps; zeros where nothing is rounded.
        keys: ``(n,) uint64``: secret; they decide the permanent responses.
    """

    public: Public
    offsets: Floats
    keys: UInts

    @property
    def num_devices(self) -> int:
        return len(self.keys)

    def rows(self, start: int, stop: int) -> Memory:
        """Return what the devices from ``start`` to ``stop`` keep."""
        part = slice(start, stop)
        return Memory(self.public[part], self.offsets[part], self.keys[part])

    def with_new_keys(self, *, rng: np.random.Generator) -> Memory:
        """Return the same devices, their permanent responses drawn again.

        This is what a memoized answer must never do: `MemoizedBits.epsilon_forever` is lost.
        """
        return replace(self, keys=_draw_keys(self.num_devices, rng=rng))


@dataclass(frozen=True, kw_only=True, eq=False)
class MemoizedBits:
    """Bits with a permanent response for each value, and a daily response to that.

    The permanent response to a value is b independent bits, drawn once per device and value; a
    day's report shows each of today's value: a 1 with chance `daily_one` if the permanent bit is
    1, `daily_zero` if it is 0, independently every day. A report is ``(b,) bool``.

    Attributes:
        pairs: All bits of a report, under the two values that are easiest to distinguish.
        daily_one: Chance that a permanent 1 is sent as 1.
        daily_zero: Chance that a permanent 0 is sent as 1, below `daily_one`.
        chances: Returns ``(n, b)`` each permanent bit's chance to be 1, by what is public of
            devices and ``(n,)`` values.
        draw_public: Returns ``(n, w) int64``: what reports show of n devices themselves.
        public_bits: Bits of that, which link reports whatever is said.
        lowest: The least value.
        most: The largest value; with ``step``, of grid points.
        step: If given, values are numbers in [0, ``most * step``], rounded to a grid point by the
            device's alpha.
        of_pattern: What `epsilon_of_same_pattern` is, if not as many times `epsilon_forever`.
    """

    pairs: tuple[BitPair, ...]
    daily_one: float
    daily_zero: float
    chances: Callable[[Public, Classes], Floats]
    draw_public: Callable[[int, np.random.Generator], Public]
    public_bits: float = 0.0
    lowest: int = 0
    most: float = math.inf
    step: float | None = None
    of_pattern: Callable[[int], float] | None = None

    @property
    def num_bits(self) -> int:
        """b, the bits of a report."""
        return sum(pair.times for pair in self.pairs)

    def rounded(self, values: npt.ArrayLike) -> tuple[Classes, Floats]:
        """Return ``(t,)`` values as they are memoized for offset 0, and ``(t,)`` thresholds.

        From that offset on the next grid point is; a threshold is at least 1 if it never is. With
        offset a, uniform in [0, 1), x = (l + r) step is rounded up where a >= 1 - r: with chance r,
        so that the mean is x exactly. For whole numbers and a whole step this is the distribution
        of Ding et al. (2017), section 3: up where x + alpha reaches the next grid point, alpha
        uniform among 0 .. step - 1.
        """
        numbers = np.asarray(values)
        size = self.step or 1
        inside = (numbers >= self.lowest) & (numbers <= self.most * size)
        if numbers.ndim != 1 or not inside.all():
            got = f"{numbers.min():g} to {numbers.max():g}" if numbers.size else str(numbers.shape)
            raise InputError(
                f"Expected values as one axis of numbers in [{self.lowest}, {self.most * size:g}], "
                f"got {got}."
            )
        places = numbers / size
        below = np.floor(places)
        if self.step is None and (below != places).any():
            raise InputError("Expected values as whole numbers.")
        return below.astype(np.int64), np.asarray(1 - (places - below), dtype=np.float64)

    def roundings(self, values: npt.ArrayLike) -> Iterator[tuple[float, Classes]]:
        """Yield each way in which ``(t,)`` values are rounded, with its chance over offsets."""
        rounded, threshold = self.rounded(values)
        cuts = np.unique(np.r_[0.0, 1.0, threshold[threshold < 1]]).tolist()
        for low, high in itertools.pairwise(cuts):
            yield high - low, rounded + (low >= threshold)

    def begin(self, num_devices: int, *, rng: np.random.Generator) -> Memory:
        """Return what devices draw once, at opt-in, from `fedhh.random.Stream.MEMOIZATION`."""
        require_at_least(0, num_devices=num_devices)
        public = self.draw_public(num_devices, rng)
        offsets = np.zeros(num_devices) if self.step is None else rng.random(num_devices)
        return Memory(public, offsets, _draw_keys(num_devices, rng=rng))

    def permanent(self, memory: Memory, values: npt.ArrayLike) -> Bits:
        """Return ``(n, b) bool``: the permanent responses to ``(n,)`` values, never sent as such.

        The same memory and value give the same bits.
        """
        numbers = np.asarray(values)
        if numbers.shape != (memory.num_devices,):
            raise InputError(
                f"Expected one value for each of {memory.num_devices} devices, got shape "
                f"{numbers.shape}."
            )
        rounded, threshold = self.rounded(numbers)
        rounded = rounded + (memory.offsets >= threshold)
        starts = scatter(memory.keys ^ scatter(rounded.astype(np.uint64) + GOLDEN))
        places = np.arange(1, self.num_bits + 1, dtype=np.uint64) * GOLDEN
        coins = (scatter(starts[:, None] + places) >> np.uint64(11)) * _TO_UNIT
        return np.asarray(coins < self.chances(memory.public, rounded))

    def answer(self, memory: Memory, values: npt.ArrayLike, *, rng: np.random.Generator) -> Bits:
        """Return a day's ``(n, b) bool`` reports for ``(n,)`` values (run by the device)."""
        numbers = np.asarray(values)
        reports = np.empty((memory.num_devices, self.num_bits), dtype=np.bool_)
        step = max(1, _BITS_AT_ONCE // self.num_bits)
        for start in range(0, memory.num_devices, step):
            part = slice(start, start + step)
            held = self.permanent(memory.rows(start, start + step), numbers[part])
            if self.daily_zero > 0 or self.daily_one < 1:
                coins = rng.random(held.shape)
                held = coins < np.where(held, self.daily_one, self.daily_zero)
            reports[part] = held
        return reports

    def log_prob(self, reports: Bits, values: npt.ArrayLike, public: Public) -> Floats:
        """Return ``(n,)``: the exact log-probability of all of a device's reports.

        Secret offsets are summed over: between the thresholds of t values, rounding is the same.

        Args:
            reports: ``(n, t, b)``: of each device, its reports on t days.
            values: ``(t,)``: the values that it had on these days.
            public: ``(n, w) int64`` of the devices, `Memory.public`.
        """
        days = np.asarray(values)
        if days.shape != (reports.shape[1],):
            raise InputError(
                f"Expected one value for each of {reports.shape[1]} days of reports, got shape "
                f"{days.shape}."
            )
        parts = [
            math.log(chance) + self._log_prob_of(reports, rounded, public)
            for chance, rounded in self.roundings(days)
        ]
        return np.asarray(special.logsumexp(parts, axis=0))

    def _log_prob_of(self, reports: Bits, rounded: Classes, public: Public) -> Floats:
        total = np.zeros(len(reports))
        for each in np.unique(rounded):
            days = rounded == each
            ones = reports[:, days].sum(axis=1)
            zeros = int(days.sum()) - ones
            chance = self.chances(public, np.full(len(public), each))
            with np.errstate(divide="ignore"):
                one = np.log(chance) + log_of_days(ones, zeros, self.daily_one)
                zero = np.log1p(-chance) + log_of_days(ones, zeros, self.daily_zero)
            total += np.logaddexp(one, zero).sum(axis=1)
        return total

    def epsilon_after(self, days: int) -> float:
        """Return the exact privacy of a value that never changes, given ``days`` reports.

        Unit: all reports of a device over these days. Neighbors: always one value, always another.
        Bits are independent, and a bit's likelihood ratio is monotone in the number of ones: it is
        largest where all its reports are equal.
        """
        require_at_least(1, days=days)
        return sum(
            pair.times
            * max(self._loss_of_equal_reports(pair, days, ones) for ones in (True, False))
            for pair in self.pairs
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
    def epsilon_first(self) -> float:
        """Local privacy of the value that one report is about."""
        return self.epsilon_after(1)

    @property
    def epsilon_forever(self) -> float:
        """Privacy of the permanent response: what bounds `epsilon_after` for all days."""
        return sum(pair.times * pair.epsilon for pair in self.pairs)

    @property
    def change_shows(self) -> float:
        """Probability that a change between the two values changes the permanent response."""
        return 1 - math.prod(
            (first * second + (1 - first) * (1 - second)) ** times
            for first, second, times in self.pairs
        )

    def epsilon_of_same_pattern(self, width: int) -> float:
        """Return what bounds all reports of two histories of one pattern.

        Unit: user, all reports. Neighbors: two sequences of *rounded* values with at most ``width``
        distinct ones, that repeat and differ on the same days; permanent responses are independent.
        Sequences of other patterns are not covered: when a value changes is not hidden.
        """
        require_at_least(1, width=width)
        return width * self.epsilon_forever if self.of_pattern is None else self.of_pattern(width)

    def epsilon_of_histories(self, first: npt.ArrayLike, second: npt.ArrayLike) -> float:
        """Return what bounds all reports of two histories of ``(t,)`` values; perhaps math.inf.

        Reports are a mixture over the device's offset, which is drawn alike in both: what bounds
        the distribution of each offset bounds the mixture. So both histories, rounded, have to be
        of one pattern for every offset.
        """
        both = np.concatenate(as_histories(first, second))
        return max(self._epsilon_of(*np.split(each, 2)) for _, each in self.roundings(both))

    def _epsilon_of(self, first: Classes, second: Classes) -> float:
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


def same_pattern(first: Values, second: Values) -> bool:
    """Return whether ``(t,)`` values of two histories repeat and differ on the same days."""

    def first_days(history: Values) -> npt.NDArray[np.intp]:
        _, firsts, numbers = np.unique(history, return_index=True, return_inverse=True)
        return np.asarray(firsts[numbers.ravel()])

    return bool(np.array_equal(first_days(first), first_days(second)))


def as_histories(first: npt.ArrayLike, second: npt.ArrayLike) -> tuple[Values, Values]:
    """Return ``(t,)`` values of two histories; InputError unless of as many days, at least one."""
    one, other = np.asarray(first), np.asarray(second)
    if one.shape != other.shape or one.ndim != 1 or not one.size:
        raise InputError(
            f"Expected two histories of one length, at least one day, got shapes {one.shape} and "
            f"{other.shape}."
        )
    return one, other


def _draw_keys(num_devices: int, *, rng: np.random.Generator) -> UInts:
    return rng.integers(0, 2**64, size=num_devices, dtype=np.uint64)
