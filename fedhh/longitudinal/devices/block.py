"""The devices of a block in one use case, from day to day.

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

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedhh.kernels.device_days import count_events, draw_day, values_of
from fedhh.longitudinal.devices.model import DeviceModel
from fedhh.random import Stream, generator, kernel_state

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class SentToday:
    """What a block's devices send on a day; their values are for the device and the simulator.

    Attributes:
        values: ``(r,) int64``: values of the events whose records are sent, device by device.
        by_device: ``(n,) int64``: records that each device sends.
        dropped: Records that had waited too long.
        rng: The stream of the queue, for what else sending draws.
    """

    values: Numbers
    by_device: Numbers
    dropped: int
    rng: np.random.Generator


class DeviceBlock:
    """Devices of one block and one use case, on the morning of ``next_day``."""

    def __init__(self, model: DeviceModel, use_case: int, block: int, size: int, seed: int) -> None:
        self._use_case, self._block, self._seed = use_case, block, seed
        self._law = model.use_cases[use_case].events.values
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

    def live(self) -> SentToday:
        """Let a day happen: events, then one sending."""
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
            values=values_of(self._keys[ages], numbers, self._law),
            by_device=sent,
            dropped=dropped,
            rng=queue,
        )

    def count_events(self, counts: Numbers) -> None:
        """Add the last day's events to ``(2, p) int64``: of all devices, of those opted in."""
        count_events(self._keys[0], self._firsts[0], self._is_in, self._law, counts)

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
