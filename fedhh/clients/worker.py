"""Answers questions for blocks of clients; the same object in process and on Ray."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fedhh.clients.population import Population, client_order
from fedhh.questions.answer import Answer
from fedhh.questions.channel import Answering, together
from fedhh.questions.clients import Sent
from fedhh.questions.matching import WordMatcher
from fedhh.simulation.executor import Broadcast, Progress

_MESSAGES_AT_ONCE = 64
"""Blocks whose messages are held one by one."""


class ClientWorker:
    """Holds a population and answers for its clients.

    What it draws is addressed by (purpose, pass, layer, block), so any worker gives the same
    answer for the same block.
    """

    remembers = False

    def __init__(self, population: Population, *, seed: int) -> None:
        """Prepare to answer for a population in a run of this seed.

        Args:
            population: Whose clients answer.
            seed: The run's seed.
        """
        self._population = population
        self._seed = seed
        self._order = client_order(population, seed=seed)
        self._words = WordMatcher(population.lexicon)
        self._broadcast: Broadcast | None = None
        self._answering: Any = None

    def __getstate__(self) -> dict[str, Any]:
        # What is made of the population's words stays here: each node makes it of its own.
        return {**self.__dict__, "_words": None, "_broadcast": None, "_answering": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._words = WordMatcher(self._population.lexicon)

    def answer(
        self,
        broadcast: Broadcast,
        blocks: Iterable[int],
        progress: Progress | None = None,
    ) -> Answer:
        """Return the merged answers of some blocks, see `fedhh.simulation.executor.Worker`."""
        question, who = broadcast.question, broadcast.who
        if self._broadcast is not broadcast:
            # Before the next, so that what is held of words is not held twice.
            self._broadcast, self._answering = broadcast, None
            self._answering = Answering(question, self._words, self._seed)
        tally = np.zeros(question.tally_size, dtype=np.int64)
        sent: list[Sent] = []
        for block in blocks:
            clients = who.clients(self._order, block)
            if len(clients):
                rows = self._population.block(clients)
                sent.append(self._answering.add_block(rows, block, tally))
                if len(sent) > _MESSAGES_AT_ONCE:
                    sent = [together(question, sent)]
            if progress is not None:
                progress(who.cohort.size_of(block))
        return Answer.of(tally, together(question, sent))
