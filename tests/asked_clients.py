"""Who was asked, as a population sees it, and what was answered."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fedhh.arrays import Ints
from fedhh.clients.clients import Clients
from fedhh.questions.answer import Answer
from fedhh.questions.clients import ClientBlock
from fedhh.questions.question import Question
from fedhh.simulation.executor import Broadcast, Executor, Worker


class Recording:
    """A population that keeps the clients of each block it was asked for, in their order."""

    def __init__(self, population: Clients) -> None:
        self._population = population
        self.blocks: list[Ints] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._population, name)

    def block(self, clients: Ints) -> ClientBlock:
        self.blocks.append(clients)
        return self._population.block(clients)

    @property
    def asked(self) -> Ints:
        """All of them."""
        return np.concatenate(self.blocks)


def answered(
    asked: Executor | Worker, question: Question, blocks: Iterable[int] | None = None
) -> Answer:
    """Return the answer of a question's whole cohort, or of some of its blocks by a worker."""
    broadcast = Broadcast.to_all(question)
    if isinstance(asked, Executor):
        return asked.answer(broadcast)
    every = range(question.cohort.num_blocks)
    return asked.answer(broadcast, every if blocks is None else blocks)
