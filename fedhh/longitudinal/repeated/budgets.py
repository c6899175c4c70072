"""Which devices a run asks, by the rounds that their caps have left; never by what they hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedhh.arrays import Ints
from fedhh.longitudinal.ledger.cap import Cap
from fedhh.random import Stream, generator


@dataclass(frozen=True, kw_only=True, eq=False)
class Asking:
    """Whom a run may ask, and whom it asks.

    Attributes:
        with_budget: How many devices are there whose cap leaves them enough rounds.
        wanted: How many the run would ask if all had enough left.
        asked: ``(m,) int64``, ascending: positions, among those that are there, of the devices
            that it asks; all with budget where those are fewer than wanted.
    """

    with_budget: int
    wanted: int
    asked: Ints


class DeviceBudgets:
    """The balances of all devices under one cap, period by period.

    A device's first session begins on the day on which it arrives, so that what `Cap` says of any
    days in a row holds for each device.
    """

    def __init__(
        self, cap: Cap, *, arrivals: Ints, every_days: int, cost: int, num_periods: int
    ) -> None:
        """Start before day 0.

        Args:
            cap: How many rounds a device may answer.
            arrivals: ``(devices,) int64``: each device's first period.
            every_days: Days of a period.
            cost: Rounds that a device answers in one run.
            num_periods: Periods in all.
        """
        self._cap, self._arrivals = cap, arrivals
        self._every_days, self._cost = every_days, cost
        self._num_periods = num_periods
        self._balance = np.zeros(len(arrivals), dtype=np.int64)
        self._sent = np.zeros(len(arrivals), dtype=np.int64)
        self._next = 0

    @property
    def sent(self) -> Ints:
        """``(devices,) int64``: rounds that each device has answered so far."""
        return self._sent

    @property
    def even_share(self) -> float:
        """Share of the devices that a run may ask so that each period can ask as many."""
        per_run = self._cap.amount * self._every_days / self._cap.session_days / self._cost
        if self._cap.lifetime is not None:
            per_run = min(per_run, self._cap.lifetime / self._num_periods / self._cost)
        return min(1.0, per_run)

    def choose(self, devices: Ints, *, period: int, seed: int, most: int | None) -> Asking:
        """Renew balances, and choose at random among the devices that have enough left.

        Args:
            devices: ``(n,) int64``: those that are there.
            period: The next one; every period once, in order.
            seed: The run's seed. The same devices with budget give the same choice under any
                protocol.
            most: How many to ask; None for an even share.

        Raises:
            ValueError: The period is not the next one.
        """
        if period != self._next:
            raise ValueError(f"Expected period {self._next}, got {period}.")
        self._next += 1
        self._renew(period)
        allowed = self._cap.allowed(self._balance[devices], self._sent[devices])
        able = np.flatnonzero(allowed >= self._cost)
        wanted = int(self.even_share * len(devices) + 1e-9) if most is None else most
        rng = generator(seed, Stream.QUEUE, period)
        # One order for all devices that there ever are, so that arms can be compared in pairs.
        order = rng.permutation(len(self._arrivals))
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        chosen = able[np.argsort(place[devices[able]])[: max(wanted, 0)]]
        return Asking(with_budget=len(able), wanted=wanted, asked=np.sort(chosen))

    def charge(self, devices: Ints) -> None:
        """Take the rounds of one run from devices, distinct numbers."""
        self._balance[devices] -= self._cost
        self._sent[devices] += self._cost

    def _renew(self, period: int) -> None:
        # A run asks on the first day of a period; what is renewed later waits for the next one.
        ages = (period - self._arrivals) * self._every_days
        for back in range(self._every_days - 1, -1, -1):
            age = ages - back
            due = (age >= 0) & (age % self._cap.session_days == 0)
            self._balance[due] = self._cap.renewed(self._balance[due], 0)
