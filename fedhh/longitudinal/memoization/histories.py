"""Two histories of a device's values, and how well all of its reports distinguish them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from fedhh.longitudinal.memoization.bits import BitPair, MemoizedBits, log_of_days
from fedhh.longitudinal.memoization.daily import DailyAnswer, Floats, FreshAnswer, as_histories
from fedhh.longitudinal.memoization.losses import ExactLosses, total_variation
from fedhh.oracles.histogram_encoding import HistogramEncoding
from fedhh.validation import InputError, require_at_least

History = npt.NDArray[np.int64]

A, B = 0, 1
"""Days with the two values that are easiest to distinguish."""

OTHER_DEVICE = 2
"""A day on which another device, with the first value, reports in this one's place."""

MOST_OUTCOMES = 2**21
_LARGEST_ENUMERATED = 12


@dataclass(frozen=True, kw_only=True)
class HistoryEpsilon:
    """The privacy of one history against another, from all of a device's reports.

    Attributes:
        epsilon: Exact: the largest log-likelihood ratio of any reports, in either direction;
            math.inf if some reports are possible in one history only.
        unit: What is protected together.
        neighbors: The two histories.
        theorem: Where the number comes from.
        delta: 0.
    """

    epsilon: float
    unit: str
    neighbors: str
    theorem: str
    delta: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Observer:
    """Distinguishing probability: how often the best observer names the right one of two histories.

    Attributes:
        lower: Lower bound; 0.5 is guessing.
        upper: Upper bound. They differ where losses had to be rounded.
        question: What is guessed.
        method: How.
    """

    lower: float
    upper: float
    question: str
    method: str

    @property
    def middle(self) -> float:
        return (self.lower + self.upper) / 2


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


def history_epsilon(
    answer: DailyAnswer, first: History, second: History, *, redrawn: bool = False
) -> HistoryEpsilon:
    """Return the exact epsilon between two histories of the values easiest to distinguish.

    Args:
        answer: What the device answers every day.
        first: ``(t,) int64`` of `A`, `B`, `OTHER_DEVICE`.
        second: Likewise.
        redrawn: As if permanent responses were drawn anew every day: fresh noise with the same
            distribution of one report.

    Raises:
        InputError: Histories of different length, or too many days to enumerate.
    """
    if isinstance(answer, FreshAnswer):
        both = [answer.oracle.epsilon * _different_days(first, second)]
    else:
        both = [
            sum(
                times * each.largest
                for each, times in losses_of_histories(answer, *histories, redrawn=redrawn)
            )
            for histories in ((first, second), (second, first))
        ]
    return HistoryEpsilon(
        epsilon=max(0.0, *both),
        unit=f"user: all reports of a device over {len(first)} days",
        neighbors=f"{describe(first)} against {describe(second)}",
        theorem="basic composition over the days that differ"
        if redrawn or isinstance(answer, FreshAnswer)
        else "enumeration of a bit's reports by their counts, summed over independent bits",
    )


def distinguish(
    answer: DailyAnswer, first: History, second: History, *, redrawn: bool = False
) -> Observer:
    """Return the distinguishing probability of two histories, from all reports.

    With equal priors that is (1 + TV) / 2, TV the total variation distance of all reports; see
    `history_epsilon`.

    Raises:
        InputError: Too many days or too large a domain to enumerate, or an oracle with public
            coins.
    """
    low, high = total_variation(losses_of_histories(answer, first, second, redrawn=redrawn))
    return Observer(
        lower=0.5 + low / 2,
        upper=0.5 + high / 2,
        question=f"{describe(first)}, or {describe(second)}?",
        method="total variation distance, losses of independent bits convolved",
    )


def describe(history: History) -> str:
    """Return a history in words."""
    names = {A: "A", B: "B", OTHER_DEVICE: "another device's A"}
    starts = np.concatenate([[0], np.flatnonzero(np.diff(history)) + 1])
    if len(starts) == 1:
        return f"always {names[int(history[0])]}"
    if len(starts) <= 3:
        return ", ".join(f"{names[int(history[s])]} from day {s}" for s in starts.tolist())
    return f"{len(starts) - 1} changes between A and B"


def losses_of_histories(
    answer: DailyAnswer, first: History, second: History, *, redrawn: bool = False
) -> list[tuple[ExactLosses, int]]:
    """Return the independent losses of the first history over the second, and their numbers."""
    as_histories(first, second)
    if isinstance(answer, FreshAnswer):
        return [(_losses_of_one_report(answer), _different_days(first, second))]
    if not isinstance(answer, MemoizedBits):
        raise InputError(
            f"Expected an answer made of bits, or fresh noise, got {type(answer).__name__}."
        )
    pairs = answer.farthest
    if redrawn:
        days = _different_days(first, second)
        once = [(_losses_of_bit(answer, pair, always(1, A), always(1, B)), pair) for pair in pairs]
        return [(each, pair.times * days) for each, pair in once if days]
    if (first == A).all() and (second == B).all():
        pairs = tuple(pair for pair in pairs if pair.first != pair.second)
    return [(_losses_of_bit(answer, pair, first, second), pair.times) for pair in pairs]


def _different_days(first: History, second: History) -> int:
    """Return on how many days values differ; another device's A is an A."""
    as_histories(first, second)
    return int(np.count_nonzero((first == B) != (second == B)))


def _losses_of_one_report(answer: FreshAnswer) -> ExactLosses:
    oracle = answer.oracle
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
    ones: Sequence[npt.NDArray[np.int64]],
    sizes: npt.NDArray[np.int64],
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
