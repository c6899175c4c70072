"""Samples of answers that devices remember: all reports of a device over its days."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedhh.arrays import Floats
from fedhh.audit.audit import Finding, audit
from fedhh.audit.claim import Answers, Claim
from fedhh.audit.devices import Statistics, log_ratio
from fedhh.longitudinal.memoization.bits import MemoizedBits, as_histories
from fedhh.validation import InputError

_REPORTS_AT_ONCE = 200_000


def stated_bits(answer: MemoizedBits, first: npt.ArrayLike, second: npt.ArrayLike) -> Answers:
    """Return what is stated of all reports of two histories of ``(days,)`` values, one a day.

    Permanent responses made of bits state more than their epsilon: so many independent bits, each
    of so much. Epsilon alone would allow the worst that has that epsilon.

    Raises:
        InputError: Histories of different length, or nothing is stated: what is memoized need not
            repeat and differ on the same days.
    """
    epsilon = answer.epsilon_of_histories(first, second)
    if not np.isfinite(epsilon):
        raise InputError(
            "Expected two histories whose values repeat and differ on the same days once they are "
            "rounded, whatever the device draws (grid points do), got others; say what is claimed "
            "of them."
        )
    whole, times = (epsilon or answer.epsilon_forever), int(epsilon > 0)
    if epsilon:
        of_bits = {round(each.epsilon, 12) for each in answer.pairs} - {0.0}
        if len(of_bits) == 1:
            # Rounded to 12 digits for the comparison only: the whole is shared out exactly.
            times = round(epsilon / of_bits.pop())
            whole = epsilon / times
    return Answers(each=whole, times=times, what="permanent bits")


def audit_answer(
    answer: MemoizedBits,
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    num_devices: int,
    rng: np.random.Generator,
    stated: Claim | None = None,
    redrawn: bool = False,
    confidence: float = 0.99,
) -> Finding:
    """Return what all reports of a device give away of its values, next to what is stated.

    A device that draws a permanent response anew, every day or after its value changed and changed
    back, gives away more with every day, to whoever reads all its reports.

    Args:
        answer: Its stated distribution only suggests statistics.
        first: ``(days,)`` values of one history, one a day.
        second: ``(days,)`` values of the other.
        num_devices: Devices of each history, at least 4.
        rng: Source of all coins.
        stated: What is claimed; if None, what the answer states of these histories.
        redrawn: Whether devices draw everything again every day, which memoization must prevent. An
            audit that does not refute the claim then has too few days, or too noisy ones, to detect
            faulty memoization.
        confidence: In (0, 1): an answer that keeps what is stated is refuted with at most the rest.

    Raises:
        InputError: The histories are not of one length, or no claim is given and the answer
            states nothing of them, see `stated_bits`.
    """
    histories = as_histories(first, second)
    claim = stated_bits(answer, *histories) if stated is None else stated
    samples = [
        _remembered(answer, histories, held, num_devices, rng, redrawn=redrawn) for held in (0, 1)
    ]
    return audit(samples[0], samples[1], claim, confidence=confidence)


def _remembered(
    answer: MemoizedBits,
    histories: tuple[Floats, Floats],
    held: int,
    num_devices: int,
    rng: np.random.Generator,
    *,
    redrawn: bool,
) -> Statistics:
    """Return the log-ratio of all reports together, and the sum of each report's own."""
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
            return log_ratio(logs[0], logs[1])

        joint.append(ratio(slice(None)))
        # Of responses that are drawn again, all reports together may be impossible under both.
        daily.append(sum(ratio(slice(day, day + 1)) for day in range(num_days)))
    return {
        "likelihood of all reports together": np.concatenate(joint),
        "sum over days of each report's own likelihood": np.concatenate(daily).round(9),
    }
