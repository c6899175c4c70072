"""Two histories of a device's values, and how well all of its reports distinguish them.

Unit: all reports of one device, linked; delta is 0. Epsilons are exact: of bits, by enumeration of
a bit's reports by their counts, summed over independent bits; of fresh noise by basic composition
over the days that differ. *Success* is the probability that the best observer names the right one
of two histories, (1 + total variation) / 2: 0.5 is guessing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from fedhh.arrays import Floats, Ints
from fedhh.longitudinal.memoization.bits import BitPair, MemoizedBits, as_histories, log_of_days
from fedhh.longitudinal.memoization.losses import ExactLosses, total_variation
from fedhh.oracles.base import FrequencyOracle
from fedhh.oracles.histogram_encoding import HistogramEncoding
from fedhh.validation import InputError, require_at_least, require_inside

History = npt.NDArray[np.int64]
Answer = MemoizedBits | FrequencyOracle
"""What a device answers every day: bits that it remembers, or an oracle's noise, drawn anew."""

A, B = 0, 1
"""Days with the two values that are easiest to distinguish."""

OTHER_DEVICE = 2
"""A day on which another device, with the first value, reports in this one's place."""

MOST_OUTCOMES = 2**21
_LARGEST_ENUMERATED = 12


@dataclass(frozen=True, kw_only=True)
class Observed:
    """What all reports of a device say of one history against another.

    Attributes:
        epsilon: The largest log-likelihood ratio of any reports, in either direction; math.inf if
            some reports are possible in one history only.
        lower: Lower bound on the best observer's success.
        upper: Upper bound. They differ where losses had to be rounded.
    """

    epsilon: float
    lower: float
    upper: float

    @property
    def middle(self) -> float:
        return (self.lower + self.upper) / 2


@dataclass(frozen=True, kw_only=True)
class ObservedDays:
    """What all reports of a device say after some days, of the values easiest to distinguish.

    Attributes:
        days: How many reports.
        value: Of always A against always B.
        value_if_fresh: The same, if every report had noise of its own with the same distribution.
        one_day: Of always A against A but for one day; None for a single day.
        change: Of always A against values that change; None where there are too few days.
        change_if_fresh: Likewise, with fresh noise.
        linked: Of two pseudonyms, each with so many reports about the same value: whether they are
            one device or two.
    """

    days: int
    value: Observed
    value_if_fresh: Observed
    one_day: Observed | None
    change: Observed | None
    change_if_fresh: Observed | None
    linked: Observed


def always(days: int, what: int = A) -> History:
    """Return so many days with one value."""
    require_at_least(1, days=days)
    return np.full(days, what, dtype=np.int64)


def changing(days: int, changes: int = 1) -> History:
    """Return days that go from A to B and back, so often, in parts of nearly equal length."""
    require_at_least(1, days=days)
    require_at_least(0, changes=changes)
    if changes >= days:
        raise InputError(
            f"Expected changes < days={days}, got changes={changes}: a day has one value."
        )
    return np.asarray(np.arange(days) * (changes + 1) // days % 2, dtype=np.int64)


def one_day(days: int) -> History:
    """Return days with value A but for one, the middle one."""
    history = always(days)
    history[days // 2] = B
    return history


def observe(answer: Answer, first: History, second: History, *, redrawn: bool = False) -> Observed:
    """Return what all reports say of two histories of the values easiest to distinguish.

    Args:
        answer: What the device answers every day.
        first: ``(t,) int64`` of `A`, `B`, `OTHER_DEVICE`.
        second: Likewise.
        redrawn: As if permanent responses were drawn anew every day: fresh noise with the same
            distribution of one report.

    Raises:
        InputError: Histories of different length, too many days or too large a domain to enumerate,
            or an oracle with public coins.
    """
    forth, back = (
        _losses(answer, *histories, redrawn=redrawn)
        for histories in ((first, second), (second, first))
    )
    if isinstance(answer, FrequencyOracle):
        epsilons = [answer.epsilon * times for _, times in forth]
    else:
        epsilons = [sum(times * each.largest for each, times in part) for part in (forth, back)]
    low, high = total_variation(forth)
    return Observed(epsilon=max(0.0, *epsilons), lower=0.5 + low / 2, upper=0.5 + high / 2)


def observed_after(answer: Answer, days: int, *, changes: int = 1) -> ObservedDays:
    """Return what an observer knows after so many days; a changing value does so ``changes`` times.

    Raises:
        InputError: Values out of range, or what cannot be enumerated; see `observe`.
    """
    require_at_least(1, changes=changes)
    still = always(days)
    changed = changing(days, changes) if changes < days else None
    two_devices = np.repeat(np.array([A, OTHER_DEVICE], dtype=np.int64), days)
    return ObservedDays(
        days=days,
        value=observe(answer, still, always(days, B)),
        value_if_fresh=observe(answer, still, always(days, B), redrawn=True),
        one_day=observe(answer, still, one_day(days)) if days > 1 else None,
        change=None if changed is None else observe(answer, still, changed),
        change_if_fresh=None if changed is None else observe(answer, still, changed, redrawn=True),
        linked=observe(answer, always(2 * days), two_devices),
    )


def _losses(
    answer: Answer, first: History, second: History, *, redrawn: bool
) -> list[tuple[ExactLosses, int]]:
    """Return the independent losses of the first history over the second, and their numbers."""
    as_histories(first, second)
    # Another device's A is an A.
    apart = int(np.count_nonzero((first == B) != (second == B)))
    if isinstance(answer, FrequencyOracle):
        return [(_losses_of_one_report(answer), apart)]
    if redrawn:
        days = [always(1, A), always(1, B)]
        return [
            (_losses_of_bit(answer, pair, *days), pair.times * apart)
            for pair in answer.pairs
            if apart
        ]
    pairs = answer.pairs
    if (first == A).all() and (second == B).all():
        pairs = tuple(pair for pair in pairs if pair.first != pair.second)
    return [(_losses_of_bit(answer, pair, first, second), pair.times) for pair in pairs]


def _losses_of_one_report(oracle: FrequencyOracle) -> ExactLosses:
    too_many = isinstance(oracle, HistogramEncoding) or oracle.domain_size > _LARGEST_ENUMERATED
    if oracle.has_public_coins or too_many:
        raise InputError(
            f"Expected an oracle without public coins and domain_size <= {_LARGEST_ENUMERATED}, "
            f"whose reports can be enumerated, got {type(oracle).__name__} with "
            f"domain_size={oracle.domain_size}; try grr."
        )
    space = oracle.report_space()
    return ExactLosses.of(oracle.log_prob(space, 0), oracle.log_prob(space, 1))


def _losses_of_bit(
    answer: MemoizedBits, pair: BitPair, first: History, second: History
) -> ExactLosses:
    """Return the loss of one bit's reports over two histories.

    Days with the same values in both are exchangeable: how many ones they have is all.
    """
    groups, sizes = np.unique(np.stack([first, second]), axis=1, return_counts=True)
    if answer.daily_one == 1 and answer.daily_zero == 0:
        # Every day shows the permanent bit itself: the first says it all.
        sizes = np.ones_like(sizes)
    if math.prod((sizes + 1).tolist()) > MOST_OUTCOMES:
        raise InputError(
            f"Expected days with at most {MOST_OUTCOMES} counts of ones to enumerate, got groups "
            f"of {', '.join(map(str, sizes.tolist()))} days; ask about fewer."
        )
    ones = [np.arange(size + 1) for size in sizes]
    logs = [_log_of_history(answer, pair, labels, ones, sizes) for labels in groups]
    ways = _on_grid(
        [
            special.gammaln(size + 1) - special.gammaln(k + 1) - special.gammaln(size - k + 1)
            for k, size in zip(ones, sizes, strict=True)
        ]
    )
    return ExactLosses.of((logs[0] + ways).ravel(), (logs[1] + ways).ravel())


def _log_of_history(
    answer: MemoizedBits,
    pair: BitPair,
    labels: History,
    ones: Sequence[Ints],
    sizes: Ints,
) -> Floats:
    """Return log-probabilities of a bit's reports in order, on the grid of counts of ones."""
    chances = {A: pair.first, B: pair.second, OTHER_DEVICE: pair.first}
    total: Floats | float = 0.0
    for label in np.unique(labels).tolist():
        parts = []
        for chance, weight in (
            (answer.daily_one, chances[label]),
            (answer.daily_zero, 1 - chances[label]),
        ):
            days = [
                log_of_days(k, size - k, chance) if each == label else np.zeros(len(k))
                for k, size, each in zip(ones, sizes, labels, strict=True)
            ]
            parts.append(math.log(weight) + _on_grid(days))
        total = total + np.logaddexp(*parts)
    return np.asarray(total, dtype=np.float64)


def _on_grid(axes: Sequence[Floats]) -> Floats:
    """Return the sums of one number from each axis, one axis per array."""
    return np.asarray(sum(np.ix_(*axes), np.zeros([len(axis) for axis in axes])))


@dataclass(frozen=True, kw_only=True)
class DeviceFound:
    """How often a simulated observer finds a device again among others, next to guessing.

    ``lower`` and ``upper`` are bounds of Clopper and Pearson (1934), both right with
    ``confidence``.
    """

    right: float
    lower: float
    upper: float
    confidence: float
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
    then guessing is all that is left, but for what is public.
    """
    require_at_least(1, days=days, num_trials=num_trials)
    require_at_least(2, num_devices=num_devices)
    require_inside(0, 1, confidence=confidence)
    hits = 0
    for _ in range(num_trials):
        scores = np.zeros(num_devices)
        for pair in answer.pairs:
            scores += pseudonym_scores(answer, pair, days, num_devices, rng)
        # The device is the first; ties are guessed among at random.
        better = np.count_nonzero(scores[1:] > scores[0] + 1e-9)
        equal = np.count_nonzero(np.abs(scores[1:] - scores[0]) <= 1e-9)
        hits += int(not better and rng.random() * (equal + 1) < 1)
    low, high = stats.binomtest(hits, num_trials).proportion_ci(confidence, method="exact")
    return DeviceFound(
        right=hits / num_trials,
        lower=float(low),
        upper=float(high),
        confidence=confidence,
        by_chance=1 / num_devices,
        num_trials=num_trials,
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
