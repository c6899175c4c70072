"""Longitudinal audits of memoized answers and of audited budget managers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fedhh.longitudinal.audit.answer_audit import RedrawnDaily, audit_answer
from fedhh.longitudinal.audit.cap_replay import replay_cap
from fedhh.longitudinal.audit.verdict import LongitudinalVerdict, SentRecords, ShownAnswers
from fedhh.longitudinal.ledger import rules_of_configuration
from fedhh.longitudinal.ledger.macos import live, records_by_day
from fedhh.longitudinal.ledger.macos_presets import CONFIGURATIONS
from fedhh.longitudinal.memoization import DailyAnswer, MemoisedRappor, make_answer
from fedhh.random import Stream, generator
from fedhh.validation import InputError, require_at_least, require_choice, require_inside

FEWEST_DEVICES = 8
_LONGEST = 1_000
_EVENTS = 10


def audit_memo(
    answer: str,
    *,
    local_epsilon: float,
    num_days: int = 60,
    num_devices: int = 3_000,
    confidence: float = 0.99,
    seed: int = 0,
    **settings: Any,
) -> LongitudinalVerdict:
    """Return lower bounds on what a memoized answer gave away, next to what is stated.

    Devices answer every day about one value, and about two in turn; neighbors have the other value
    on every day. Unit: all reports of one device, linked; delta 0. The control draws the permanent
    response again every day.

    Args:
        answer: One of `fedhh.longitudinal.memoization.ANSWERS` but "fresh".
        local_epsilon: Of all reports about one value, as stated.
        num_days: A report on each, 1 to 1000.
        num_devices: With each of two neighboring inputs, at least 8.
        confidence: Of the verdict, all parts together, in (0, 1).
        seed: Of the devices.
        settings: Of the answer.

    Raises:
        InputError: A value is out of range, or the answer is not memoized.
    """
    check_audit(num_days, confidence, seed)
    require_at_least(FEWEST_DEVICES, devices=num_devices)
    made = make_answer(answer, local_epsilon=local_epsilon, **settings)
    if not math.isfinite(made.epsilon_forever):
        raise InputError(
            "Expected a memoised answer, which states what all its reports give away, got "
            f"{answer}."
        )
    pair = _pair(made)
    lives = {
        "always one value": (np.full(num_days, pair[0]), np.full(num_days, pair[1])),
        "two values in turn": (np.resize(pair, num_days), np.resize(pair[::-1], num_days)),
    }
    if num_days == 1:
        del lives["two values in turn"]
    shown = []
    for place, (what, (first, second)) in enumerate(lives.items()):
        finding, control = (
            audit_answer(
                each,
                first,
                second,
                num_devices=num_devices,
                rng=generator(seed, Stream.MEMO, place, number),
                confidence=1 - (1 - confidence) / len(lives),
            )
            for number, each in enumerate((made, RedrawnDaily(memoised=made)))
        )
        shown.append(
            ShownAnswers(
                audited=f"{answer}, {what}",
                unit="permanent bits",
                epsilon=finding.stated.answers[0].epsilon,
                found=finding,
                control=control,
            )
        )
    return LongitudinalVerdict(
        title=f"{answer}, a report a day",
        num_days=num_days,
        num_devices=num_devices,
        confidence=confidence,
        shown=tuple(shown),
        notes=(
            "Of lives whose values repeat and differ on the same days: that a value changed is "
            "not hidden by any memo.",
        ),
    )


def audit_budget_manager(preset: str, *, num_days: int = 30, seed: int = 0) -> LongitudinalVerdict:
    """Return what a saturating device sent under an audited budget manager, next to its balances.

    Args:
        preset: One of `fedhh.longitudinal.ledger.macos_presets.CONFIGURATIONS`.
        num_days: Days from opt-in, 1 to 1000.
        seed: Of the device.

    Raises:
        InputError: A value is out of range, or there is no such system.
    """
    check_audit(num_days, seed=seed)
    require_choice(CONFIGURATIONS, preset=preset)
    rules = rules_of_configuration(CONFIGURATIONS[preset])
    device = live(
        CONFIGURATIONS[preset],
        num_days=num_days,
        events_per_day=_EVENTS,
        rng=generator(seed, Stream.QUEUE),
    )
    names = [charge.use_case for charge in rules.charges]
    counts = records_by_day(device.reports, names, num_days)
    days = np.arange(num_days)
    return LongitudinalVerdict(
        title=f"a busy device under {preset}",
        num_days=num_days,
        num_devices=1,
        confidence=1.0,
        sent=tuple(
            SentRecords(
                use_case=charge.use_case,
                epsilon=charge.epsilon,
                cap=rules.caps[charge.use_case],
                num_days=num_days,
                replay=replay_cap(
                    rules.caps[charge.use_case], np.zeros_like(days), days, counts[:, index]
                ),
            )
            for index, charge in enumerate(rules.charges)
        ),
        notes=("Its caps are those of balances, which unused budget raises without limit.",),
    )


def check_audit(num_days: int, confidence: float = 0.5, seed: int = 0) -> None:
    """Raise InputError unless days, confidence and seed are those of an audit."""
    require_inside(0, 1, confidence=confidence)
    require_at_least(0, seed=seed)
    require_at_least(1, days=num_days)
    if num_days > _LONGEST:
        raise InputError(f"Expected days <= {_LONGEST}, got days={num_days}.")


def _pair(answer: DailyAnswer) -> tuple[float, float]:
    """Return two values that are told apart best, or nearly so."""
    if not isinstance(answer, MemoisedRappor):
        return 0, 1
    # Values that share bits of a filter are told apart less.
    candidates = np.arange(64)
    filters = answer.filters.filters(np.zeros(len(candidates), dtype=np.int64), candidates)
    return 0, int((filters & filters[0]).sum(axis=1).argmin())
