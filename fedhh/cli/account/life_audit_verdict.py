"""What an audit of lives found, beside what is stated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fedhh.accounting import CapReplay, LifeFinding
from fedhh.budgets.cap import Cap


@dataclass(frozen=True, kw_only=True)
class SentRecords:
    """How many records devices sent of a use case, beside its cap.

    Attributes:
        use_case: Its name.
        epsilon: Of a record.
        cap: What is stated.
        num_days: Days of the lives.
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
        """Most records that the cap allows on a day of these lives."""
        return self.cap.most_in_any(1, of_days=self.num_days)

    @property
    def most_in_life(self) -> int:
        """Most records that the cap allows in these lives."""
        return self.cap.most_in(0, self.num_days)

    @property
    def refuted(self) -> bool:
        """Whether a device sent more than the cap allows."""
        return self.replay.worst is not None


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
        """What all stated answers cost together."""
        return self.epsilon * self.found.stated.num_answers

    @property
    def refuted(self) -> bool:
        """Whether more is shown than is stated."""
        return self.found.refuted


@dataclass(frozen=True, kw_only=True)
class LifeVerdict:
    """All that was found.

    Attributes:
        title: What was audited.
        num_days: Days of the lives.
        num_devices: Devices, of each life where they were simulated.
        confidence: Of what samples show.
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
    notes: tuple[str, ...] = field(default=())

    @property
    def refuted(self) -> bool:
        """Whether a claim is."""
        return any(each.refuted for each in self.sent) or any(each.refuted for each in self.shown)
