"""What discoveries share that ask one question: once, or several times with answers added up."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

from fedhh.accounting.rounds import Decision, PlannedRound
from fedhh.protocol import Answers, Heard, RunState
from fedhh.questions.question import Question
from fedhh.server.local_discovery import LocalProtocol
from fedhh.settings import Layers


@dataclass(frozen=True, kw_only=True)
class OneQuestion(LocalProtocol):
    """A discovery with one question. Its state is the answers so far.

    Attributes:
        repeats: Rounds that ask the question; their answers are added up. Where all clients answer
            in each round, they then say one of their words after another, with a smaller epsilon.
    """

    repeats: Layers = 1

    @property
    def num_cohorts(self) -> int:
        return self.repeats

    def repeated(self, domain_size: int) -> list[PlannedRound]:
        """Return the rounds that ask the question, none of which waits for another one."""
        first = self.planned_round(1, self.cohort_clients, domain_size)
        return [
            replace(first, layer=number, opens_with_previous=number > 1)
            for number in range(1, self.repeats + 1)
        ]

    def ask(self, planned: PlannedRound, run: RunState) -> Question:
        return self.question()

    def hear(self, run: RunState, answers: Answers) -> Heard:
        """Return the answers so far, and of the last round what they say together."""
        aggregate = answers.aggregate
        so_far = replace(
            answers, aggregate=aggregate if run.own is None else run.own.merge(aggregate)
        )
        if answers.planned.layer < self.repeats:
            undecided = Decision(num_candidates=0, num_kept=0)
            return Heard(own=so_far.aggregate, decision=undecided)
        return self.decode(so_far)

    @abstractmethod
    def question(self) -> Question:
        """Return the broadcast."""

    @abstractmethod
    def decode(self, answers: Answers) -> Heard:
        """Return what all answers say together."""
