"""Devices, from day to day: who takes part, what happens, how long records wait, what is sent.

A device privatizes an event at once, stores the record, and later sends a sample of what it has
stored (Apple 2017, section 3.2.1). Each event is privatized with coins of its own, and which
records are sent depends on how many there are, never on what they say. So the records that are sent
have the same distribution, jointly with the histograms of all events, if only these are privatized,
when they are sent; the others are never made. That is what is done here; the tests hold it against
devices that do it literally. Two records of one device and day may change places for the same
reason, so a number of records by day is all that a queue has to hold.

What a block draws is addressed by use case, day and block. Its state is a cache: whoever lacks it
lets the days before happen again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from fedhh.arrays import Bools, Floats, Ints
from fedhh.kernels.device_days import (
    ValueDistribution,
    count_events,
    draw_day,
    value_distribution,
    values_of,
)
from fedhh.longitudinal.ledger.cap import Cap
from fedhh.longitudinal.records import RecordForm
from fedhh.random import Stream, generator, kernel_state
from fedhh.validation import InputError, require_at_least, require_between, require_choice

DELAYS = ("fixed", "geometric")
_HOURS = 24
_EVERYBODY = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class EventDistribution:
    """How often something happens on a device, and what it is about.

    A device's number of events in a day is Poisson with a mean of its own; that mean is the same
    every day, and over devices it has a gamma distribution. What events are about is drawn from one
    distribution for all devices, independently. So heavy devices differ in how much they say, not
    in what: a cap then costs records and adds no bias, which it would where the two go together.

    Attributes:
        mean: Events of a device in a day, in expectation over devices.
        spread: Standard deviation over devices of a device's own mean, in units of ``mean``.
        weights: ``(p,) float64``: of the values.
        words: The values' names, for records of words; None where they are numbers.
    """

    mean: float
    spread: float
    weights: Floats
    words: Sequence[str] | None = None

    def __post_init__(self) -> None:
        require_between(1e-6, 1e4, mean=self.mean)
        require_between(0, 100, spread=self.spread)
        if self.words is not None and len(self.words) != len(self.weights):
            raise InputError(
                f"Expected a weight per word, got {len(self.weights)} for {len(self.words)} words."
            )

    @cached_property
    def values(self) -> ValueDistribution:
        return value_distribution(self.weights)

    def draw_rates(self, size: int, rng: np.random.Generator) -> Floats:
        """Return ``(size,) float64``: each device's mean."""
        if not self.spread:
            return np.full(size, self.mean)
        shape = self.spread**-2
        return np.asarray(rng.gamma(shape, self.mean / shape, size=size))


@dataclass(frozen=True, kw_only=True)
class Delay:
    """How long a record waits on its device until it may be sent; devices send once a day.

    "fixed": an event happens at a uniform time of its day, and its record may be sent in the first
    sending, at the end of a day, that comes ``hours`` later. "geometric": each sending finds it
    ready with the same chance, so that the mean wait is ``hours``. The source states neither:
    "after a delay based on device conditions" (Apple 2017, section 3.2.1).

    Attributes:
        distribution: "fixed" or "geometric".
        hours: At least 0.
    """

    distribution: Literal["fixed", "geometric"] = "fixed"
    hours: float = 12.0

    def __post_init__(self) -> None:
        require_choice(DELAYS, distribution=self.distribution)
        require_between(0, 24 * 365, hours=self.hours)

    def ready_chances(self, ages: int) -> Floats:
        """Return ``(ages,) float64``: chance that a record, so many days old, gets ready."""
        if self.distribution == "geometric":
            return np.full(ages, 1 / (1 + self.hours / _HOURS))
        whole, part = divmod(self.hours / _HOURS, 1)
        chances = (np.arange(ages) > whole).astype(np.float64)
        if whole < ages:
            chances[int(whole)] = 1 - part
        return chances


@dataclass(frozen=True, kw_only=True, eq=False)
class DeviceUseCase:
    """One use case as devices know it: how an event becomes a record, the cap, what happens."""

    name: str
    form: RecordForm
    cap: Cap
    events: EventDistribution


@dataclass(frozen=True, kw_only=True, eq=False)
class DeviceModel:
    """All devices.

    Attributes:
        num_devices: How many.
        opt_in: Chance that a device takes part; for the others "the system remains inactive"
            (Apple 2017, section 3.2.1).
        delay: How long records wait.
        store_days: A record that was not sent so many days after its event is dropped.
        use_cases: What is collected.
    """

    num_devices: int
    opt_in: float
    delay: Delay
    store_days: int
    use_cases: tuple[DeviceUseCase, ...]

    def __post_init__(self) -> None:
        require_at_least(1, num_devices=self.num_devices, store_days=self.store_days)
        require_between(0, 1, opt_in=self.opt_in)

    def is_in(self, block: int, size: int, *, seed: int) -> Bools:
        """Return ``(size,) bool``: which devices of a block have opted in, for all use cases."""
        rng = generator(seed, Stream.POPULATION, _EVERYBODY, block)
        return np.asarray(rng.random(size) < self.opt_in)

    def rates(self, use_case: int, block: int, size: int, *, seed: int) -> Floats:
        """Return ``(size,) float64``: expected events in a day of a block's devices."""
        rng = generator(seed, Stream.POPULATION, 1 + use_case, block)
        return self.use_cases[use_case].events.draw_rates(size, rng)


@dataclass(frozen=True, kw_only=True, eq=False)
class SentToday:
    """What a block's devices send on a day; their values are for the device and the simulator.

    Attributes:
        values: ``(r,) int64``: values of the events whose records are sent, device by device.
        by_device: ``(n,) int64``: records that each device sends.
        dropped: Records that had waited too long.
        rng: The stream of the queue, for what else sending draws.
    """

    values: Ints
    by_device: Ints
    dropped: int
    rng: np.random.Generator


class DeviceBlock:
    """Devices of one block and one use case, on the morning of ``next_day``."""

    def __init__(self, model: DeviceModel, use_case: int, block: int, size: int, seed: int) -> None:
        self._use_case, self._block, self._seed = use_case, block, seed
        self._distribution = model.use_cases[use_case].events.values
        self._cap = model.use_cases[use_case].cap
        self._rates = model.rates(use_case, block, size, seed=seed)
        self._is_in = model.is_in(block, size, seed=seed)
        ages = model.store_days + 1
        self._chances = model.delay.ready_chances(ages)
        self._held, self._ready, self._taken = (
            np.zeros((size, ages), dtype=np.int32) for _ in range(3)
        )
        self._firsts = np.zeros((ages, size + 1), dtype=np.int64)
        self._keys = np.zeros(ages, dtype=np.uint64)
        self._balance = np.zeros(size, dtype=np.int64)
        self._lifetime = np.zeros(size, dtype=np.int64)
        self.next_day = 0

    def simulate(self) -> SentToday:
        """Simulate a day: events, then one sending."""
        day = self.next_day
        events = generator(self._seed, Stream.EVENTS, self._use_case, day, self._block)
        queue = generator(self._seed, Stream.QUEUE, self._use_case, day, self._block)
        dropped = self._grow_older()
        self._keys[0] = events.integers(2**64, dtype=np.uint64)
        self._balance = self._cap.renewed(self._balance, day)
        sent = np.empty(len(self._rates), dtype=np.int64)
        picks = draw_day(
            self._rates,
            self._is_in,
            self._cap.allowed(self._balance, self._lifetime),
            self._chances,
            self._firsts[0],
            self._held,
            self._ready,
            self._taken,
            sent,
            kernel_state(events),
            kernel_state(queue),
        )
        self._balance -= sent
        self._lifetime += sent
        ages = picks[:, 0]
        devices = np.repeat(np.arange(len(sent)), sent)
        numbers = self._firsts[ages, devices] + picks[:, 1]
        self.next_day = day + 1
        return SentToday(
            values=values_of(self._keys[ages], numbers, self._distribution),
            by_device=sent,
            dropped=dropped,
            rng=queue,
        )

    def count_events(self, counts: Ints) -> None:
        """Add the last day's events to ``(2, p) int64``: of all devices, of those opted in."""
        count_events(self._keys[0], self._firsts[0], self._is_in, self._distribution, counts)

    @property
    def waiting(self) -> int:
        """Records on the devices, after the last day's sending."""
        return int(self._held.sum(dtype=np.int64) + self._ready.sum(dtype=np.int64))

    def _grow_older(self) -> int:
        """Make all records a day older, and return how many are too old now."""
        dropped = int(self._held[:, -1].sum() + self._ready[:, -1].sum())
        for counts in (self._held, self._ready, self._taken):
            counts[:, 1:] = counts[:, :-1].copy()
            counts[:, 0] = 0
        self._firsts = np.roll(self._firsts, 1, axis=0)
        self._keys = np.roll(self._keys, 1)
        return dropped
