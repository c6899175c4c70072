"""The privacy ledger of a device: its privacy loss per day and in all, before and after a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fedhh.accounting.bounds.shuffle_bound import check_delta
from fedhh.accounting.guarantees import Unit
from fedhh.arrays import Ints
from fedhh.longitudinal.ledger.cap import Cap, Charge
from fedhh.longitudinal.ledger.spending import Spending, tally
from fedhh.longitudinal.ledger.statements import LedgerReport, report_of
from fedhh.validation import InputError, did_you_mean, require_at_least

_WINDOW_NOTE = "24 hours in a row touch two days, so a device may send what both days allow."


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """What records cost, and for how many days.

    Attributes:
        charges: One for each use case, at least one, in the order of ``sent``.
        num_days: Days of a device, at least 1.
        delta: Of PLD composition, from 1e-14 to 0.1.
    """

    charges: tuple[Charge, ...]
    num_days: int
    delta: float = 1e-10

    def __post_init__(self) -> None:
        require_at_least(1, num_days=self.num_days, num_charges=len(self.charges))
        check_delta(self.delta)
        names = self.use_cases
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"Expected one charge for each use case, got several of {name!r}.")

    @property
    def use_cases(self) -> tuple[str, ...]:
        return tuple(charge.use_case for charge in self.charges)

    def before(
        self, caps: Mapping[str, Cap] | Sequence[Cap], *, num_days: int | None = None
    ) -> LedgerReport:
        """Return what holds before anything runs, whatever the device does.

        Args:
            caps: One for each use case, by name or in the order of the charges.
            num_days: Days from opt-in to opt-out; the ledger's if None.

        Raises:
            InputError: Caps and charges are not of the same use cases, or num_days is not between
                1 and the ledger's.
        """
        days = self._days(num_days)
        ordered = self._ordered(caps)
        most: dict[Unit, list[int]] = {
            "item": [1] * len(ordered),
            "event": [
                1 if charge.once_per_value else min(charge.records_per_event, cap.most_in(0, days))
                for charge, cap in zip(self.charges, ordered, strict=True)
            ],
            "day": self._most(ordered, 1, days),
            "24 hours": self._most(ordered, min(2, days), days),
            "user": self.most_in_lifetime(caps, num_days=days),
        }
        return report_of(self.charges, most, num_days=days, delta=self.delta, note=_WINDOW_NOTE)

    def most_in_lifetime(
        self, caps: Mapping[str, Cap] | Sequence[Cap], *, num_days: int | None = None
    ) -> list[int]:
        """Return the most records, or values paid for, of each use case; see `before`."""
        days = self._days(num_days)
        return self._most(self._ordered(caps), days, days)

    def spent(
        self,
        sent: Ints | Iterable[Ints],
        *,
        opt_in: Ints | None = None,
        opt_out: Ints | None = None,
    ) -> Spending:
        """Return the privacy loss of devices, given the records that they sent.

        Args:
            sent: ``(days, use_cases, devices)`` integers, at least 0, or an iterable of as many
                ``(use_cases, devices)`` as the ledger has days; each is read once. For a charge
                once per value: values answered for the first time.
            opt_in: ``(devices,) int64``: first day of each device; day 0 if None.
            opt_out: ``(devices,) int64``: first day on which it no longer takes part; never if
                None.

        Raises:
            InputError: Shapes do not fit, a number is negative, or a device sent records while it
                did not take part.
        """
        return tally(
            self.charges,
            sent,
            num_days=self.num_days,
            delta=self.delta,
            opt_in=opt_in,
            opt_out=opt_out,
        )

    def _days(self, num_days: int | None) -> int:
        days = self.num_days if num_days is None else num_days
        require_at_least(1, num_days=days)
        if days > self.num_days:
            raise InputError(
                f"Expected num_days <= {self.num_days}, the ledger's, got num_days={days}."
            )
        return days

    def _most(self, caps: Sequence[Cap], window: int, days: int) -> list[int]:
        """Return the most records, or values paid for, in any window, of each use case."""
        return [
            charge.paid_for(cap.most_in_any(window, of_days=days))
            for charge, cap in zip(self.charges, caps, strict=True)
        ]

    def _ordered(self, caps: Mapping[str, Cap] | Sequence[Cap]) -> list[Cap]:
        if not isinstance(caps, Mapping):
            if len(caps) != len(self.charges):
                raise InputError(
                    f"Expected a cap for each of {len(self.charges)} use cases, got {len(caps)}."
                )
            return list(caps)
        for name in caps:
            if name not in self.use_cases:
                raise InputError(f"Unknown use case {name!r}{did_you_mean(name, self.use_cases)}")
        for name in self.use_cases:
            if name not in caps:
                raise InputError(f"Expected a cap for the use case {name!r}, got none.")
        return [caps[name] for name in self.use_cases]
