"""Questions of several runs to the same clients, which are drawn once to answer all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from fedhh.clients.answers.base import Answerer, BlockCounts
from fedhh.clients.answers.matching import Values
from fedhh.clients.answers.sampling import NoiseFreeQuestion
from fedhh.clients.populations.population import ClientBlock
from fedhh.questions.base import Aggregate, Answer, Diagnostics, PrefixQuestion, Question

_COUNTS = 3
"""Behind each run's tally: its reports, its dummies, its clients with items."""


@dataclass(frozen=True, kw_only=True, eq=False)
class JointQuestion(Question):
    """Asks a cohort several runs' questions; no protocol can ask it.

    A simulator's way to draw a client once where several runs ask it. Each run's answers and
    randomness are those of its own question: a block's randomness is addressed by pass and layer, and
    nothing of one answer reaches another.

    Attributes:
        questions: The questions, all of one cohort; see `can_join`.
    """

    questions: tuple[Question, ...]

    @classmethod
    def of(cls, questions: Sequence[Question]) -> Self:
        """Return the question that asks all of these."""
        first = questions[0]
        values = {field.name: getattr(first, field.name) for field in fields(Question)}
        return cls(**values, questions=tuple(questions))

    @property
    def tally_size(self) -> int:
        return sum(question.tally_size + _COUNTS for question in self.questions)

    @property
    def local_epsilon(self) -> float:
        """The sum over the runs; they are simulated next to each other, and ask nobody together."""
        return sum(question.local_epsilon for question in self.questions)

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


def can_join(question: Question) -> bool:
    """Return whether a question may be asked with others: its answer is a tally and nothing else."""
    asked = question.question if isinstance(question, NoiseFreeQuestion) else question
    return type(asked) is PrefixQuestion


class JointAnswerer(Answerer):
    """Answers each run's question from the same rows."""

    _question: JointQuestion

    def __init__(self, question: JointQuestion, answerers: Sequence[Answerer]) -> None:
        self._question = question
        self._answerers = answerers

    def add_block(self, rows: ClientBlock, block: int, tally: Values) -> BlockCounts:
        parts = self._question.parts(tally)
        for answerer, (part, behind) in zip(self._answerers, parts, strict=True):
            added = answerer.add_block(rows, block, part)
            counts = (added.num_reports, added.num_dummies, added.num_clients_with_items)
            np.add(behind, counts, out=behind)
        return BlockCounts(num_reports=0, num_dummies=0, num_clients_with_items=0)
