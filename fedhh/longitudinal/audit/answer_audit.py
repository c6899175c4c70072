"""Audits of memoised answers: whether a device's second answer really is its first one again.

A device that draws a permanent response anew, every day or after its value changed and changed
back, gives away more with every day. Whoever reads all its reports finds that out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedhh.accounting.empirical_epsilon import Floats, check_levels, rounded_ratio
from fedhh.longitudinal.audit.findings import LifeFinding, find_in_samples
from fedhh.longitudinal.audit.trade_off import Answers, TradeOff
from fedhh.longitudinal.memoization.bits import BitPair, MemoisedBits
from fedhh.longitudinal.memoization.daily import DailyAnswer, Memo, Public, Reports
from fedhh.validation import InputError, require_at_least

_REPORTS_AT_ONCE = 200_000

JOINT = "law of all reports together"
DAILY = "sum over days of each report's own law"


@dataclass(frozen=True, kw_only=True)
class RedrawnDaily(DailyAnswer):
    """An answer whose devices draw everything again every day: what a memo must prevent.

    States what the memoised answer states. Where an audit does not refute this one, its days are
    too few, or the daily noise is too large, for it to see any fault of a memo.

    Attributes:
        memoised: The answer that should have been given.
    """

    memoised: DailyAnswer

    def begin(self, num_devices: int, *, rng: np.random.Generator) -> Memo:
        return self.memoised.begin(num_devices, rng=rng)

    def answer(self, memo: Memo, values: npt.ArrayLike, *, rng: np.random.Generator) -> Reports:
        """Return a day's reports, from permanent responses that are drawn for this day."""
        return self.memoised.answer(memo.with_new_keys(rng=rng), values, rng=rng)

    def log_prob(self, reports: Reports, values: npt.ArrayLike, public: Public) -> Floats:
        return self.memoised.log_prob(reports, values, public)

    def estimate(self, reports: Reports, public: Public) -> Floats:
        return self.memoised.estimate(reports, public)

    def epsilon_after(self, days: int) -> float:
        return self.memoised.epsilon_after(days)

    @property
    def epsilon_forever(self) -> float:
        return self.memoised.epsilon_forever

    def epsilon_of_same_pattern(self, width: int) -> float:
        return self.memoised.epsilon_of_same_pattern(width)

    def epsilon_of_lives(self, first: npt.ArrayLike, second: npt.ArrayLike) -> float:
        return self.memoised.epsilon_of_lives(first, second)


def stated_of_lives(answer: DailyAnswer, first: npt.ArrayLike, second: npt.ArrayLike) -> TradeOff:
    """Return what is stated of all reports of two lives.

    Permanent responses made of bits state more than their epsilon: so many independent bits, each
    of so much. Epsilon alone would allow the worst that has that epsilon.

    Args:
        answer: Gives one report a day.
        first: ``(days,)`` values of one life, one a day.
        second: ``(days,)`` values of the other.

    Raises:
        InputError: Lives of different length, or nothing is stated: the answer is not memoised, or
            what it memoises need not repeat and differ on the same days.
    """
    epsilon = answer.epsilon_of_lives(first, second)
    if not np.isfinite(answer.epsilon_forever):
        raise InputError(
            f"Expected a memoised answer, which states what all its reports give away, got "
            f"{type(answer).__name__}."
        )
    if not np.isfinite(epsilon):
        raise InputError(
            "Expected two lives whose values repeat and differ on the same days once they are "
            "rounded, whatever the device draws (grid points do), got others; say what is claimed "
            "of them."
        )
    if isinstance(answer, RedrawnDaily):
        return stated_of_lives(answer.memoised, first, second)
    if isinstance(answer, MemoisedBits) and epsilon:
        of_bits = {round(_epsilon_of(each), 12) for each in answer.farthest} - {0.0}
        if len(of_bits) == 1:
            # Rounded to 12 digits for the comparison only: the whole is shared out exactly.
            times = round(epsilon / of_bits.pop())
            return TradeOff((Answers(epsilon=epsilon / times, times=times),))
    if not epsilon:
        return TradeOff((Answers(epsilon=answer.epsilon_forever, times=0),))
    return TradeOff((Answers(epsilon=epsilon, times=1),))


def audit_answer(
    answer: DailyAnswer,
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    num_devices: int,
    rng: np.random.Generator,
    level: str = "user",
    stated: TradeOff | None = None,
    confidence: float = 0.99,
) -> LifeFinding:
    """Return what all reports of a device give away of its values, at least.

    Args:
        answer: Whatever answers; its stated law only suggests events.
        first: ``(days,)`` values of one life, one a day.
        second: ``(days,)`` values of the other.
        num_devices: Devices that live each life, at least 4; half of them choose the events.
        rng: Source of all coins.
        level: What the two lives differ in, for the record.
        stated: What is claimed; if None, what the answer states of these lives.
        confidence: In (0, 1): an answer that keeps what is stated is refuted with at most the rest.

    Raises:
        InputError: The lives are not of one length, or no claim is given and the answer states
            nothing of them, see `stated_of_lives`.
    """
    check_levels(0.0, confidence)
    require_at_least(4, num_devices=num_devices)
    lives = [np.asarray(values) for values in (first, second)]
    if lives[0].shape != lives[1].shape or lives[0].ndim != 1 or not lives[0].size:
        raise InputError(
            f"Expected two lives of one length, at least a day, got shapes {lives[0].shape} and "
            f"{lives[1].shape}."
        )
    if stated is None:
        stated = stated_of_lives(answer, lives[0], lives[1])
    samples = [_statistics(answer, lives, held, num_devices, rng) for held in (0, 1)]
    return find_in_samples(
        samples[0], samples[1], level=level, stated=stated, confidence=confidence
    )


def _epsilon_of(bits: BitPair) -> float:
    first, second = bits.first, bits.second
    return max(abs(math.log(first / second)), abs(math.log((1 - first) / (1 - second))))


def _statistics(
    answer: DailyAnswer,
    lives: list[npt.NDArray[np.generic]],
    held: int,
    num_devices: int,
    rng: np.random.Generator,
) -> dict[str, Floats]:
    num_days = lives[0].size
    joint, daily = [], []
    at_once = max(1, _REPORTS_AT_ONCE // num_days)
    for start in range(0, num_devices, at_once):
        size = min(at_once, num_devices - start)
        memo = answer.begin(size, rng=rng)
        reports = np.stack(
            [answer.answer(memo, np.full(size, value), rng=rng) for value in lives[held]], axis=1
        )

        def ratio(days: slice, reports=reports, memo=memo) -> Floats:  # type: ignore[no-untyped-def]
            laws = [answer.log_prob(reports[:, days], life[days], memo.public) for life in lives]
            return rounded_ratio(laws[0], laws[1])

        joint.append(ratio(slice(None)))
        # Of a memo that is drawn again, all reports together may be impossible under both lives.
        daily.append(sum(ratio(slice(day, day + 1)) for day in range(num_days)))
    return {JOINT: np.concatenate(joint), DAILY: np.concatenate(daily).round(9)}
