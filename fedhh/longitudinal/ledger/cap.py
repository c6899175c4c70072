"""What a record costs the device that sends it, and how many it may send."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedhh.arrays import Ints
from fedhh.validation import InputError, require_at_least, require_epsilon

DEFINITION = "definition of the randomizer"


@dataclass(frozen=True, kw_only=True)
class Charge:
    """The price of one record of a use case: local, pure, of an item.

    Attributes:
        use_case: Its name.
        epsilon: Of one record; ``math.inf`` without a randomizer. With ``once_per_value``, of all
            records about one value together (RAPPOR's epsilon_infinity).
        reports: Epsilons of the separately randomized reports of one record, if they are several:
            (2, 6) of Apple's SFP. They add up to ``epsilon``.
        records_per_event: Records made of one event, at most.
        once_per_value: Permanent responses are memoized, so a value is paid for, not a record.
        most_values: With ``once_per_value``, values that a device ever has, at most; None for no
            limit.
        theorem: Why one record is private.
    """

    use_case: str
    epsilon: float
    reports: tuple[float, ...] = ()
    records_per_event: int = 1
    once_per_value: bool = False
    most_values: int | None = None
    theorem: str = DEFINITION

    def __post_init__(self) -> None:
        if not self.use_case:
            raise InputError("Expected a name of the use case, got an empty one.")
        if self.epsilon != math.inf:
            require_epsilon(**{f"epsilon of {self.use_case}": self.epsilon})
        require_at_least(1, records_per_event=self.records_per_event)
        for epsilon in self.reports:
            require_epsilon(**{f"epsilon of a report of {self.use_case}": epsilon})
        if self.reports and not math.isclose(math.fsum(self.reports), self.epsilon):
            raise InputError(
                f"Expected reports of {self.use_case} that add up to its epsilon={self.epsilon:g}, "
                f"got {self.reports!r}."
            )
        if self.most_values is not None:
            require_at_least(1, most_values=self.most_values)
            if not self.once_per_value:
                raise InputError(
                    f"Expected most_values with once_per_value only, got most_values="
                    f"{self.most_values} for {self.use_case}."
                )

    @property
    def parts(self) -> tuple[float, ...]:
        """Epsilons whose randomized responses stand for a record in the worst case."""
        return self.reports or (self.epsilon,)

    def paid_for(self, records: int) -> int:
        """Return how many times so many records are paid for, at most."""
        return records if self.most_values is None else min(records, self.most_values)


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

    def renewed(self, balance: Ints, day: int) -> Ints:
        """Return ``(n,)`` balances at the start of a day, given what devices had left.

        Balances are zeros before day 0, and are asked for every day once.
        """
        require_at_least(0, day=day)
        if day % self.session_days:
            return balance
        kept = balance if self.rollover is None else np.minimum(balance, self.rollover)
        return np.asarray(kept + self.amount, dtype=np.int64)

    def allowed(self, balance: Ints, sent: Ints) -> Ints:
        """Return how many records devices may send now, by ``(n,)`` balances and records sent."""
        if self.lifetime is None:
            return balance
        return np.asarray(np.minimum(balance, self.lifetime - sent), dtype=np.int64)

    def most_in(self, first_day: int, num_days: int = 1) -> int:
        """Return the most records in some days after opt-in (day 0), whatever came before."""
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
        """Return the most records in any ``num_days`` days in a row of a device's ``of_days``.

        Raises:
            InputError: The window is longer than that.
        """
        require_at_least(1, num_days=num_days)
        if of_days < num_days:
            raise InputError(
                f"Expected num_days <= of_days={of_days}, got num_days={num_days}; a window lies "
                "within a device's days."
            )
        last = of_days - num_days
        # The balance grows with time, and within a session what a window spans only grows.
        starts = range(max(0, last - self.session_days + 1), last + 1)
        return max(self.most_in(first, num_days) for first in starts)
