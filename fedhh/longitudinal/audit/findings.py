"""What transcripts of two inputs show: a lower bound on epsilon, and on the answers behind it.

Events are chosen on some transcripts and tested on others, by the bounds of Clopper and Pearson
(1934) on their two probabilities. Two claims are tested so: that the ratio is at most e**epsilon,
and that the pair lies below the stated trade-off. The second claim is the stronger one where there
are many answers: all of them together show far less than the sum of their epsilons in any event
that is seen in practice. An audit of trade-offs sees what epsilon alone would hide: Nasr et al.
(2023), "Tight auditing of differentially private machine learning", USENIX Security.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from fedhh.accounting.empirical_epsilon import (
    AuditResult,
    Event,
    Floats,
    choose_event,
    clopper_pearson,
    hits_of_thresholds,
    result_of_event,
)
from fedhh.longitudinal.audit.trade_off import Answers, TradeOff, fewest_answers, smallest

Numbers = npt.NDArray[np.int64]
Samples = dict[str, tuple[Floats, Floats]]

MOST_ANSWERS = 10_000
"""Where the search for how many answers a device gave ends."""
_BINS = 20


class _Candidates(NamedTuple):
    """Events of a statistic, by ``(t,)`` thresholds, in one direction; fields as in `Event`.

    ``power`` are lower bounds on their probabilities, ``false_alarm`` upper bounds on those under
    the other input.
    """

    name: str
    thresholds: Floats
    above: bool
    swapped: bool
    power: Floats
    false_alarm: Floats


@dataclass(frozen=True, kw_only=True)
class LongitudinalFinding:
    """What transcripts of two neighboring inputs show, next to what is stated of them.

    Attributes:
        level: What the inputs differ in.
        stated: The answers that are stated to depend on it.
        found: Lower bound on epsilon, by the event that shows most of it.
        statistic: What the event is about that speaks most against the stated trade-off.
        power: Lower bound on that event's probability under its input.
        false_alarm: Upper bound on its probability under the other input.
        allowed: Upper bound on its power, by the stated trade-off at ``false_alarm``.
        least_answers: So many answers of the stated epsilon are needed to show as much; None if
            the stated epsilons differ.
        detects_from: So many answers that show all of the stated epsilon would probably have been
            detected; None if not even `MOST_ANSWERS`, or if the stated epsilons differ.
    """

    level: str
    stated: TradeOff
    found: AuditResult
    statistic: str
    power: float
    false_alarm: float
    allowed: float
    least_answers: int | None
    detects_from: int | None

    @property
    def refuted(self) -> bool:
        return self.found.epsilon > self.stated.epsilon or self.power > self.allowed


def find_in_samples(
    first: Mapping[str, Floats],
    second: Mapping[str, Floats],
    *,
    level: str,
    stated: TradeOff,
    confidence: float,
) -> LongitudinalFinding:
    """Return what statistics of two inputs show, next to what is stated.

    Args:
        first: Each statistic's name, with ``(n,)`` samples under the first input, n >= 8,
            independent and in random order. A quarter teaches how likely its values are under each
            input, three eighths choose a statistic and an event, the others test it.
        second: The same under the second input, as many.
        level: What the inputs differ in.
        stated: What is stated of them.
        confidence: In (0, 1): a device that keeps what is stated is refuted with at most the rest.
    """
    each = 1 - (1 - confidence) / 2
    error = (1 - each) / 2
    chosen, tested = _halves(first, second)
    name, event = max(
        ((name, choose_event(a, b)) for name, (a, b) in chosen.items()),
        key=lambda each: each[1].gain,
    )
    hits, sizes = event.tested(*tested[name])
    found = result_of_event(
        hits=hits, sizes=sizes, delta=0.0, confidence=each, event=f"{name}: {event}"
    )
    epsilon = stated.answers[0].epsilon if len(stated.answers) == 1 else None
    candidates = [
        each for name, (a, b) in chosen.items() for each in _candidates(name, a, b, error)
    ]
    other, event = (
        _most_above(candidates, stated)
        if epsilon is None
        else _event_of_most_answers(candidates, epsilon)
    )
    hits, sizes = event.tested(*tested[other])
    power = clopper_pearson(hits[0], sizes[0], error=error)[0]
    false_alarm = clopper_pearson(hits[1], sizes[1], error=error)[1]
    return LongitudinalFinding(
        level=level,
        stated=stated,
        found=found,
        statistic=other,
        power=power,
        false_alarm=false_alarm,
        allowed=float(stated.power([false_alarm])[0]),
        least_answers=None
        if epsilon is None
        else fewest_answers(epsilon, false_alarm=false_alarm, power=power, most=MOST_ANSWERS),
        detects_from=None
        if epsilon is None
        else fewest_refuted(stated, num_samples=min(sizes), error=error),
    )


def fewest_refuted(stated: TradeOff, *, num_samples: int, error: float) -> int | None:
    """Return the fewest answers of which the expected hits refute what is stated, None if none do.

    That is of answers of one epsilon, of ``num_samples`` transcripts of each input, and of bounds
    on probabilities that are wrong with ``error`` each.
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

    return smallest(seen, first=times + 1, most=MOST_ANSWERS)


def num_teachers(num_samples: int) -> int:
    """Return how many of some devices teach what the others' transcripts say: a quarter."""
    return num_samples // 4


def _halves(first: Mapping[str, Floats], second: Mapping[str, Floats]) -> tuple[Samples, Samples]:
    """Return samples that choose and samples that test, of each statistic and of it as learned."""
    chosen: Samples = {}
    tested: Samples = {}
    for name, a in first.items():
        b = second[name]
        teachers = num_teachers(a.size)
        middle = (a.size + teachers) // 2
        parts = {name: (a, b), f"{name}, as learned": _as_learned(a, b, teachers)}
        for part, (own, other) in parts.items():
            chosen[part] = own[teachers:middle], other[teachers:middle]
            tested[part] = own[middle:], other[middle:]
    return chosen, tested


def _as_learned(a: Floats, b: Floats, teachers: int) -> tuple[Floats, Floats]:
    """Return how much likelier each sample's bin is under the first input, as a quarter teaches.

    What speaks for an input need not be a large value: it may be one in between.
    """
    known = np.concatenate([a[:teachers], b[:teachers]])
    edges = np.unique(np.quantile(known, np.linspace(0, 1, _BINS + 1)[1:-1]))
    bins = [np.searchsorted(edges, each, side="right") for each in (a, b)]
    tables = [np.bincount(each[:teachers], minlength=edges.size + 1) + 0.5 for each in bins]
    ratios = np.asarray(np.log(tables[0] / tables[1]).round(9), dtype=np.float64)
    return ratios[bins[0]], ratios[bins[1]]


def _candidates(name: str, a: Floats, b: Floats, error: float) -> list[_Candidates]:
    """Return all events of one statistic, with bounds on their two probabilities."""
    values, hits_a, hits_b = hits_of_thresholds(a, b)
    low_a, high_a = _bounds(hits_a, a.size, error)
    low_b, high_b = _bounds(hits_b, b.size, error)
    # What bounds an event's probability from above bounds that of its contrary from below.
    return [
        _Candidates(name, values, True, False, low_a, high_b),
        _Candidates(name, values, True, True, low_b, high_a),
        _Candidates(name, values, False, False, 1 - high_a, 1 - low_b),
        _Candidates(name, values, False, True, 1 - high_b, 1 - low_a),
    ]


def _bounds(hits: npt.NDArray[np.intp], size: int, error: float) -> tuple[Floats, Floats]:
    """Return `clopper_pearson` of many numbers of hits."""
    low = special.betaincinv(np.maximum(hits, 1), size - hits + 1, error)
    high = special.betaincinv(hits + 1, np.maximum(size - hits, 1), 1 - error)
    return np.where(hits > 0, low, 0.0), np.where(hits < size, high, 1.0)


def _most_above(candidates: list[_Candidates], stated: TradeOff) -> tuple[str, Event]:
    best: tuple[str, Event] | None = None
    for each in candidates:
        gains = each.power - stated.power(each.false_alarm)
        place = int(gains.argmax())
        if best is None or gains[place] > best[1].gain:
            event = Event(
                threshold=float(each.thresholds[place]),
                above=each.above,
                swapped=each.swapped,
                gain=float(gains[place]),
            )
            best = each.name, event
    assert best is not None
    return best


def _event_of_most_answers(candidates: list[_Candidates], epsilon: float) -> tuple[str, Event]:
    """Return the statistic and event that seem to need the most answers of some epsilon."""

    def best(times: int) -> tuple[str, Event]:
        return _most_above(candidates, TradeOff((Answers(epsilon=epsilon, times=times),)))

    few, event = 0, best(0)
    more = 1
    while more <= MOST_ANSWERS and (other := best(more))[1].gain > 0:
        few, event, more = more, other, 2 * more
    while more - few > 1:
        middle = (few + more) // 2
        other = best(middle)
        if other[1].gain > 0:
            few, event = middle, other
        else:
            more = middle
    return event
