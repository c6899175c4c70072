"""Audits of all that a device ever sends: lower bounds on its privacy loss.

A *history* says what happens on a device, day by day. Two neighboring histories have events at the
same times, and differ in the value of one event, or of all. A *transcript* is what an observer sees
of the device, on one day or on all: when it sent how many records, and their reports. Many devices
have each of the two histories; how well their transcripts are distinguished is a lower bound on
what a device gives away. Tang, Korolova, Bai, Wang, Wang (2017), "Privacy loss in Apple's
implementation of differential privacy on MacOS 10.12", section 6, ask for such techniques.

Three things are held against what is stated:

* epsilon: an event chosen on some devices, tested on others, as in `audit_epsilon`;
* the trade-off (`TradeOff`): stated are at most k answers, each epsilon-private. All k together
  show far less than k times epsilon in any event that is ever seen, so that a device that sends
  more is detected long before it exceeds the sum;
* the numbers of records sent (`replay_cap`), which needs no statistics.

The stated distribution only suggests events: where a device departs from it, the bounds hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, get_args

import numpy as np
import numpy.typing as npt

from fedhh.accounting.empirical_epsilon import Floats, check_levels, log_ratio
from fedhh.longitudinal.audit.cap_replay import CapReplay, replay_cap
from fedhh.longitudinal.audit.findings import LongitudinalFinding, find_in_samples, num_teachers
from fedhh.longitudinal.audit.trade_off import Answers, TradeOff
from fedhh.longitudinal.ledger.cap import Cap
from fedhh.validation import InputError, require_at_least, require_choice, require_positive

if TYPE_CHECKING:
    from fedhh.oracles.base import FrequencyOracle, Reports

Numbers = npt.NDArray[np.int64]

Level = Literal["event", "day", "user"]
"""What is protected: one event, all records sent on one day, or all records."""
LEVELS: tuple[Level, ...] = get_args(Level)

NO_EVENT = -1
"""Where a history has no event."""

_EVENTS_AT_ONCE = 2_000_000
_TELLING = 2.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Transcripts:
    """What an observer sees of some devices, of one use case.

    Attributes:
        num_devices: Devices, those included that sent nothing.
        num_days: Days of each.
        devices: ``(r,) int64``: who sent each record.
        days: ``(r,) int64``: on which day, from 0.
        reports: The records' reports, first axis r.
    """

    num_devices: int
    num_days: int
    devices: Numbers
    days: Numbers
    reports: Reports


@dataclass(frozen=True, kw_only=True, eq=False)
class NeighboringHistories:
    """Two histories with events at the same times.

    Attributes:
        level: What they differ in, or what is seen of them.
        first: ``(days, events) int64`` values, `NO_EVENT` where there is none.
        second: The same for the other history.
        pair: The value that changes, and what it changes to.
        seen: First day of which an observer sees the records, and the first one thereafter.
    """

    level: Level
    first: Numbers
    second: Numbers
    pair: tuple[int, int]
    seen: tuple[int, int]

    @property
    def num_days(self) -> int:
        return len(self.first)

    @property
    def num_changed(self) -> int:
        """Events whose values differ."""
        return int(np.count_nonzero(self.first != self.second))


class AuditedDevice(Protocol):
    """A device with one use case, as an audit sees it."""

    @property
    def oracle(self) -> FrequencyOracle:
        """The stated randomizer of a record."""

    @property
    def cap(self) -> Cap:
        """What it may send, as stated."""

    def simulate(
        self, history: Numbers, *, num_devices: int, rng: np.random.Generator
    ) -> Transcripts:
        """Return the transcripts of some devices of one history, each with its own coins.

        That is ``(days, events) int64`` values, `NO_EVENT` where there is none.
        """


@dataclass(frozen=True, kw_only=True)
class LongitudinalAudit:
    """Numbers of records that devices sent, replayed against the cap, and what transcripts show."""

    sent: CapReplay
    found: LongitudinalFinding

    @property
    def refuted(self) -> bool:
        """Whether anything was found that is not as stated."""
        return self.sent.worst is not None or self.found.refuted


def neighboring_histories(
    level: Level,
    *,
    num_days: int,
    events_per_day: int,
    pair: tuple[int, int] = (0, 1),
    day: int = 0,
) -> NeighboringHistories:
    """Return two histories whose events have the first value of a pair, but for what changes.

    An event that changes alone is the only one of its day: others would hide it from an honest
    device's sampling, and so from the audit.

    Args:
        level: What changes: "event" an event; "day" and "user" all events, of which an observer
            sees the records of one day, or all.
        num_days: At least 1.
        events_per_day: At least 1; more than the cap, to see whether it holds.
        pair: The value of events, and the other value.
        day: The day that has the event that changes, or whose records are seen.
    """
    require_choice(LEVELS, level=level)
    require_at_least(1, num_days=num_days, events_per_day=events_per_day)
    if not 0 <= day < num_days:
        raise InputError(f"Expected 0 <= day < num_days={num_days}, got day={day!r}.")
    if pair[0] == pair[1]:
        raise InputError(f"Expected two different values, got {pair[0]!r} twice.")
    first = np.full((num_days, events_per_day), pair[0], dtype=np.int64)
    second = np.full_like(first, pair[1])
    if level == "event":
        first[day, 1:] = NO_EVENT
        second = first.copy()
        second[day, 0] = pair[1]
    return NeighboringHistories(
        level=level,
        first=first,
        second=second,
        pair=pair,
        seen={"event": (day, num_days), "day": (day, day + 1), "user": (0, num_days)}[level],
    )


def stated_trade_off(epsilon: float, cap: Cap, histories: NeighboringHistories) -> TradeOff:
    """Return what is stated of two histories: so many records at most can tell about a change.

    Each event is privatized once and sent at most once. A record's coins, and the choice of what is
    sent, do not depend on values. Epsilon is that of one record.
    """
    first_day, end = histories.seen
    times = cap.most_in(first_day, end - first_day)
    if histories.level == "event":
        times = min(times, histories.num_changed)
    return TradeOff((Answers(epsilon=epsilon, times=times),))


def telling_epsilon(epsilon: float, num_records: int) -> float:
    """Return an epsilon of a record at which an audit sees how many records a device sent.

    Many records of a large epsilon identify a history with certainty, however few are stated, and
    then nothing more can be found. The rules of sending do not depend on epsilon, so that they can
    be audited with a smaller one: 2 / sqrt(``num_records``), at most ``epsilon``.
    """
    require_positive(epsilon=epsilon)
    return min(epsilon, _TELLING / math.sqrt(max(num_records, 1)))


def audit_device(
    device: AuditedDevice,
    histories: NeighboringHistories,
    *,
    num_devices: int,
    rng: np.random.Generator,
    confidence: float = 0.99,
) -> LongitudinalAudit:
    """Return lower bounds on what a device gives away over all days, next to what it states.

    Args:
        device: Only its transcripts are read.
        histories: Two neighboring histories.
        num_devices: Devices of each history, at least 8; see `find_in_samples`.
        rng: Source of the devices' coins.
        confidence: In (0, 1): a device that keeps what it states is refuted with at most the rest.
    """
    check_levels(0.0, confidence)
    require_at_least(8, num_devices=num_devices)
    samples, counts, owners, days = [], [], [], []
    for number, history in enumerate((histories.first, histories.second)):
        statistics, (owner, day) = _simulated(device, histories, history, num_devices, rng)
        samples.append(statistics)
        owners.append(owner + number * num_devices)
        days.append(day)
        counts.append(_counts_of_seen_days(histories, owner, day, num_devices))
    _add_what_numbers_say(samples, counts)
    return LongitudinalAudit(
        sent=replay_cap(device.cap, np.concatenate(owners), np.concatenate(days)),
        found=find_in_samples(
            samples[0],
            samples[1],
            level=histories.level,
            stated=stated_trade_off(device.oracle.epsilon, device.cap, histories),
            confidence=confidence,
        ),
    )


def _simulated(
    device: AuditedDevice,
    histories: NeighboringHistories,
    history: Numbers,
    num_devices: int,
    rng: np.random.Generator,
) -> tuple[dict[str, Floats], tuple[Numbers, Numbers]]:
    first_day, end = histories.seen
    all_seen, first_seen = np.zeros(num_devices), np.zeros(num_devices)
    owners, days = [], []
    at_once = max(1, _EVENTS_AT_ONCE // history.size)
    for start in range(0, num_devices, at_once):
        size = min(at_once, num_devices - start)
        shown = device.simulate(history, num_devices=size, rng=rng)
        ratios = log_ratio(device.oracle, shown.reports, *histories.pair)
        part = slice(start, start + size)
        for sums, last in ((all_seen, end), (first_seen, first_day + 1)):
            is_seen = (shown.days >= first_day) & (shown.days < last)
            sums[part] = np.bincount(shown.devices, weights=ratios * is_seen, minlength=size)
        owners.append(shown.devices + start)
        days.append(shown.days)
    statistics = {"reports": np.round(all_seen, 9)}
    if histories.level == "event":
        statistics["reports of the day of the event"] = np.round(first_seen, 9)
    return statistics, (np.concatenate(owners), np.concatenate(days))


def _counts_of_seen_days(
    histories: NeighboringHistories, owner: Numbers, day: Numbers, num_devices: int
) -> Numbers:
    """Return ``(num_devices, days)``: records on each day that is seen."""
    first_day, end = histories.seen
    counts = np.bincount(
        owner * histories.num_days + day, minlength=num_devices * histories.num_days
    )
    return counts.reshape(num_devices, histories.num_days)[:, first_day:end]


def _add_what_numbers_say(samples: list[dict[str, Floats]], counts: list[Numbers]) -> None:
    """Add to the reports' statistics what records per day say.

    Each day's log-likelihood ratio is learned from the devices that teach, as if days were
    independent; nothing is added where all devices send the same numbers.
    """
    if all((each == counts[0][0]).all() for each in counts):
        return
    days = np.arange(counts[0].shape[1])
    most = max(int(each.max()) for each in counts) + 1
    taught = []
    for each in counts:
        table = np.full((days.size, most), 0.5)
        known = each[: num_teachers(len(each))]
        np.add.at(table, (np.broadcast_to(days, known.shape), known), 1)
        taught.append(np.log(table))
    for own, statistics in zip(counts, samples, strict=True):
        said = (taught[0] - taught[1])[days, own].sum(axis=1)
        for name in list(statistics):
            statistics[f"{name}, and numbers sent"] = np.round(statistics[name] + said, 9)
