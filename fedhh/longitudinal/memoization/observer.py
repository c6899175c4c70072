"""What all reports of a device say: after t days, of a change, of which value it was."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from fedhh.accounting.empirical_epsilon import clopper_pearson
from fedhh.longitudinal.memoization.bits import MemoisedBits
from fedhh.longitudinal.memoization.daily import DailyAnswer, Public
from fedhh.longitudinal.memoization.fresh import FreshAnswer
from fedhh.longitudinal.memoization.lives import (
    OTHER_DEVICE,
    A,
    B,
    LifeEpsilon,
    Observer,
    always,
    changing,
    life_epsilon,
    one_day,
    tell_apart,
)
from fedhh.validation import InputError, require_at_least, require_inside

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class ObservedDays:
    """What all reports of a device say after some days; lives of the values told apart best.

    Attributes:
        days: How many reports.
        value: Epsilon of always A against always B.
        value_if_fresh: The same, if every report had noise of its own with the same law.
        one_day: Epsilon of always A against A but for one day; None for a single day.
        change: Epsilon of always A against a life that changes; None where it has not the days.
        value_told: How often the best observer tells always A from always B.
        value_told_if_fresh: Likewise, with fresh noise.
        change_told: How often the best observer tells these two apart.
        change_told_if_fresh: Likewise, with fresh noise.
        linked: How often the best observer tells whether two pseudonyms, each with so many
            reports about the same value, are one device or two.
    """

    days: int
    value: LifeEpsilon
    value_if_fresh: LifeEpsilon
    one_day: LifeEpsilon | None
    change: LifeEpsilon | None
    value_told: Observer
    value_told_if_fresh: Observer
    change_told: Observer | None
    change_told_if_fresh: Observer | None
    linked: Observer


def observed_after(
    answer: DailyAnswer, days: Sequence[int], *, changes: int = 1
) -> list[ObservedDays]:
    """Return what an observer knows after each of some numbers of days.

    Args:
        answer: What devices answer every day.
        days: Each at least 1.
        changes: How often the value of the life that changes does, at least 1.

    Raises:
        InputError: Values out of range, or what cannot be enumerated; see `tell_apart`.
    """
    require_at_least(1, changes=changes)
    return [_after(answer, each, changes) for each in days]


def _after(answer: DailyAnswer, days: int, changes: int) -> ObservedDays:
    first, second = always(days, A), always(days, B)
    changed = changing(days, changes) if changes < days else None
    two_devices = np.repeat(np.array([A, OTHER_DEVICE], dtype=np.int64), days)
    return ObservedDays(
        days=days,
        value=life_epsilon(answer, first, second),
        value_if_fresh=life_epsilon(answer, first, second, redrawn=True),
        value_told=tell_apart(answer, first, second),
        value_told_if_fresh=tell_apart(answer, first, second, redrawn=True),
        one_day=life_epsilon(answer, first, one_day(days)) if days > 1 else None,
        change=None if changed is None else life_epsilon(answer, first, changed),
        change_told=None if changed is None else tell_apart(answer, first, changed),
        change_told_if_fresh=None
        if changed is None
        else tell_apart(answer, first, changed, redrawn=True),
        linked=tell_apart(answer, always(2 * days, A), two_devices),
    )


def response_changes(answer: MemoisedBits, value: float, other: float, public: Public) -> Floats:
    """Return how likely a change of value changes a device's permanent response. Exact.

    Where nothing is added to the permanent response, that is the chance that two days' reports
    prove a change; where it stays the same, reports hold no trace of one.

    Args:
        answer: Memoised bits.
        value: Of the one day.
        other: Of the other.
        public: ``(n, w) int64`` of devices, `fedhh.longitudinal.memoization.Memo.public`.

    Returns:
        ``(n,) float64``, over the devices' offsets and permanent responses.
    """
    rounded, threshold = answer.thresholds(np.array([value, other]))
    cuts = np.unique(np.concatenate([[0.0, 1.0], threshold[threshold < 1]]))
    total = np.zeros(len(public))
    for low, high in itertools.pairwise(cuts.tolist()):
        points = (rounded + (low >= threshold))[None, :]
        classes = answer.classes(public, points)
        first, second = (answer.chances(public, classes[:, day]) for day in (0, 1))
        equal = (first * second + (1 - first) * (1 - second)).prod(axis=1)
        total += (high - low) * np.where(classes[:, 0] == classes[:, 1], 0.0, 1 - equal)
    return total


@dataclass(frozen=True, kw_only=True)
class ValueGuess:
    """How often an observer of all reports names a device's value; simulated, prior uniform.

    Attributes:
        right: Share of simulated devices whose likeliest value is theirs.
        lower: Lower bound of it, Clopper and Pearson (1934); wrong with (1 - confidence) / 2.
        upper: Upper bound, likewise.
        confidence: Of both.
        posterior: Mean posterior probability of the true value.
        num_devices: How many were simulated.
        num_values: How many values they have.
    """

    right: float
    lower: float
    upper: float
    confidence: float
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
    memo = answer.begin(num_devices, rng=rng)
    truth = rng.integers(len(candidates), size=num_devices)
    held = candidates[truth]
    reports = []
    for _ in range(days):
        reports.append(answer.answer(memo, held, rng=rng))
        if redrawn and not isinstance(answer, FreshAnswer):
            memo = memo.with_new_keys(rng=rng).with_new_offsets(rng=rng)
    seen = np.stack(reports, axis=1)
    parts = [seen[:, day : day + 1] for day in range(days)] if redrawn else [seen]
    logs = np.zeros((num_devices, len(candidates)))
    for part in parts:
        for place, candidate in enumerate(candidates):
            life = np.full(part.shape[1], candidate)
            logs[:, place] += answer.log_prob(part, life, memo.public)
    posterior = np.exp(logs - special.logsumexp(logs, axis=1, keepdims=True))
    # Ties are guessed among at random.
    best = np.argmax(np.round(logs, 9) + 1e-10 * rng.random(logs.shape), axis=1)
    hits = int((best == truth).sum())
    low, high = clopper_pearson(hits, num_devices, error=(1 - confidence) / 2)
    return ValueGuess(
        right=hits / num_devices,
        lower=low,
        upper=high,
        confidence=confidence,
        posterior=float(posterior[np.arange(num_devices), truth].mean()),
        num_devices=num_devices,
        num_values=len(candidates),
    )
