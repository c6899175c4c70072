"""Answers questions for blocks of clients; the same object in process and on Ray."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.clients.joint import JointAnswering, JointQuestion
from fedhh.clients.order import ClientOrder
from fedhh.clients.populations.population import Population
from fedhh.questions.answer import Answer
from fedhh.questions.channel import Answering, Channel
from fedhh.questions.cohort import Cohort
from fedhh.questions.matching import WordMatcher
from fedhh.questions.question import Aggregate, AnyQuestion, Messages
from fedhh.simulation.executor import Progress

_MESSAGES_AT_ONCE = 64
"""Blocks whose messages are held one by one."""


class ClientWorker:
    """Holds a population and answers for its clients.

    What it draws is addressed by (purpose, pass, layer, block), so any worker gives the same
    answer for the same block.
    """

    def __init__(self, population: Population, *, seed: int, counts: bool = False) -> None:
        """Prepare to answer for a population in a run of this seed.

        Args:
            population: Whose clients answer.
            seed: The run's seed.
            counts: Whether to count what clients hold as they answer, for evaluation.
        """
        self._population = population
        self._counts = counts
        self._seed = seed
        self._words = WordMatcher(population.lexicon)
        self._question: AnyQuestion | JointQuestion | None = None
        self._answering: Answering | JointAnswering | None = None
        self._order = ClientOrder(population, seed=seed)

    def __getstate__(self) -> dict[str, Any]:
        # What is made of the population's words stays here: each node makes it of its own.
        return {**self.__dict__, "_words": None, "_question": None, "_answering": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._words = WordMatcher(self._population.lexicon)

    def answer(
        self,
        question: AnyQuestion | JointQuestion,
        blocks: Iterable[int],
        progress: Progress | None = None,
        *,
        onto: Answer | None = None,
    ) -> Answer:
        """Return the merged answer of some blocks of the question's cohort.

        Args:
            question: The broadcast.
            blocks: Numbers of the blocks to answer for.
            progress: Called with the number of clients after each block.
            onto: An earlier answer to the question, see `fedhh.simulation.executor.Worker`.
        """
        answering = self._answering_of(question)
        before = onto or Answer(aggregate=Aggregate.empty(question.tally_size))
        tally = before.aggregate.tally
        reports, clients_asked = before.aggregate.num_reports, before.aggregate.num_clients
        diagnostics = before.diagnostics
        messages = [before.aggregate.messages]
        # In a fresh order a client may answer again, and one that is not there is not drawn.
        counter = None
        is_whole = question.cohort.presence is None and self._order.is_their_own(question.cohort)
        if self._counts and is_whole:
            counter = self._population.counter(diagnostics.counted)
        for block in blocks:
            clients = self._who_answers(question.cohort, block)
            if not len(clients):
                continue
            rows = self._population.block(clients)
            if counter is not None:
                counter.add(rows)
            counts = answering.add_block(rows, block, tally)
            reports += counts.num_reports
            clients_asked += len(clients) - counts.num_lost
            messages.append(counts.messages)
            if len(messages) > _MESSAGES_AT_ONCE:
                messages = [_merged(question, messages)]
            diagnostics = replace(
                diagnostics,
                num_dummies=diagnostics.num_dummies + counts.num_dummies,
                num_clients_with_items=diagnostics.num_clients_with_items
                + counts.num_clients_with_items,
            )
            if progress is not None:
                progress(len(clients))
        aggregate = Aggregate(
            tally=tally,
            num_reports=reports,
            num_clients=clients_asked,
            messages=_merged(question, messages),
        )
        if counter is not None:
            diagnostics = replace(diagnostics, counted=counter.counted)
        return Answer(aggregate=aggregate, diagnostics=diagnostics)

    def _answering_of(self, question: AnyQuestion | JointQuestion) -> Answering | JointAnswering:
        if self._question is not question or self._answering is None:
            self._question = question
            if isinstance(question, JointQuestion):
                each = [Answering(one, self._words, self._seed) for one in question.questions]
                self._answering = JointAnswering(question, each)
            else:
                self._answering = Answering(question, self._words, self._seed)
        return self._answering

    def _who_answers(self, cohort: Cohort, block: int) -> npt.NDArray[np.int64]:
        """Return ``(n,) int64``: the numbers of a block's clients that answer."""
        clients = self._order.clients(cohort, block)
        if cohort.presence is None:
            return clients
        return clients[cohort.presence.is_there(clients, block, seed=self._seed)]


def _merged(
    question: AnyQuestion | JointQuestion, messages: Sequence[Messages | None]
) -> Messages | None:
    if isinstance(question, JointQuestion):
        return None
    channel: Channel = question.channel
    return channel.merged(question, messages)
