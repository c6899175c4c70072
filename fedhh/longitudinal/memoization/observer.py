"""What all reports of a device say: after t days, of a change, of its value, of its identity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import special, stats

from fedhh.longitudinal.memoization.bits import BitPair, MemoizedBits, log_of_days
from fedhh.longitudinal.memoization.daily import DailyAnswer, Floats, FreshAnswer, Public
from fedhh.longitudinal.memoization.histories import (
    OTHER_DEVICE,
    A,
    B,
    HistoryEpsilon,
    Observer,
    always,
    changing,
    distinguish,
    history_epsilon,
    one_day,
)
from fedhh.validation import InputError, require_at_least, require_inside


@dataclass(frozen=True, kw_only=True)
class ObservedDays:
    """What all reports of a device say after some days, of the values easiest to distinguish.

    Attributes:
        days: How many reports.
        value: Epsilon of always A against always B.
        value_if_fresh: The same, if every report had noise of its own with the same distribution.
        one_day: Epsilon of always A against A but for one day; None for a single day.
        change: Epsilon of always A against values that change; None where there are too few days.
        value_distinguished: Distinguishing probability of always A and always B.
        value_distinguished_if_fresh: Likewise, with fresh noise.
        change_distinguished: Distinguishing probability of always A and values that change.
        change_distinguished_if_fresh: Likewise, with fresh noise.
        linked: How often the best observer says rightly whether two pseudonyms, each with so many
            reports about the same value, are one device or two.
    """

    days: int
    value: HistoryEpsilon
    value_if_fresh: HistoryEpsilon
    one_day: HistoryEpsilon | None
    change: HistoryEpsilon | None
    value_distinguished: Observer
    value_distinguished_if_fresh: Observer
    change_distinguished: Observer | None
    change_distinguished_if_fresh: Observer | None
    linked: Observer


def observed_after(
    answer: DailyAnswer, days: Sequence[int], *, changes: int = 1
) -> list[ObservedDays]:
    """Return what an observer knows after each of some numbers of days.

    A value that changes does so ``changes`` times.

    Raises:
        InputError: Values out of range, or what cannot be enumerated; see `distinguish`.
    """
    require_at_least(1, changes=changes)
    return [_after(answer, each, changes) for each in days]


def _after(answer: DailyAnswer, days: int, changes: int) -> ObservedDays:
    first, second = always(days, A), always(days, B)
    changed = changing(days, changes) if changes < days else None
    two_devices = np.repeat(np.array([A, OTHER_DEVICE], dtype=np.int64), days)
    return ObservedDays(
        days=days,
        value=history_epsilon(answer, first, second),
        value_if_fresh=history_epsilon(answer, first, second, redrawn=True),
        value_distinguished=distinguish(answer, first, second),
        value_distinguished_if_fresh=distinguish(answer, first, second, redrawn=True),
        one_day=history_epsilon(answer, first, one_day(days)) if days > 1 else None,
        change=None if changed is None else history_epsilon(answer, first, changed),
        change_distinguished=None if changed is None else distinguish(answer, first, changed),
        change_distinguished_if_fresh=None
        if changed is None
        else distinguish(answer, first, changed, redrawn=True),
        linked=distinguish(answer, always(2 * days, A), two_devices),
    )


def response_changes(answer: MemoizedBits, value: float, other: float, public: Public) -> Floats:
    """Return how likely a change of value changes a device's permanent response. Exact.

    Where nothing is added to the permanent response, that is the chance that two days' reports
    prove a change; where it stays the same, reports hold no trace of one.

    Returns:
        ``(n,) float64``, over offsets and permanent responses of devices with what is public.
    """
    total = np.zeros(len(public))
    for chance, rounded in answer.roundings(np.array([value, other])):
        classes = answer.classes(public, rounded[None, :])
        first, second = (answer.chances(public, classes[:, day]) for day in (0, 1))
        equal = (first * second + (1 - first) * (1 - second)).prod(axis=1)
        total += chance * np.where(classes[:, 0] == classes[:, 1], 0.0, 1 - equal)
    return total


@dataclass(frozen=True, kw_only=True)
class _Share:
    """How often a simulated observer is right.

    Attributes:
        right: Share of the simulated cases.
        lower: Lower bound of it, Clopper and Pearson (1934); wrong with (1 - confidence) / 2.
        upper: Upper bound, likewise.
        confidence: Of both.
    """

    right: float
    lower: float
    upper: float
    confidence: float

    @classmethod
    def of(cls, hits: int, cases: int, *, confidence: float, **others: float) -> Self:
        interval = stats.binomtest(hits, cases).proportion_ci(confidence, method="exact")
        low, high = (float(bound) for bound in interval)
        return cls(right=hits / cases, lower=low, upper=high, confidence=confidence, **others)


@dataclass(frozen=True, kw_only=True)
class ValueGuess(_Share):
    """How often an observer of all reports names a device's value; simulated, prior uniform.

    ``posterior`` is the mean posterior probability of the true value.
    """

    posterior: float
    num_devices: int
    num_values: int


def guess_value(
    answer: DailyAnswer,
    values: Sequence[float],
    *,
    days: int,
    num_devices: int,
    rng: np.random.Generator,
    redrawn: bool = False,
    confidence: float = 0.99,
) -> ValueGuess:
    """Return how often the best observer names the value that never changes, after some days.

    Each device has one of the values, with equal chances; the observer knows that, what is public
    of the device, and all of its reports, and computes the exact posterior.

    Args:
        answer: What devices answer every day.
        values: At least two.
        days: Reports of each device.
        num_devices: Devices to simulate.
        rng: Source of all coins.
        redrawn: As if permanent responses were drawn anew every day, and an observer knew it.
        confidence: Of the interval, in (0, 1).
    """
    require_at_least(1, days=days, num_devices=num_devices)
    require_inside(0, 1, confidence=confidence)
    if len(values) < 2 or len(set(values)) < len(values):
        raise InputError(f"Expected at least two different values, got {list(values)!r}.")
    candidates = np.asarray(values)
    state = answer.begin(num_devices, rng=rng)
    truth = rng.integers(len(candidates), size=num_devices)
    held = candidates[truth]
    reports = []
    for _ in range(days):
        reports.append(answer.answer(state, held, rng=rng))
        if redrawn and not isinstance(answer, FreshAnswer):
            state = state.with_new_keys(rng=rng).with_new_offsets(rng=rng)
    seen = np.stack(reports, axis=1)
    parts = [seen[:, day : day + 1] for day in range(days)] if redrawn else [seen]
    logs = np.zeros((num_devices, len(candidates)))
    for part in parts:
        for place, candidate in enumerate(candidates):
            same = np.full(part.shape[1], candidate)
            logs[:, place] += answer.log_prob(part, same, state.public)
    posterior = np.exp(logs - special.logsumexp(logs, axis=1, keepdims=True))
    # Ties are guessed among at random.
    best = np.argmax(np.round(logs, 9) + 1e-10 * rng.random(logs.shape), axis=1)
    return ValueGuess.of(
        int((best == truth).sum()),
        num_devices,
        confidence=confidence,
        posterior=float(posterior[np.arange(num_devices), truth].mean()),
        num_devices=num_devices,
        num_values=len(candidates),
    )


@dataclass(frozen=True, kw_only=True)
class DeviceFound(_Share):
    """How often an observer finds a device again among others, next to guessing; simulated."""

    by_chance: float
    num_trials: int


def find_device(
    answer: MemoizedBits,
    *,
    days: int,
    num_devices: int,
    num_trials: int,
    rng: np.random.Generator,
    confidence: float = 0.99,
) -> DeviceFound:
    """Return how often a device's reports under a new pseudonym are found to be its own.

    The observer holds ``days`` reports of one device, then as many of each of ``num_devices`` new
    pseudonyms, at least 2, of which one is that device. All have the same value and the same public
    part, so that only permanent responses distinguish them. It picks the likeliest; no observer is
    better. Had the device changed its value, its new responses would be independent of the old:
    then guessing is all that is left, but for `DailyAnswer.public_bits`.
    """
    if not isinstance(answer, MemoizedBits):
        raise InputError(
            f"Expected memoized bits, which alone make a device known again, got "
            f"{type(answer).__name__}."
        )
    require_at_least(1, days=days, num_trials=num_trials)
    require_at_least(2, num_devices=num_devices)
    require_inside(0, 1, confidence=confidence)
    hits = 0
    for _ in range(num_trials):
        scores = np.zeros(num_devices)
        for pair in answer.farthest:
            scores += pseudonym_scores(answer, pair, days, num_devices, rng)
        # The device is the first; ties are guessed among at random.
        better = np.count_nonzero(scores[1:] > scores[0] + 1e-9)
        equal = np.count_nonzero(np.abs(scores[1:] - scores[0]) <= 1e-9)
        hits += int(not better and rng.random() * (equal + 1) < 1)
    return DeviceFound.of(
        hits, num_trials, confidence=confidence, by_chance=1 / num_devices, num_trials=num_trials
    )


def pseudonym_scores(
    answer: MemoizedBits, pair: BitPair, days: int, num_devices: int, rng: np.random.Generator
) -> Floats:
    """Return each pseudonym's log-likelihood ratio of being the device, from some of its bits."""
    sent = answer.daily_one, answer.daily_zero
    permanent = rng.random((num_devices, pair.times)) < pair.first
    chances = np.where(permanent, *sent)
    before = rng.binomial(days, chances[0])
    after = rng.binomial(days, chances)
    # Relative to what the old reports alone say of each permanent bit. Finite, so that a
    # pseudonym that is ruled out by one bit is last, whatever the others say.
    with np.errstate(divide="ignore"):
        one, zero = (log_of_days(after, days - after, chance) for chance in sent)
        known_one, known_zero = (
            np.log(weight) + log_of_days(before, days - before, chance)
            for weight, chance in zip((pair.first, 1 - pair.first), sent, strict=True)
        )
        known = np.logaddexp(known_one, known_zero)
        same = np.logaddexp(known_one - known + one, known_zero - known + zero)
        other = np.logaddexp(np.log(pair.first) + one, np.log1p(-pair.first) + zero)
    return np.asarray(np.maximum(same - other, -1e6).sum(axis=1))
