"""A cap on the records that a device sends of one use case, over sessions of some days."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedhh.validation import InputError, require_at_least

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Cap:
    """How many records of a use case a device may send.

    Time is cut into sessions of ``session_days`` days, the first from day 0. At the start of each
    session a device's balance rises by ``amount``; of what it had left, at most ``rollover`` is
    kept. A record that is sent costs 1. Nothing depends on what the records say.

    Attributes:
        amount: Records per session, at least 1.
        session_days: Days of a session, at least 1.
        rollover: Most unused records that a session inherits; None for no limit.
        lifetime: Most records that a device ever sends; None for no limit.
    """

    amount: int
    session_days: int = 1
    rollover: int | None = 0
    lifetime: int | None = None

    def __post_init__(self) -> None:
        require_at_least(1, amount=self.amount, session_days=self.session_days)
        if self.rollover is not None:
            require_at_least(0, rollover=self.rollover)
        if self.lifetime is not None:
            require_at_least(1, lifetime=self.lifetime)

    def renewed(self, balance: Numbers, day: int) -> Numbers:
        """Return devices' balances at the start of a day, given what they had left.

        Args:
            balance: ``(n,) int64``, at least 0; zeros before day 0.
            day: From 0, every day once.
        """
        require_at_least(0, day=day)
        if day % self.session_days:
            return balance
        kept = balance if self.rollover is None else np.minimum(balance, self.rollover)
        return np.asarray(kept + self.amount, dtype=np.int64)

    def allowed(self, balance: Numbers, sent: Numbers) -> Numbers:
        """Return how many records devices may send now.

        Args:
            balance: ``(n,) int64`` of today.
            sent: ``(n,) int64``: records that they have sent in their life.
        """
        if self.lifetime is None:
            return balance
        return np.asarray(np.minimum(balance, self.lifetime - sent), dtype=np.int64)

    def most_in(self, first_day: int, num_days: int = 1) -> int:
        """Return the most records that a device can send in some days, whatever happened before.

        Args:
            first_day: Since the device's opt-in, from 0.
            num_days: How many days, at least 1.

        Raises:
            InputError: first_day < 0 or num_days < 1.
        """
        require_at_least(0, first_day=first_day)
        require_at_least(1, num_days=num_days)
        before = first_day // self.session_days
        renewals = (first_day + num_days - 1) // self.session_days - before
        # A device that saved up: the balance on the first day, then a whole session's each time.
        saved = before * self.amount
        if self.rollover is not None:
            saved = min(saved, self.rollover)
        most = saved + self.amount * (1 + renewals)
        return most if self.lifetime is None else min(most, self.lifetime)

    def most_in_any(self, num_days: int, *, of_days: int) -> int:
        """Return the most records in any ``num_days`` days in a row out of a device's life.

        Args:
            num_days: Days in a row, at least 1.
            of_days: Days of its life, at least ``num_days``.

        Raises:
            InputError: The window is longer than the life.
        """
        require_at_least(1, num_days=num_days)
        if of_days < num_days:
            raise InputError(
                f"Expected num_days <= of_days={of_days}, got num_days={num_days}; a window lies "
                "within a life."
            )
        last = of_days - num_days
        # The balance grows with time, and within a session what a window spans only grows.
        starts = range(max(0, last - self.session_days + 1), last + 1)
        return max(self.most_in(first, num_days) for first in starts)
