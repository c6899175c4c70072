"""Whether devices kept to a stated cap: their sending replayed against it, day by day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.arrays import Ints
from fedhh.longitudinal.ledger.cap import Cap
from fedhh.validation import InputError


@dataclass(frozen=True, kw_only=True)
class Overspending:
    """Days in a row on which a device sent more than its cap allows, whatever came before.

    Attributes:
        device: Its number.
        first_day: First of the days.
        last_day: Last of them.
        sent: Records that it sent in them.
        stated: Most that the cap allows in them.
    """

    device: int
    first_day: int
    last_day: int
    sent: int
    stated: int

    @property
    def num_days(self) -> int:
        return self.last_day - self.first_day + 1

    def __str__(self) -> str:
        days = f"{self.num_days} {'day' if self.num_days == 1 else 'days'}"
        return f"sent {self.sent} in {days}, stated at most {self.stated}"


@dataclass(frozen=True, kw_only=True)
class CapReplay:
    """Numbers of records of a use case, compared with its cap.

    Attributes:
        cap: What is stated.
        num_devices: Devices that sent anything.
        num_overspending: Devices that sent more than the cap allows in some days in a row.
        first: The earliest day on which a device had sent too much; None if none.
        worst: Where a device's records were most above what is stated; None if none.
        most_in_a_day: Most records that a device sent in one day.
        most_in_lifetime: Most records that a device sent in all.
        num_days: Days of every device.
        use_case: Its name.
        epsilon: Of a record.
        names: What a log calls the devices of `first` and `worst`, by number.
    """

    cap: Cap
    num_devices: int = 0
    num_overspending: int = 0
    first: Overspending | None = None
    worst: Overspending | None = None
    most_in_a_day: int = 0
    most_in_lifetime: int = 0
    num_days: int = 0
    use_case: str = ""
    epsilon: float = 0.0
    names: Mapping[int, str] = field(default_factory=dict)

    @property
    def stated_in_a_day(self) -> int:
        """Most records that the cap allows on one of the days."""
        return self.cap.most_in_any(1, of_days=self.num_days)

    @property
    def stated_in_lifetime(self) -> int:
        """Most records that the cap allows in all."""
        return self.cap.most_in(0, self.num_days)

    @property
    def refuted(self) -> bool:
        return self.worst is not None

    def to_dict(self) -> dict[str, Any]:
        return {
            "use_case": self.use_case,
            "local_epsilon": self.epsilon,
            "num_devices": self.num_devices,
            "num_overspending": self.num_overspending,
            "most_in_a_day": self.most_in_a_day,
            "stated_in_a_day": self.stated_in_a_day,
            "most_in_lifetime": self.most_in_lifetime,
            "stated_in_lifetime": self.stated_in_lifetime,
            "loss_of_lifetime": self.most_in_lifetime * self.epsilon,
            "stated_loss_of_lifetime": self.stated_in_lifetime * self.epsilon,
            "first": self._spent(self.first),
            "worst": self._spent(self.worst),
            "verdict": "refuted" if self.refuted else "consistent",
        }

    def _spent(self, spent: Overspending | None) -> dict[str, Any] | None:
        if spent is None:
            return None
        return {
            **asdict(spent),
            "device": self.names.get(spent.device, spent.device),
            "loss": spent.sent * self.epsilon,
            "stated_loss": spent.stated * self.epsilon,
        }


def replay_cap(
    cap: Cap, devices: npt.ArrayLike, days: npt.ArrayLike, records: npt.ArrayLike | None = None
) -> CapReplay:
    """Return whether any device sent more than a cap allows in any days in a row.

    A device's balance is renewed as the cap says and lowered by each record sent. It falls below 0
    if and only if there are days in a row with more records than `Cap.most_in` of them: those from
    the last day on which the balance was full, or from the start. One pass looks at all windows.

    Args:
        cap: What is stated.
        devices: ``(r,)`` numbers of devices, from 0; in any order.
        days: ``(r,)`` days since the device's opt-in, from 0.
        records: ``(r,)`` records sent, at least 0; 1 each if None.

    Raises:
        InputError: Shapes differ, or a number is negative.
    """
    owners, sent_days, sent = _per_device_and_day(devices, days, records)
    if not owners.size:
        return CapReplay(cap=cap)
    starts = np.flatnonzero(np.r_[True, owners[1:] != owners[:-1]])
    lengths = np.diff(np.r_[starts, owners.size])
    in_lifetime = np.add.reduceat(sent, starts)
    balances, since = _balances(cap, sent_days, sent, starts, lengths)
    if cap.lifetime is not None:
        so_far = np.cumsum(sent) - np.repeat(np.cumsum(in_lifetime) - in_lifetime, lengths)
        left = cap.lifetime - so_far
        since = np.where(left < balances, 0, since)
        balances = np.minimum(balances, left)
    short = balances < 0
    first = worst = None
    if short.any():
        before = np.concatenate([[0], np.cumsum(sent)])

        def spent(at: int) -> Overspending:
            own = starts[np.searchsorted(starts, at, side="right") - 1]
            begin = own + np.searchsorted(sent_days[own : at + 1], since[at])
            first_day, last_day = int(since[at]), int(sent_days[at])
            return Overspending(
                device=int(owners[at]),
                first_day=first_day,
                last_day=last_day,
                sent=int(before[at + 1] - before[begin]),
                stated=cap.most_in(first_day, last_day - first_day + 1),
            )

        at_all = np.flatnonzero(short)
        first = spent(int(at_all[np.argmin(sent_days[at_all])]))
        worst = spent(int(np.argmin(balances)))
    return CapReplay(
        cap=cap,
        num_devices=starts.size,
        num_overspending=int(np.count_nonzero(np.logical_or.reduceat(short, starts))),
        first=first,
        worst=worst,
        most_in_a_day=int(sent.max()),
        most_in_lifetime=int(in_lifetime.max()),
    )


def _balances(cap: Cap, days: Ints, sent: Ints, starts: Ints, lengths: Ints) -> tuple[Ints, Ints]:
    """Return the balance after each device's day, and the first day of the window it sums up.

    Devices take their steps together, from one day on which they sent to the next.
    """
    after, since = np.zeros_like(sent), np.zeros_like(sent)
    sessions = days // cap.session_days
    # Before day 0 there is nothing, and no session.
    balance = np.zeros(starts.size, dtype=np.int64)
    session = np.full(starts.size, -1, dtype=np.int64)
    window = np.zeros(starts.size, dtype=np.int64)
    order = np.argsort(-lengths, kind="stable")
    longest_first = lengths[order]
    for step in range(int(longest_first[0])):
        active = order[: np.searchsorted(-longest_first, -step, side="left")]
        at = starts[active] + step
        renewals = sessions[at] - session[active]
        # Of some renewals in a row, only the last one can cut off what the earlier ones left.
        left = balance[active] + np.maximum(renewals - 1, 0) * cap.amount
        kept = left if cap.rollover is None else np.minimum(left, cap.rollover)
        cut = (renewals > 0) & (kept < left)
        window[active] = np.where(cut, sessions[at] * cap.session_days, window[active])
        balance[active] = np.where(renewals > 0, kept + cap.amount, balance[active]) - sent[at]
        session[active] = sessions[at]
        after[at], since[at] = balance[active], window[active]
    return after, since


def _per_device_and_day(
    devices: npt.ArrayLike, days: npt.ArrayLike, records: npt.ArrayLike | None
) -> tuple[Ints, Ints, Ints]:
    """Return device, day and records of each pair that occurs with a record, in order."""
    owners, on = (np.asarray(each, dtype=np.int64) for each in (devices, days))
    sent = np.ones(owners.size, dtype=np.int64) if records is None else np.asarray(records)
    if not owners.shape == on.shape == sent.shape or owners.ndim != 1:
        raise InputError(
            f"Expected devices, days and records of one length, got shapes {owners.shape}, "
            f"{on.shape} and {sent.shape}."
        )
    for name, each in (("devices", owners), ("days", on), ("records", sent)):
        if each.size and each.min() < 0:
            raise InputError(f"Expected {name} of at least 0, got {name}={int(each.min())}.")
    present = sent > 0
    if not present.any():
        return owners[present], on[present], sent[present]
    span = int(on.max()) + 1
    keys, place = np.unique(owners[present] * span + on[present], return_inverse=True)
    summed = np.zeros(keys.size, dtype=np.int64)
    np.add.at(summed, place, sent[present])
    return keys // span, keys % span, summed
