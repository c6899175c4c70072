"""Audits of memoized answers: whether a device's second answer really is its first one again.

A device that draws a permanent response anew, every day or after its value changed and changed
back, gives away more with every day, to whoever reads all its reports.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedhh.accounting.empirical_epsilon import Floats, check_levels, rounded_ratio
from fedhh.longitudinal.audit.findings import LongitudinalFinding, find_in_samples
from fedhh.longitudinal.audit.trade_off import Answers, TradeOff
from fedhh.longitudinal.memoization.bits import MemoizedBits
from fedhh.longitudinal.memoization.daily import DailyAnswer, Values, as_histories
from fedhh.validation import InputError, require_at_least

_REPORTS_AT_ONCE = 200_000

_JOINT = "likelihood of all reports together"
_DAILY = "sum over days of each report's own likelihood"


def stated_of_histories(
    answer: DailyAnswer, first: npt.ArrayLike, second: npt.ArrayLike
) -> TradeOff:
    """Return what is stated of all reports of two histories of ``(days,)`` values, one a day.

    Permanent responses made of bits state more than their epsilon: so many independent bits, each
    of so much. Epsilon alone would allow the worst that has that epsilon.

    Raises:
        InputError: Histories of different length, or nothing is stated: the answer is not
            memoized, or what it memoizes need not repeat and differ on the same days.
    """
    epsilon = answer.epsilon_of_histories(first, second)
    if not np.isfinite(answer.epsilon_forever):
        raise InputError(
            f"Expected a memoized answer, which states what all its reports give away, got "
            f"{type(answer).__name__}."
        )
    if not np.isfinite(epsilon):
        raise InputError(
            "Expected two histories whose values repeat and differ on the same days once they are "
            "rounded, whatever the device draws (grid points do), got others; say what is claimed "
            "of them."
        )
    if isinstance(answer, MemoizedBits) and epsilon:
        of_bits = {round(each.epsilon, 12) for each in answer.farthest} - {0.0}
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
    stated: TradeOff | None = None,
    redrawn: bool = False,
    confidence: float = 0.99,
) -> LongitudinalFinding:
    """Return lower bounds on what all reports of a device give away of its values.

    Args:
        answer: Its stated distribution only suggests events.
        first: ``(days,)`` values of one history, one a day.
        second: ``(days,)`` values of the other.
        num_devices: Devices of each history, at least 4; half of them choose the events.
        rng: Source of all coins.
        stated: What is claimed; if None, what the answer states of these histories.
        redrawn: Whether devices draw everything again every day, which memoization must prevent. An
            audit that does not refute the claim then has too few days, or too noisy ones, to detect
            faulty memoization.
        confidence: In (0, 1): an answer that keeps what is stated is refuted with at most the rest.

    Raises:
        InputError: The histories are not of one length, or no claim is given and the answer
            states nothing of them, see `stated_of_histories`.
    """
    check_levels(0.0, confidence)
    require_at_least(4, num_devices=num_devices)
    histories = as_histories(first, second)
    if stated is None:
        stated = stated_of_histories(answer, *histories)
    samples = [
        _statistics(answer, histories, held, num_devices, rng, redrawn=redrawn) for held in (0, 1)
    ]
    return find_in_samples(*samples, level="user", stated=stated, confidence=confidence)


def _statistics(
    answer: DailyAnswer,
    histories: tuple[Values, Values],
    held: int,
    num_devices: int,
    rng: np.random.Generator,
    *,
    redrawn: bool,
) -> dict[str, Floats]:
    num_days = histories[0].size
    joint, daily = [], []
    at_once = max(1, _REPORTS_AT_ONCE // num_days)
    for start in range(0, num_devices, at_once):
        size = min(at_once, num_devices - start)
        state = answer.begin(size, rng=rng)
        days = []
        for value in histories[held]:
            today = state.with_new_keys(rng=rng) if redrawn else state
            days.append(answer.answer(today, np.full(size, value), rng=rng))
        reports = np.stack(days, axis=1)

        def ratio(days: slice, reports=reports, state=state) -> Floats:  # type: ignore[no-untyped-def]
            logs = [answer.log_prob(reports[:, days], own[days], state.public) for own in histories]
            return rounded_ratio(logs[0], logs[1])

        joint.append(ratio(slice(None)))
        # Of responses that are drawn again, all reports together may be impossible under both.
        daily.append(sum(ratio(slice(day, day + 1)) for day in range(num_days)))
    return {_JOINT: np.concatenate(joint), _DAILY: np.concatenate(daily).round(9)}
