"""The interface of what a device answers day after day, and fresh noise to compare it with."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.oracles.base import FrequencyOracle, as_numbers
from fedhh.validation import InputError, require_at_least

Floats = npt.NDArray[np.float64]
Public = npt.NDArray[np.int64]
Reports = npt.NDArray[Any]
Values = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class MemoizedState:
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
    keys: npt.NDArray[np.uint64]

    @property
    def num_devices(self) -> int:
        return len(self.keys)

    def rows(self, start: int, stop: int) -> MemoizedState:
        """Return what the devices from ``start`` to ``stop`` keep."""
        part = slice(start, stop)
        return MemoizedState(self.public[part], self.offsets[part], self.keys[part])

    def with_new_keys(self, *, rng: np.random.Generator) -> MemoizedState:
        """Return the same devices, their permanent responses drawn again.

        This is what a memoized answer must never do: `epsilon_forever` is lost.
        """
        return replace(self, keys=draw_keys(self.num_devices, rng=rng))

    def with_new_offsets(self, *, rng: np.random.Generator) -> MemoizedState:
        """Return the same devices, their alpha drawn again; this must not happen either."""
        return replace(self, offsets=rng.random(self.num_devices))

    def require_one_value_each(self, values: Values) -> None:
        """Raise InputError unless values are ``(n,)``."""
        if values.shape != (self.num_devices,):
            raise InputError(
                f"Expected one value for each of {self.num_devices} devices, got shape "
                f"{values.shape}."
            )


def draw_keys(num_devices: int, *, rng: np.random.Generator) -> npt.NDArray[np.uint64]:
    """Return ``(n,) uint64`` uniform keys."""
    return rng.integers(0, 2**64, size=num_devices, dtype=np.uint64)


class DailyAnswer(ABC):
    """A randomizer that a device applies every day, whether or not its value has changed.

    All of a device's reports can be linked to it: the guarantees hold against an observer
    who links them. Neighbors are named with each number; delta is 0.
    """

    @abstractmethod
    def begin(self, num_devices: int, *, rng: np.random.Generator) -> MemoizedState:
        """Return what devices draw once, at opt-in, from `fedhh.random.Stream.MEMOIZATION`."""

    @abstractmethod
    def answer(
        self, state: MemoizedState, values: npt.ArrayLike, *, rng: np.random.Generator
    ) -> Reports:
        """Return a day's reports for ``(n,)`` values, first axis n (run by the device).

        The state, which `begin` returned, is not changed.
        """

    @abstractmethod
    def log_prob(self, reports: Reports, values: npt.ArrayLike, public: Public) -> Floats:
        """Return the exact log-probability of all of a device's reports, given what is public.

        Args:
            reports: ``(n, t, ...)``: of each device, its reports on t days.
            values: ``(t,)``: the values that it had on these days.
            public: ``(n, w) int64`` of the devices, `MemoizedState.public`.

        Returns:
            ``(n,) float64``, over everything that the device draws.
        """

    @property
    def public_bits(self) -> float:
        """Bits of what every report shows of its device, which link them whatever is said."""
        return 0.0

    @abstractmethod
    def estimate(self, reports: Reports, public: Public) -> Floats:
        """Return the server's unbiased estimate from one day's reports; see the subclass."""

    @abstractmethod
    def epsilon_after(self, days: int) -> float:
        """Return the exact privacy of a value that never changes, given ``days`` reports.

        Unit: all reports of a device over these days. Neighbors: always one value, always another.
        Attained by the values farthest apart.
        """

    @property
    def epsilon_first(self) -> float:
        """Local privacy of the value that one report is about."""
        return self.epsilon_after(1)

    @property
    @abstractmethod
    def epsilon_forever(self) -> float:
        """What bounds `epsilon_after` for any number of days; math.inf if nothing does."""

    @abstractmethod
    def epsilon_of_same_pattern(self, width: int) -> float:
        """Return what bounds all reports of two histories of one pattern.

        Unit: user, all reports. Neighbors: two sequences of *rounded* values (grid points, buckets,
        keys: what permanent responses are drawn for) with at most ``width`` distinct ones, that
        repeat and differ on the same days. math.inf if nothing bounds that. Sequences of other
        patterns are not covered: when a value changes is not hidden by memoization. Nor are values
        that are not yet rounded, `epsilon_of_histories`.
        """

    def epsilon_of_histories(self, first: npt.ArrayLike, second: npt.ArrayLike) -> float:
        """Return what bounds all reports of two histories of ``(t,)`` values, as devices have them.

        Finite only if the values that are memoized repeat and differ on the same days in both,
        whatever devices draw.
        """
        one, other = as_histories(first, second)
        if not same_pattern(one, other):
            return math.inf
        return self.epsilon_of_same_pattern(np.unique(one).size)


@dataclass(frozen=True, kw_only=True)
class FreshAnswer(DailyAnswer):
    """Any frequency oracle, asked again every day: nothing is remembered, and losses add up.

    Formal guarantees:
        * t reports: t epsilon, whatever the values do (basic composition), attained wherever the
          oracle attains its epsilon.
        * That a value changed on a day: epsilon, if nothing else differs.

    Attributes:
        oracle: What randomizes each report.
    """

    oracle: FrequencyOracle

    def begin(self, num_devices: int, *, rng: np.random.Generator) -> MemoizedState:
        require_at_least(0, num_devices=num_devices)
        return MemoizedState(
            np.empty((num_devices, 0), dtype=np.int64),
            np.zeros(num_devices),
            np.zeros(num_devices, dtype=np.uint64),
        )

    def answer(
        self, state: MemoizedState, values: npt.ArrayLike, *, rng: np.random.Generator
    ) -> Reports:
        return self.oracle.privatize(as_numbers(values), rng=rng)

    def log_prob(self, reports: Reports, values: npt.ArrayLike, public: Public) -> Floats:
        total = np.zeros(len(reports))
        for day, value in enumerate(as_numbers(as_days(values, reports.shape[1])).tolist()):
            total += self.oracle.log_prob(reports[:, day], value)
        return total

    def estimate(self, reports: Reports, public: Public) -> Floats:
        """Return the oracle's ``(s,) float64`` estimates of all values' counts."""
        return self.oracle.estimate(self.oracle.support(reports=reports), len(reports))

    def epsilon_after(self, days: int) -> float:
        require_at_least(1, days=days)
        return days * self.oracle.epsilon

    @property
    def epsilon_forever(self) -> float:
        return math.inf

    def epsilon_of_same_pattern(self, width: int) -> float:
        require_at_least(1, width=width)
        return math.inf


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


def as_days(values: npt.ArrayLike, days: int) -> Values:
    """Return the ``(t,)`` values of a history with so many days of reports, or raise InputError."""
    array = np.asarray(values)
    if array.shape != (days,):
        raise InputError(
            f"Expected one value for each of {days} days of reports, got shape {array.shape}."
        )
    return array
