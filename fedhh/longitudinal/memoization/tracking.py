"""Whether memoised bits make a device known again, by simulation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from fedhh.accounting.empirical_epsilon import clopper_pearson
from fedhh.longitudinal.memoization.bits import BitPair, MemoisedBits
from fedhh.validation import InputError, require_at_least, require_inside

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class DeviceFound:
    """How often an observer finds a device again among others; simulated.

    Attributes:
        right: Share of trials in which the best guess was the device.
        lower: Lower bound of it, Clopper and Pearson (1934); wrong with (1 - confidence) / 2.
        upper: Upper bound, likewise.
        confidence: Of both.
        by_chance: What guessing gives.
        num_trials: How many trials.
    """

    right: float
    lower: float
    upper: float
    confidence: float
    by_chance: float
    num_trials: int


def find_device(
    answer: MemoisedBits,
    *,
    days: int,
    num_devices: int,
    num_trials: int,
    rng: np.random.Generator,
    confidence: float = 0.99,
) -> DeviceFound:
    """Return how often a device's reports under a new pseudonym are found to be its own.

    The observer holds ``days`` reports of one device, then as many of each of ``num_devices`` new
    pseudonyms, of which one is that device. All have the same value and the same public part, so
    that nothing but permanent responses tells them apart. It picks the likeliest; that is the best
    there is. Had the device changed its value, its new responses would be independent of the old:
    then guessing is all that is left, but for `DailyAnswer.public_bits`.

    Args:
        answer: Memoised bits.
        days: Under each pseudonym.
        num_devices: Pseudonyms to choose from, at least 2.
        num_trials: How often to try.
        rng: Source of all coins.
        confidence: Of the interval, in (0, 1).
    """
    if not isinstance(answer, MemoisedBits):
        raise InputError(
            f"Expected memoised bits, which alone make a device known again, got "
            f"{type(answer).__name__}."
        )
    require_at_least(1, days=days, num_trials=num_trials)
    require_at_least(2, num_devices=num_devices)
    require_inside(0, 1, confidence=confidence)
    hits = 0
    for _ in range(num_trials):
        scores = np.zeros(num_devices)
        for pair in answer.farthest:
            scores += _scores(answer, pair, days, num_devices, rng)
        # The device is the first; ties are guessed among at random.
        better = np.count_nonzero(scores[1:] > scores[0] + 1e-9)
        equal = np.count_nonzero(np.abs(scores[1:] - scores[0]) <= 1e-9)
        hits += int(not better and rng.random() * (equal + 1) < 1)
    low, high = clopper_pearson(hits, num_trials, error=(1 - confidence) / 2)
    return DeviceFound(
        right=hits / num_trials,
        lower=low,
        upper=high,
        confidence=confidence,
        by_chance=1 / num_devices,
        num_trials=num_trials,
    )


def _scores(
    answer: MemoisedBits, pair: BitPair, days: int, num_devices: int, rng: np.random.Generator
) -> Floats:
    """Return each pseudonym's log-likelihood ratio of being the device, from some of its bits."""
    permanent = rng.random((num_devices, pair.times)) < pair.first
    chances = np.where(permanent, answer.daily_one, answer.daily_zero)
    before = rng.binomial(days, chances[0])
    after = rng.binomial(days, chances)
    # Relative to what the old reports alone say of each permanent bit. Finite, so that a
    # pseudonym that is ruled out by one bit is last, whatever the others say.
    with np.errstate(divide="ignore"):
        one, zero = (
            _log_counts(after, days, chance) for chance in (answer.daily_one, answer.daily_zero)
        )
        known_one, known_zero = (
            np.log(weight) + _log_counts(before, days, chance)
            for weight, chance in (
                (pair.first, answer.daily_one),
                (1 - pair.first, answer.daily_zero),
            )
        )
        known = np.logaddexp(known_one, known_zero)
        same = np.logaddexp(known_one - known + one, known_zero - known + zero)
        other = np.logaddexp(np.log(pair.first) + one, np.log1p(-pair.first) + zero)
    return np.asarray(np.maximum(same - other, -1e6).sum(axis=1))


def _log_counts(ones: Counts, days: int, chance: float) -> Floats:
    return np.asarray(special.xlogy(ones, chance) + special.xlog1py(days - ones, -chance))
