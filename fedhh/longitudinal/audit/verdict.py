"""What a longitudinal audit found, next to what is stated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from fedhh.longitudinal.audit.cap_replay import CapReplay, Overspending
from fedhh.longitudinal.audit.findings import LifeFinding
from fedhh.longitudinal.ledger.cap import Cap


@dataclass(frozen=True, kw_only=True)
class SentRecords:
    """How many records devices sent of a use case, next to its cap.

    Attributes:
        use_case: Its name.
        epsilon: Of a record.
        cap: What is stated.
        num_days: Days of every device.
        replay: What was sent.
        names: What a log calls the devices that are spoken of, by number.
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
    def most_in_life(self) -> int:
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
            "most_in_life": replay.most_in_life,
            "stated_in_life": self.most_in_life,
            "loss_of_life": replay.most_in_life * self.epsilon,
            "stated_loss_of_life": self.most_in_life * self.epsilon,
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
        audited: Of what.
        unit: What an answer is.
        epsilon: What each costs, as stated.
        found: What is shown, perhaps of answers that cost less.
        control: Of an answer that is drawn again every day; None where there is none.
    """

    audited: str
    unit: str
    epsilon: float
    found: LifeFinding
    control: LifeFinding | None = None

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
