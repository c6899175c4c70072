"""Audits of a device's whole life: what all that it ever sent gives away, at least.

A *life* says what happens on a device, day by day. Two neighboring lives have events at the same
times, and differ in the value of one event, of all events of a day, or of all events. A
*transcript* is what an observer sees of the device: when it sent how many records, and the reports
in them. Many devices live each of the two lives; what tells their transcripts apart is a lower
bound on what the device gives away. Tang, Korolova, Bai, Wang, Wang (2017), "Privacy loss in
Apple's implementation of differential privacy on MacOS 10.12", section 6, ask for such techniques.

Three things are held against what is stated:

* epsilon: an event chosen on some lives, tested on others, as in `audit_epsilon`;
* the trade-off (`TradeOff`): stated are at most k answers, each epsilon-private. All k together
  show far less than k times epsilon in any event that is ever seen, and a device that sends more
  is found out by that long before it exceeds the sum;
* the numbers of records sent (`replay_cap`), which needs no statistics.

The stated law only suggests events: where a device departs from it, the bounds hold all the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import numpy as np
import numpy.typing as npt

from fedhh.accounting.cap_replay import CapReplay, replay_cap
from fedhh.accounting.empirical_epsilon import (
    AuditResult,
    Event,
    Floats,
    Gain,
    check_levels,
    choose_event,
    clopper_pearson,
    log_ratio,
    result_of_event,
)
from fedhh.accounting.trade_off import Answers, TradeOff, fewest_answers
from fedhh.budgets.cap import Cap
from fedhh.oracles.base import FrequencyOracle, Reports
from fedhh.validation import InputError, require_at_least, require_choice, require_positive

Numbers = npt.NDArray[np.int64]

Level = Literal["event", "day", "user"]
"""What two lives differ in: one event's value, those of one day, or all."""
LEVELS: tuple[Level, ...] = get_args(Level)

NO_EVENT = -1
"""Where a life has no event."""

MOST_ANSWERS = 10_000
"""Where the search for how many answers a device gave ends."""
_EVENTS_AT_ONCE = 2_000_000
_TELLING = 2.5


@dataclass(frozen=True, kw_only=True, eq=False)
class Transcripts:
    """What an observer sees of some devices, of one use case.

    Attributes:
        num_devices: Devices, those included that sent nothing.
        num_days: Days that they lived.
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
class NeighboringLives:
    """Two lives with events at the same times.

    Attributes:
        level: What they differ in.
        first: ``(days, events) int64`` values, `NO_EVENT` where there is none.
        second: The same for the other life.
        pair: The value that changes, and what it changes to.
    """

    level: Level
    first: Numbers
    second: Numbers
    pair: tuple[int, int]

    @property
    def num_changed(self) -> int:
        """Events whose values differ."""
        return int(np.count_nonzero(self.first != self.second))

    @property
    def changed_days(self) -> tuple[int, int]:
        """First and last day on which they differ."""
        days = np.flatnonzero((self.first != self.second).any(axis=1))
        return int(days[0]), int(days[-1])


class LivingDevice(Protocol):
    """A device with one use case, as an audit sees it.

    Attributes:
        oracle: The stated law of a record's report.
        cap: What it may send, as stated.
        kept_days: Days for which an event's record may be sent, that of the event included.
    """

    @property
    def oracle(self) -> FrequencyOracle: ...

    @property
    def cap(self) -> Cap: ...

    @property
    def kept_days(self) -> int: ...

    def live(self, life: Numbers, *, num_devices: int, rng: np.random.Generator) -> Transcripts:
        """Return the transcripts of some devices that live the same life, each with own coins.

        Args:
            life: ``(days, events) int64`` values, `NO_EVENT` where there is none.
            num_devices: At least 1.
            rng: Source of the devices' coins.
        """


@dataclass(frozen=True, kw_only=True)
class LifeFinding:
    """What the transcripts of two neighboring lives show, beside what is stated of them.

    Attributes:
        level: What the lives differ in.
        stated: The answers that are stated to depend on it.
        found: Lower bound on epsilon, by the event that shows most of it.
        statistic: What that event is about.
        power: Lower bound on the probability of another event, the one that speaks most against
            the stated trade-off, under its life.
        false_alarm: Upper bound on its probability under the other life.
        allowed: Upper bound on its power, by the stated trade-off at ``false_alarm``.
        least_answers: So many answers of the stated epsilon are needed to show as much; None if
            the stated epsilons differ.
        refutes_from: So many answers that show all of the stated epsilon would probably have been
            found out; None if not even `MOST_ANSWERS`, or if the stated epsilons differ.
    """

    level: str
    stated: TradeOff
    found: AuditResult
    statistic: str
    power: float
    false_alarm: float
    allowed: float
    least_answers: int | None
    refutes_from: int | None

    @property
    def refuted(self) -> bool:
        """Whether the transcripts show more than is stated."""
        return self.found.epsilon > self.stated.epsilon or self.power > self.allowed


@dataclass(frozen=True, kw_only=True)
class LifeAudit:
    """An audit of a device with one use case.

    Attributes:
        sent: Numbers sent, replayed against the cap.
        findings: What transcripts show, for each level.
        confidence: With at least this probability, a device that keeps what is stated passes.
    """

    sent: CapReplay
    findings: tuple[LifeFinding, ...]
    confidence: float

    @property
    def refuted(self) -> bool:
        """Whether anything was found that is not as stated."""
        return self.sent.worst is not None or any(each.refuted for each in self.findings)


def neighboring_lives(
    level: Level,
    *,
    num_days: int,
    events_per_day: int,
    pair: tuple[int, int] = (0, 1),
    day: int = 0,
) -> NeighboringLives:
    """Return two lives whose events have the first value of a pair, but for what changes.

    An event that changes alone is the only one of its day: others would hide it from an honest
    device's sampling, and so from the audit.

    Args:
        level: What changes.
        num_days: At least 1.
        events_per_day: At least 1; more than the cap, to see whether it holds.
        pair: The value of events, and the other value.
        day: The day that changes, or has the event that changes; for those levels.
    """
    require_choice(LEVELS, level=level)
    require_at_least(1, num_days=num_days, events_per_day=events_per_day)
    if not 0 <= day < num_days:
        raise InputError(f"Expected 0 <= day < num_days={num_days}, got day={day!r}.")
    if pair[0] == pair[1]:
        raise InputError(f"Expected two different values, got {pair[0]!r} twice.")
    first = np.full((num_days, events_per_day), pair[0], dtype=np.int64)
    if level == "event":
        first[day, 1:] = NO_EVENT
    second = first.copy()
    changed = slice(None) if level == "user" else slice(day, day + 1)
    second[changed] = np.where(first[changed] == NO_EVENT, NO_EVENT, pair[1])
    return NeighboringLives(level=level, first=first, second=second, pair=pair)


def stated_trade_off(device: LivingDevice, lives: NeighboringLives) -> TradeOff:
    """Return what a device states of two lives: so many records at most can tell about a change.

    Each event is privatised once and sent at most once, while it is kept; a record's coins and the
    choice of what is sent do not depend on values.
    """
    first_day, last_day = lives.changed_days
    last_day = min(last_day + device.kept_days, lives.first.shape[0]) - 1
    capped = device.cap.most_in(first_day, last_day - first_day + 1)
    times = min(lives.num_changed, capped)
    return TradeOff((Answers(epsilon=device.oracle.epsilon, times=times),))


def telling_epsilon(epsilon: float, num_records: int) -> float:
    """Return an epsilon of a record at which an audit sees how many records a device sent.

    Many records of a large epsilon identify a life with certainty, however few are stated, and then
    nothing more can be found. The rules of sending do not depend on epsilon, so that they can be
    audited with a smaller one: 2.5 / sqrt(``num_records``), at most ``epsilon``.
    """
    require_positive(epsilon=epsilon)
    return min(epsilon, _TELLING / max(num_records, 1) ** 0.5)


def audit_device(
    device: LivingDevice,
    pairs: Sequence[NeighboringLives],
    *,
    num_devices: int,
    rng: np.random.Generator,
    confidence: float = 0.99,
) -> LifeAudit:
    """Return what a device gives away over some lives, at least, beside what it states.

    Args:
        device: Whatever lives; only its transcripts are read.
        pairs: Neighboring lives, each audited on its own; at least one pair.
        num_devices: Devices that live each life, at least 8. A quarter teaches what the numbers
            sent say, three eighths choose events, the others test them.
        rng: Source of the devices' coins.
        confidence: In (0, 1), of all that is found together.
    """
    check_levels(0.0, confidence)
    require_at_least(8, num_devices=num_devices)
    require_at_least(1, num_pairs=len(pairs))
    findings = []
    owners, days, lived = [], [], 0
    for lives in pairs:
        samples: list[dict[str, Floats]] = []
        counts = []
        for life in (lives.first, lives.second):
            statistics, sent, seen = _lived(device, lives, life, num_devices, rng)
            samples.append(statistics)
            counts.append(sent)
            owners.append(seen[0] + lived)
            days.append(seen[1])
            lived += num_devices
        _add_what_numbers_say(samples, counts)
        findings.append(
            find_in_samples(
                samples[0],
                samples[1],
                level=lives.level,
                stated=stated_trade_off(device, lives),
                confidence=1 - (1 - confidence) / len(pairs),
            )
        )
    return LifeAudit(
        sent=replay_cap(device.cap, np.concatenate(owners), np.concatenate(days)),
        findings=tuple(findings),
        confidence=confidence,
    )


def find_in_samples(
    first: Mapping[str, Floats],
    second: Mapping[str, Floats],
    *,
    level: str,
    stated: TradeOff,
    confidence: float,
) -> LifeFinding:
    """Return what statistics of two lives show, beside what is stated.

    Args:
        first: Each statistic's name, with ``(n,)`` samples under the first life, independent and in
            an order that says nothing; the first half chooses a statistic and an event, the second
            half tests it.
        second: The same under the second life.
        level: What the lives differ in.
        stated: What is stated of them.
        confidence: In (0, 1): a device that keeps what is stated is refuted with at most the rest.
    """
    each = 1 - (1 - confidence) / 2
    name, event = _best_event(first, second, gain=None)
    hits, sizes = _tested(event, first[name], second[name])
    found = result_of_event(
        hits=hits, sizes=sizes, delta=0.0, confidence=each, event=f"{name}: {event}"
    )
    other_name, other_event = _best_event(first, second, gain=_excess_over(stated))
    hits, sizes = _tested(other_event, first[other_name], second[other_name])
    error = (1 - each) / 2
    power = clopper_pearson(hits[0], sizes[0], error=error)[0]
    false_alarm = clopper_pearson(hits[1], sizes[1], error=error)[1]
    epsilon = stated.answers[0].epsilon if len(stated.answers) == 1 else None
    return LifeFinding(
        level=level,
        stated=stated,
        found=found,
        statistic=name,
        power=power,
        false_alarm=false_alarm,
        allowed=float(stated.power([false_alarm])[0]),
        least_answers=None
        if epsilon is None
        else fewest_answers(epsilon, false_alarm=false_alarm, power=power, most=MOST_ANSWERS),
        refutes_from=None
        if epsilon is None
        else fewest_refuted(stated, num_samples=min(sizes), error=error),
    )


def fewest_refuted(stated: TradeOff, *, num_samples: int, error: float) -> int | None:
    """Return how many answers would be found out to be more than stated, by their likeliest event.

    Args:
        stated: Answers of one epsilon.
        num_samples: Lives of each kind that test an event.
        error: Of each of the two bounds on its probabilities.

    Returns:
        The fewest answers of which the expected numbers of hits refute what is stated; None if not
        even `MOST_ANSWERS` do.
    """
    epsilon, times = stated.answers[0].epsilon, stated.num_answers

    def seen(answers: int) -> bool:
        under_other, under_one = TradeOff((Answers(epsilon=epsilon, times=answers),)).corners
        hits = np.unique(
            np.floor(np.stack([under_one, under_other]) * num_samples).astype(np.int64), axis=1
        )
        return any(
            clopper_pearson(int(one), num_samples, error=error)[0]
            > stated.power([clopper_pearson(int(other), num_samples, error=error)[1]])[0]
            for one, other in hits.T
        )

    enough, too_few = times + 1, times
    while not seen(enough):
        if enough >= MOST_ANSWERS:
            return None
        too_few, enough = enough, min(2 * enough, MOST_ANSWERS)
    while enough - too_few > 1:
        middle = (enough + too_few) // 2
        if seen(middle):
            enough = middle
        else:
            too_few = middle
    return enough


def _lived(
    device: LivingDevice,
    lives: NeighboringLives,
    life: Numbers,
    num_devices: int,
    rng: np.random.Generator,
) -> tuple[dict[str, Floats], Numbers, tuple[Numbers, Numbers]]:
    """Return statistics of each device, its records per day, and who sent them when."""
    num_days = life.shape[0]
    first_day, last_day = lives.changed_days
    last_day += device.kept_days - 1
    near, all_days = np.zeros(num_devices), np.zeros(num_devices)
    owners, days = [], []
    at_once = max(1, _EVENTS_AT_ONCE // max(life.size, 1))
    for start in range(0, num_devices, at_once):
        size = min(at_once, num_devices - start)
        seen = device.live(life, num_devices=size, rng=rng)
        ratios = log_ratio(device.oracle, seen.reports, *lives.pair)
        is_near = (seen.days >= first_day) & (seen.days <= last_day)
        part = slice(start, start + size)
        near[part] = np.bincount(seen.devices, weights=ratios * is_near, minlength=size)
        all_days[part] = np.bincount(seen.devices, weights=ratios, minlength=size)
        owners.append(seen.devices + start)
        days.append(seen.days)
    owner, day = np.concatenate(owners), np.concatenate(days)
    counts = np.bincount(owner * num_days + day, minlength=num_devices * num_days)
    statistics = {"reports of the days that differ": np.round(near, 9)}
    if lives.level != "user":
        statistics["reports of all days"] = np.round(all_days, 9)
    return statistics, counts.reshape(num_devices, num_days), (owner, day)


def _add_what_numbers_say(samples: list[dict[str, Floats]], counts: list[Numbers]) -> None:
    """Add to the reports' statistics what records per day say, and drop who taught that.

    Each day's log-likelihood ratio is learned from the first quarter of the devices, as if days
    were independent; nothing is added where all devices send the same numbers.
    """
    num_devices = counts[0].shape[0]
    teachers = num_devices // 4
    most = max(int(each.max()) for each in counts) + 1
    if all((each == counts[0][0]).all() for each in counts):
        return
    days = np.arange(counts[0].shape[1])
    taught = []
    for each in counts:
        table = np.full((days.size, most), 0.5)
        np.add.at(table, (np.broadcast_to(days, (teachers, days.size)), each[:teachers]), 1)
        taught.append(np.log(table))
    for own, statistics in zip(counts, samples, strict=True):
        said = (taught[0] - taught[1])[days, own[teachers:]].sum(axis=1)
        for name in list(statistics):
            statistics[name] = statistics[name][teachers:]
            statistics[f"{name}, and numbers sent"] = np.round(statistics[name] + said, 9)


def _best_event(
    first: Mapping[str, Floats], second: Mapping[str, Floats], *, gain: Gain | None
) -> tuple[str, Event]:
    """Return the statistic and event of the largest gain on the first halves."""
    best: tuple[str, Event] | None = None
    for name, a in first.items():
        b = second[name]
        event = choose_event(a[: a.size // 2], b[: b.size // 2], gain=gain)
        if best is None or event.gain > best[1].gain:
            best = name, event
    assert best is not None
    return best


def _tested(event: Event, a: Floats, b: Floats) -> tuple[tuple[int, int], tuple[int, int]]:
    return event.tested(a[a.size // 2 :], b[b.size // 2 :])


def _excess_over(stated: TradeOff) -> Gain:
    """Return how many standard errors an event's power lies above what is stated."""

    def excess(first: Numbers, n: int, second: Numbers, m: int) -> Floats:
        power, false_alarm = first / n, (second + 1) / (m + 1)
        allowed = stated.power(false_alarm)
        slope = (stated.power(np.minimum(false_alarm + 1 / m, 1.0)) - allowed) * m
        variance = (power * (1 - power) + 1 / n) / n
        variance += slope**2 * (false_alarm * (1 - false_alarm) + 1 / m) / m
        # An event that always happens, or never, says nothing.
        telling = (first > 0) & (first + second < n + m)
        return np.where(telling, (power - allowed) / np.sqrt(variance), -np.inf)

    return excess
