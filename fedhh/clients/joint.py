"""Questions of several runs to the same clients, which are drawn once to answer all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedhh.questions.answer import Answer, Diagnostics
from fedhh.questions.channel import Answering
from fedhh.questions.clients import ClientBlock, Sent
from fedhh.questions.cohort import Cohort
from fedhh.questions.question import Aggregate, AnyQuestion
from fedhh.questions.reports import Reports

Values = npt.NDArray[np.int64]

_COUNTS = 3
"""Behind each run's tally: its reports, its dummies, its clients with items."""


@dataclass(frozen=True, kw_only=True, eq=False)
class JointQuestion:
    """Asks a cohort several runs' questions; no protocol can ask it.

    A simulator's way to draw a client once where several runs ask it. Each run's answers and
    randomness are those of its own question: a block's randomness is addressed by pass and layer,
    and nothing of one answer reaches another.

    Attributes:
        questions: The questions, all of one cohort; see `can_join`.
    """

    questions: tuple[AnyQuestion, ...]

    @property
    def cohort(self) -> Cohort:
        """Who is asked."""
        return self.questions[0].cohort

    @property
    def tally_size(self) -> int:
        """Length of all runs' tallies with their counts."""
        return sum(question.tally_size + _COUNTS for question in self.questions)

    def parts(self, tally: Values) -> Iterator[tuple[Values, Values]]:
        """Yield views of each run's tally and of its counts."""
        start = 0
        for question in self.questions:
            stop = start + question.tally_size
            yield tally[start:stop], tally[stop : stop + _COUNTS]
            start = stop + _COUNTS

    def split(self, answer: Answer) -> list[Answer]:
        """Return each run's answer out of all clients' to this question."""
        return [
            Answer(
                aggregate=Aggregate(
                    tally=tally,
                    num_reports=int(counts[0]),
                    num_clients=answer.aggregate.num_clients,
                ),
                diagnostics=Diagnostics(
                    num_dummies=int(counts[1]),
                    num_clients_with_items=int(counts[2]),
                    counted=answer.diagnostics.counted,
                ),
            )
            for tally, counts in self.parts(answer.aggregate.tally)
        ]


def can_join(question: AnyQuestion) -> bool:
    """Return whether a question may be asked with others: its answer is a tally alone."""
    return isinstance(question.channel, Reports) and question.channel.adds_up


class JointAnswering:
    """Answers each run's question from the same rows."""

    def __init__(self, question: JointQuestion, answers: Sequence[Answering]) -> None:
        self._question, self._answers = question, answers

    def add_block(self, rows: ClientBlock, block: int, tally: Values) -> Sent:
        """Add all runs' answers, see `Answering.add_block`."""
        parts = self._question.parts(tally)
        for answering, (part, behind) in zip(self._answers, parts, strict=True):
            added = answering.add_block(rows, block, part)
            counts = (added.num_reports, added.num_dummies, added.num_clients_with_items)
            np.add(behind, counts, out=behind)
        return Sent(num_reports=0, num_dummies=0, num_clients_with_items=0)
