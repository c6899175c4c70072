"""Answers questions for blocks of clients; the same object in process and on Ray."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from fedhh.clients.population import Population, client_order
from fedhh.questions.answer import Answer, Diagnostics
from fedhh.questions.channel import Answering, Channel
from fedhh.questions.clients import ClientBlock
from fedhh.questions.matching import WordMatcher
from fedhh.questions.question import Aggregate, AnyQuestion, Messages
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
        self._answering: list[Answering] = []

    def __getstate__(self) -> dict[str, Any]:
        # What is made of the population's words stays here: each node makes it of its own.
        return {**self.__dict__, "_words": None, "_broadcast": None, "_answering": []}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._words = WordMatcher(self._population.lexicon)

    def answer(
        self,
        broadcast: Broadcast,
        blocks: Iterable[int],
        progress: Progress | None = None,
    ) -> list[Answer]:
        """Return the merged answers of some blocks, see `fedhh.simulation.executor.Worker`."""
        sums = [
            _Sum(question, answering)
            for question, answering in zip(
                broadcast.questions, self._answering_of(broadcast), strict=True
            )
        ]
        who = broadcast.who
        for block in blocks:
            clients = who.clients(self._order, block)
            if len(clients):
                rows = self._population.block(clients)
                for each in sums:
                    each.add(rows, block)
            if progress is not None:
                progress(who.cohort.size_of(block))
        return [each.answer() for each in sums]

    def _answering_of(self, broadcast: Broadcast) -> list[Answering]:
        if self._broadcast is not broadcast:
            self._broadcast = broadcast
            self._answering = [
                Answering(question, self._words, self._seed) for question in broadcast.questions
            ]
        return self._answering


class _Sum:
    """The answer to one question, to which blocks are added."""

    def __init__(self, question: AnyQuestion, answering: Answering) -> None:
        self._question, self._answering = question, answering
        self._aggregate, self._diagnostics = Aggregate.empty(question.tally_size), Diagnostics()
        self._messages: list[Messages | None] = []

    def add(self, rows: ClientBlock, block: int) -> None:
        """Add a block's reports."""
        before, known = self._aggregate, self._diagnostics
        sent = self._answering.add_block(rows, block, before.tally)
        self._messages.append(sent.messages)
        if len(self._messages) > _MESSAGES_AT_ONCE:
            self._messages = [self._channel.merged(self._question, self._messages)]
        self._aggregate = replace(
            before,
            num_reports=before.num_reports + sent.num_reports,
            num_clients=before.num_clients + len(rows.clients) - sent.num_lost,
        )
        self._diagnostics = replace(
            known,
            num_dummies=known.num_dummies + sent.num_dummies,
            num_clients_with_items=known.num_clients_with_items + sent.num_clients_with_items,
        )

    def answer(self) -> Answer:
        """Return it."""
        messages = self._channel.merged(self._question, self._messages)
        return Answer(
            aggregate=replace(self._aggregate, messages=messages),
            diagnostics=self._diagnostics,
        )

    @property
    def _channel(self) -> Channel:
        channel: Channel = self._question.channel
        return channel
