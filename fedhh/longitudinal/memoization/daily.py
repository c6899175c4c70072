"""The interface of what a device answers day after day, and what it keeps for that."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.validation import InputError

Floats = npt.NDArray[np.float64]
Public = npt.NDArray[np.int64]
Reports = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Memo:
    """What devices draw once and keep for life.

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

    def rows(self, start: int, stop: int) -> Memo:
        """Return what the devices from ``start`` to ``stop`` keep."""
        part = slice(start, stop)
        return Memo(self.public[part], self.offsets[part], self.keys[part])

    def with_new_keys(self, *, rng: np.random.Generator) -> Memo:
        """Return the same devices, their permanent responses drawn again.

        This is what a memoised answer must never do: `epsilon_forever` is lost.
        """
        return replace(self, keys=draw_keys(self.num_devices, rng=rng))

    def with_new_offsets(self, *, rng: np.random.Generator) -> Memo:
        """Return the same devices, their alpha drawn again; this must not happen either."""
        return replace(self, offsets=rng.random(self.num_devices))


def draw_keys(num_devices: int, *, rng: np.random.Generator) -> npt.NDArray[np.uint64]:
    """Return ``(n,) uint64`` uniform keys."""
    return rng.integers(0, 2**64, size=num_devices, dtype=np.uint64)


class DailyAnswer(ABC):
    """A randomizer that a device applies every day, whether or not its value has changed.

    All of a device's reports can be told to be its own: the guarantees hold against an observer
    who links them. Neighbors are named with each number.
    """

    @abstractmethod
    def begin(self, num_devices: int, *, rng: np.random.Generator) -> Memo:
        """Return what devices draw once (run by the device when it opts in).

        Args:
            num_devices: At least 0.
            rng: Source of it, `fedhh.random.Stream.MEMO`.
        """

    @abstractmethod
    def answer(self, memo: Memo, values: npt.ArrayLike, *, rng: np.random.Generator) -> Reports:
        """Return a day's reports, one per device (run by the device).

        Args:
            memo: What `begin` returned; it is not changed.
            values: ``(n,)`` today's values.
            rng: Source of the day's coins.

        Returns:
            First axis n; the other axes are the answer's own.
        """

    @abstractmethod
    def log_prob(self, reports: Reports, values: npt.ArrayLike, public: Public) -> Floats:
        """Return the log-probability of all of a device's reports, over everything it draws.

        Given what is public of the device. Exact.

        Args:
            reports: ``(n, t, ...)``: of each device, its reports on t days.
            values: ``(t,)``: the values that it had on these days.
            public: ``(n, w) int64`` of the devices, `Memo.public`.

        Returns:
            ``(n,) float64``.
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
        Attained by the values farthest apart; delta 0.
        """

    @property
    def epsilon_first(self) -> float:
        """Local privacy of the value that one report is about; delta 0."""
        return self.epsilon_after(1)

    @property
    @abstractmethod
    def epsilon_forever(self) -> float:
        """What bounds `epsilon_after` for any number of days; math.inf if nothing does."""

    @abstractmethod
    def epsilon_of_same_pattern(self, width: int) -> float:
        """Return what bounds all reports of two lives of one pattern; delta 0.

        Unit: user, all reports of its life. Neighbors: two sequences of *rounded* values (grid
        points, buckets, keys: what permanent responses are drawn for) with at most ``width``
        distinct ones, that repeat and differ on the same days. math.inf if nothing bounds that.
        Sequences of other patterns are not covered: when a value changes is not hidden by
        memoising. Nor are values that are not yet rounded, `epsilon_of_lives`.
        """

    def epsilon_of_lives(self, first: npt.ArrayLike, second: npt.ArrayLike) -> float:
        """Return what bounds all reports of two lives, as devices have them; delta 0.

        Finite only if the values that are memoised repeat and differ on the same days in both
        lives, whatever devices draw.

        Args:
            first: ``(t,)`` values of one life.
            second: ``(t,)`` values of the other.
        """
        lives = [as_life(values) for values in (first, second)]
        require_one_length(*lives)
        if not same_pattern(*lives):
            return math.inf
        return self.epsilon_of_same_pattern(np.unique(lives[0]).size)


def pattern(life: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Return ``(t,)``: for each day, the first day of its value."""
    _, first_days, numbers = np.unique(life, return_index=True, return_inverse=True)
    return np.asarray(first_days[numbers.ravel()])


def same_pattern(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> bool:
    """Return whether two lives' ``(t,)`` values repeat and differ on the same days."""
    return bool(np.array_equal(pattern(first), pattern(second)))


def as_life(values: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return the ``(t,)`` values of a life of at least one day, or raise InputError."""
    array = np.asarray(values)
    if array.ndim != 1 or not array.size:
        raise InputError(f"Expected a life of at least one day, got shape {array.shape}.")
    return array


def require_one_length(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> None:
    """Raise InputError unless two lives are of one length."""
    if first.shape != second.shape:
        raise InputError(
            f"Expected two lives of one length, got shapes {first.shape} and {second.shape}."
        )


def as_days(values: npt.ArrayLike, days: int) -> npt.NDArray[Any]:
    """Return the ``(t,)`` values of a life with so many days of reports, or raise InputError."""
    array = np.asarray(values)
    if array.shape != (days,):
        raise InputError(
            f"Expected one value for each of {days} days of reports, got shape {array.shape}."
        )
    return array
