"""What a simulator carries back from clients: the aggregate, and what no server may see."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from fedhh.questions.clients import Sent
from fedhh.questions.question import Aggregate, Tally


@dataclass(frozen=True, kw_only=True)
class Attendance:
    """How many devices of a round's cohort were there, and how long it was open.

    Attributes:
        pass_index: Which pass, from 0.
        layer: Which layer, from 1.
        asked: Clients of the cohort.
        eligible: Those whose devices ever answer.
        dropped: Devices that checked in before the round closed, and dropped out.
        answers: Clients that answered.
        fewest: Answers that the round accepts at least.
        hours: From its beginning to its end.
        waited_hours: How long of that was beyond the deadline.
    """

    pass_index: int
    layer: int
    asked: int
    eligible: int
    dropped: int
    answers: int
    fewest: int
    hours: float
    waited_hours: float = 0.0

    @property
    def is_missed(self) -> bool:
        """Whether fewer clients answered than the round accepts."""
        return self.answers < self.fewest


@dataclass(frozen=True, kw_only=True)
class Diagnostics:
    """What only a simulator can know of a round; it never reaches a protocol.

    Attributes:
        num_dummies: Contributions that were the dummy.
        num_clients_with_items: Clients that held at least one candidate.
        is_sampled: Whether the tally was drawn at once, and no report was made.
        attendance: How many devices were there; None where all clients always answer.
        fakes: What fake clients sent; None where there are none.
    """

    num_dummies: int = 0
    num_clients_with_items: int = 0
    is_sampled: bool = False
    attendance: Attendance | None = None
    fakes: Aggregate | None = field(default=None, compare=False)

    def merge(self, other: Diagnostics) -> Diagnostics:
        """Return the diagnostics of both parts."""
        return Diagnostics(
            num_dummies=self.num_dummies + other.num_dummies,
            num_clients_with_items=self.num_clients_with_items + other.num_clients_with_items,
            is_sampled=self.is_sampled or other.is_sampled,
            attendance=self.attendance or other.attendance,
            fakes=self.fakes or other.fakes,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Answer:
    """A worker's answer for some blocks: what the server may see, and what it may not."""

    aggregate: Aggregate
    diagnostics: Diagnostics = field(default_factory=Diagnostics)

    @classmethod
    def of(cls, tally: Tally, sent: Sent) -> Self:
        """Return what was sent, and the tally to which it was added."""
        return cls(
            aggregate=Aggregate(
                tally=tally,
                num_reports=sent.num_reports,
                num_clients=sent.num_clients,
                messages=sent.messages,
            ),
            diagnostics=Diagnostics(
                num_dummies=sent.num_dummies, num_clients_with_items=sent.num_clients_with_items
            ),
        )

    def merge(self, other: Answer) -> Answer:
        """Return the answer for both sets of blocks."""
        return Answer(
            aggregate=self.aggregate.merge(other.aggregate),
            diagnostics=self.diagnostics.merge(other.diagnostics),
        )
