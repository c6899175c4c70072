"""Longitudinal audits in one call, and their verdicts: what was found, next to what is stated."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from fedhh.longitudinal.audit.answer_audit import audit_answer
from fedhh.longitudinal.audit.cap_replay import CapReplay, Overspending, replay_cap
from fedhh.longitudinal.audit.findings import LongitudinalFinding
from fedhh.longitudinal.ledger import rules_of_configuration
from fedhh.longitudinal.ledger.cap import Cap
from fedhh.longitudinal.ledger.macos import records_by_day, simulate
from fedhh.longitudinal.ledger.macos_presets import CONFIGURATIONS
from fedhh.longitudinal.memoization import DailyAnswer, MemoizedRappor, make_answer
from fedhh.random import Stream, generator
from fedhh.validation import InputError, require_at_least, require_choice, require_inside

FEWEST_DEVICES = 8
_LONGEST = 1_000
_EVENTS = 10


@dataclass(frozen=True, kw_only=True)
class SentRecords:
    """How many records devices sent of a use case, compared with its cap.

    Attributes:
        use_case: Its name.
        epsilon: Of a record.
        cap: What is stated.
        num_days: Days of every device.
        replay: What was sent.
        names: What a log calls the devices of the replay's examples, by number.
    """

    use_case: str
    epsilon: float
    cap: Cap
    num_days: int
    replay: CapReplay
    names: Mapping[int, str] = field(default_factory=dict)

    @property
    def most_in_a_day(self) -> int:
        """Most records that the cap allows on one of the days."""
        return self.cap.most_in_any(1, of_days=self.num_days)

    @property
    def most_in_lifetime(self) -> int:
        """Most records that the cap allows in all."""
        return self.cap.most_in(0, self.num_days)

    @property
    def refuted(self) -> bool:
        return self.replay.worst is not None

    def to_dict(self) -> dict[str, Any]:
        replay = self.replay
        return {
            "use_case": self.use_case,
            "local_epsilon": self.epsilon,
            "num_devices": replay.num_devices,
            "num_overspending": replay.num_overspending,
            "most_in_a_day": replay.most_in_a_day,
            "stated_in_a_day": self.most_in_a_day,
            "most_in_lifetime": replay.most_in_lifetime,
            "stated_in_lifetime": self.most_in_lifetime,
            "loss_of_lifetime": replay.most_in_lifetime * self.epsilon,
            "stated_loss_of_lifetime": self.most_in_lifetime * self.epsilon,
            "first": self._spent(replay.first),
            "worst": self._spent(replay.worst),
            "verdict": verdict_word(self.refuted),
        }

    def _spent(self, spent: Overspending | None) -> dict[str, Any] | None:
        if spent is None:
            return None
        return {
            **asdict(spent),
            "device": self.names.get(spent.device, spent.device),
            "loss": spent.sent * self.epsilon,
            "stated_loss": spent.stated * self.epsilon,
        }


@dataclass(frozen=True, kw_only=True)
class ShownAnswers:
    """How much the reports of devices show.

    Attributes:
        audited: Whose.
        unit: What an answer is.
        epsilon: What each costs, as stated.
        found: What is shown, perhaps of answers that cost less.
        control: Of an answer that is drawn again every day; None where there is none.
    """

    audited: str
    unit: str
    epsilon: float
    found: LongitudinalFinding
    control: LongitudinalFinding | None = None

    @property
    def stated_loss(self) -> float:
        return self.epsilon * self.found.stated.num_answers

    @property
    def refuted(self) -> bool:
        return self.found.refuted

    def to_dict(self) -> dict[str, Any]:
        found, control = self.found, self.control
        return {
            "audited": self.audited,
            "unit": found.level,
            "answers": self.unit,
            "at_least_answers": found.least_answers,
            "stated_answers": found.stated.num_answers,
            "detects_from": found.detects_from,
            "control": None
            if control is None
            else {
                "at_least_answers": control.least_answers,
                "at_least": control.found.epsilon,
                "verdict": verdict_word(control.refuted),
            },
            "audited_epsilon_of_one": found.stated.answers[0].epsilon,
            "at_least": found.found.epsilon,
            "claimed": found.stated.epsilon,
            "stated_epsilon_of_one": self.epsilon,
            "stated_loss": self.stated_loss,
            "event": found.found.event,
            "statistic": found.statistic,
            "power": found.power,
            "false_alarm": found.false_alarm,
            "allowed_power": found.allowed,
            "num_samples": found.found.num_samples,
            "confidence": found.found.confidence,
            "verdict": verdict_word(self.refuted),
        }


@dataclass(frozen=True, kw_only=True)
class LongitudinalVerdict:
    """All that a longitudinal audit found; neighbors are swaps.

    Attributes:
        title: What was audited.
        num_days: Days of every device.
        num_devices: Devices; of each of two neighboring inputs where they were simulated.
        confidence: Of what samples show, all parts together.
        sent: Numbers of records, by use case.
        shown: What reports show.
        notes: What a reader has to know besides.
    """

    title: str
    num_days: int
    num_devices: int
    confidence: float
    sent: tuple[SentRecords, ...] = ()
    shown: tuple[ShownAnswers, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def refuted(self) -> bool:
        return any(each.refuted for each in self.sent) or any(each.refuted for each in self.shown)

    def to_dict(self) -> dict[str, Any]:
        return {
            "audited": self.title,
            "num_days": self.num_days,
            "num_devices": self.num_devices,
            "confidence": self.confidence if self.shown else None,
            "neighboring": "swap",
            "sent": [part.to_dict() for part in self.sent],
            "shown": [part.to_dict() for part in self.shown],
            "notes": list(self.notes),
            "verdict": verdict_word(self.refuted),
        }


def verdict_word(refuted: bool) -> str:
    """Return "refuted" or "consistent"."""
    return "refuted" if refuted else "consistent"


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
            "Expected a memoized answer, which states what all its reports give away, got "
            f"{answer}."
        )
    pair = _pair(made)
    histories = {"always one value": (np.full(num_days, pair[0]), np.full(num_days, pair[1]))}
    if num_days > 1:
        turns = np.resize(pair, num_days), np.resize(pair[::-1], num_days)
        histories["two values in turn"] = turns
    shown = []
    for place, (what, (first, second)) in enumerate(histories.items()):
        finding, control = (
            audit_answer(
                made,
                first,
                second,
                num_devices=num_devices,
                rng=generator(seed, Stream.MEMOIZATION, place, int(redrawn)),
                confidence=1 - (1 - confidence) / len(histories),
                redrawn=redrawn,
            )
            for redrawn in (False, True)
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
            "Of histories whose values repeat and differ on the same days: that a value changed is "
            "not hidden by memoization.",
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
    device = simulate(
        CONFIGURATIONS[preset],
        num_days=num_days,
        events_per_day=_EVENTS,
        rng=generator(seed, Stream.QUEUE),
    )
    names = [charge.use_case for charge in rules.charges]
    counts = records_by_day(device.reports, names, num_days)
    days = np.arange(num_days)
    return LongitudinalVerdict(
        title=f"a saturating device under {preset}",
        num_days=num_days,
        num_devices=1,
        confidence=1.0,
        sent=tuple(
            SentRecords(
                use_case=charge.use_case,
                epsilon=charge.epsilon,
                cap=cap,
                num_days=num_days,
                replay=replay_cap(cap, np.zeros_like(days), days, sent),
            )
            for charge, cap, sent in zip(rules.charges, rules.caps.values(), counts.T, strict=True)
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
    """Return two values that are the easiest to distinguish, or nearly so."""
    if not isinstance(answer, MemoizedRappor):
        return 0, 1
    # Values that share bits of a filter are harder to distinguish.
    candidates = np.arange(64)
    filters = answer.filters.filters(np.zeros(len(candidates), dtype=np.int64), candidates)
    return 0, int((filters & filters[0]).sum(axis=1).argmin())
