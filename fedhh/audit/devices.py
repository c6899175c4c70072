"""Samples of all that devices send: reports over days, and numbers of records.

A *history* says what happens on a device, day by day. Two neighboring histories have events at the
same times, and differ in the value of one event, or of all. A *transcript* is what an observer sees
of the device: when it sent how many records, and their reports. Many devices have each of the two
histories; how well their transcripts are distinguished bounds what a device gives away from below.
Tang, Korolova, Bai, Wang, Wang (2017), "Privacy loss in Apple's implementation of differential
privacy on MacOS 10.12", section 6, ask for such techniques.

The stated distribution only suggests statistics: where a device departs from it, bounds hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, get_args

import numpy as np

from fedhh.arrays import Floats, Ints
from fedhh.audit.audit import Finding, audit
from fedhh.audit.caps import CapReplay, replay_cap
from fedhh.audit.claim import Answers
from fedhh.longitudinal.ledger.cap import Cap
from fedhh.validation import InputError, require_at_least, require_choice, require_positive

if TYPE_CHECKING:
    from fedhh.oracles.base import FrequencyOracle, Reports

Statistics = dict[str, Floats]

Level = Literal["event", "day", "user"]
"""What is protected: one event, all records sent on one day, or all records."""
LEVELS: tuple[Level, ...] = get_args(Level)

NO_EVENT = -1
"""Where a history has no event."""

FEWEST_DEVICES = 8
_AT_ONCE = 2_000_000
_TEACHERS = 4
"""One device in so many teaches what numbers of records say."""
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
    devices: Ints
    days: Ints
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
    first: Ints
    second: Ints
    pair: tuple[int, int]
    seen: tuple[int, int]


class AuditedDevice(Protocol):
    """A device with one use case, as an audit sees it."""

    @property
    def oracle(self) -> FrequencyOracle:
        """The stated randomizer of a record."""

    @property
    def cap(self) -> Cap:
        """What it may send, as stated."""

    def simulate(self, history: Ints, *, num_devices: int, rng: np.random.Generator) -> Transcripts:
        """Return the transcripts of some devices of one history, each with its own coins.

        That is ``(days, events) int64`` values, `NO_EVENT` where there is none.
        """


@dataclass(frozen=True, kw_only=True)
class DeviceAudit:
    """What devices of two histories showed.

    Attributes:
        found: By their reports and the numbers of their records.
        devices: ``(r,)`` who sent each record; devices of the second history come last.
        days: ``(r,)`` on which day.
        cap: What they may send, as stated.
    """

    found: Finding
    devices: Ints
    days: Ints
    cap: Cap

    @property
    def sent(self) -> CapReplay:
        """Numbers of records, replayed against the cap."""
        return replay_cap(self.cap, self.devices, self.days)

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


def stated_records(epsilon: float, cap: Cap, histories: NeighboringHistories) -> Answers:
    """Return what is stated of two histories: so many records at most can tell about a change.

    Each event is privatized once and sent at most once. A record's coins, and the choice of what is
    sent, do not depend on values. Epsilon is that of one record.
    """
    first_day, end = histories.seen
    times = cap.most_in(first_day, end - first_day)
    if histories.level == "event":
        times = min(times, int(np.count_nonzero(histories.first != histories.second)))
    return Answers(each=epsilon, times=times, what="records")


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
) -> DeviceAudit:
    """Return what a device gives away over all days, at least, next to what it states.

    Args:
        device: Only its transcripts are read.
        histories: Two neighboring histories.
        num_devices: Devices of each history, at least 8.
        rng: Source of the devices' coins.
        confidence: In (0, 1): a device that keeps what it states is refuted with at most the rest.
    """
    require_at_least(FEWEST_DEVICES, num_devices=num_devices)
    claim = stated_records(device.oracle.epsilon, device.cap, histories)
    samples: list[Statistics] = []
    counts, owners, days = [], [], []
    for number, history in enumerate((histories.first, histories.second)):
        statistics, owner, day = _simulated(device, histories, history, num_devices, rng)
        samples.append(statistics)
        counts.append(_counts_of_seen_days(histories, owner, day, num_devices))
        owners.append(owner + number * num_devices)
        days.append(day)
    _add_what_numbers_say(samples, counts)
    first, second = (
        {name: each[num_devices // _TEACHERS :] for name, each in part.items()} for part in samples
    )
    return DeviceAudit(
        found=audit(first, second, claim, confidence=confidence),
        devices=np.concatenate(owners),
        days=np.concatenate(days),
        cap=device.cap,
    )


def _simulated(
    device: AuditedDevice,
    histories: NeighboringHistories,
    history: Ints,
    num_devices: int,
    rng: np.random.Generator,
) -> tuple[Statistics, Ints, Ints]:
    """Return statistics of each device's reports, and who sent a record on which day."""
    first_day, end = histories.seen
    lasts = {"reports": end}
    if histories.level == "event":
        lasts["reports of the day of the event"] = first_day + 1
    sums: Statistics = {name: np.zeros(num_devices) for name in lasts}
    owners, days = [], []
    at_once = max(1, _AT_ONCE // history.size)
    for start in range(0, num_devices, at_once):
        size = min(at_once, num_devices - start)
        shown = device.simulate(history, num_devices=size, rng=rng)
        ratios = log_ratio(*(device.oracle.log_prob(shown.reports, v) for v in histories.pair))
        for name, last in lasts.items():
            weights = ratios * ((shown.days >= first_day) & (shown.days < last))
            summed = np.bincount(shown.devices, weights=weights, minlength=size)
            sums[name][start : start + size] = summed.round(9)
        owners.append(shown.devices + start)
        days.append(shown.days)
    return sums, np.concatenate(owners), np.concatenate(days)


def _counts_of_seen_days(
    histories: NeighboringHistories, owner: Ints, day: Ints, num_devices: int
) -> Ints:
    """Return ``(num_devices, days)``: records on each day that is seen."""
    num_days = len(histories.first)
    counts = np.bincount(owner * num_days + day, minlength=num_devices * num_days)
    return counts.reshape(num_devices, num_days)[:, slice(*histories.seen)]


def _add_what_numbers_say(samples: list[Statistics], counts: list[Ints]) -> None:
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
        known = each[: len(each) // _TEACHERS]
        np.add.at(table, (np.broadcast_to(days, known.shape), known), 1)
        taught.append(np.log(table))
    for own, statistics in zip(counts, samples, strict=True):
        said = (taught[0] - taught[1])[days, own].sum(axis=1)
        for name in list(statistics):
            statistics[f"{name}, and numbers sent"] = np.round(statistics[name] + said, 9)


def log_ratio(first: Floats, second: Floats) -> Floats:
    """Return log-likelihood ratios, finite, rounded to 1e-9.

    Rounding keeps reports of equal ratio equal; a report impossible under both values counts 0.
    """
    impossible = np.isneginf(first) & np.isneginf(second)
    with np.errstate(invalid="ignore"):
        ratio = np.where(impossible, 0.0, first - second)
    return np.round(np.clip(ratio, -1e6, 1e6), 9)
