"""A protocol on a small population: what its run was, and other ways to come to the same."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, reduce
from typing import Any

import numpy as np

from fedhh.accounting.plan import Plan
from fedhh.clients.clients import Clients
from fedhh.clients.worker import ClientWorker
from fedhh.protocol import DiscoveryProtocol, RoundSummary
from fedhh.questions.answer import Answer
from fedhh.questions.question import Aggregate, Question
from fedhh.simulation.executor import Broadcast, Executor, InProcessExecutor, Progress
from fedhh.testing.checks import expect
from fedhh.words.lexicon import Lexicon

LETTERS = "abcdef"
"""The letters of a small population's words."""


def small_population(
    num_clients: int = 6_000, *, num_words: int = 400, words_per_client: int = 4, seed: int = 5
) -> Clients:
    """Return clients with words of 1 to 6 of six letters, drawn by a Zipf law.

    A client draws ``words_per_client`` times of so many different words, each with a count of 1 to
    3; the seed is of the words and of who holds which.
    """
    rng = np.random.default_rng(seed)
    words: list[str] = []
    while len(words) < num_words:
        word = "".join(rng.choice(list(LETTERS), size=rng.integers(1, 7)))
        if word not in words:
            words.append(word)
    distribution = 1 / (np.arange(num_words) + 1.0)
    rows = num_clients * words_per_client
    return Clients.from_rows(
        name="zipf",
        lexicon=Lexicon(words=words),
        clients=np.repeat(np.arange(num_clients), words_per_client),
        word_ids=rng.choice(num_words, size=rows, p=distribution / distribution.sum()),
        counts=rng.integers(1, 4, size=rows),
        num_clients=num_clients,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Round:
    """A round as it was: the state before, the broadcast, its answers, the state after."""

    before: Any
    question: Question
    aggregate: Aggregate
    after: Any


@dataclass(frozen=True, eq=False)
class ProtocolTrial:
    """A protocol's settings, and the clients that it is tried on.

    Attributes:
        protocol: The settings, small enough for the population: a check makes up to three runs.
        population: Who is asked; `small_population` by default.
        workers: Numbers of Ray workers with which a run has to give the same bits; none by
            default, since Ray takes seconds to start.
        bad_settings: Fields with values that must be refused; if None, -1 for every integer, NaN
            for every float and an unknown word for every string.
    """

    protocol: DiscoveryProtocol
    population: Clients = field(default_factory=small_population)
    workers: Sequence[int] = ()
    bad_settings: Sequence[tuple[str, Any]] | None = None

    def __str__(self) -> str:
        return str(self.protocol)

    def settled(self, seed: int) -> DiscoveryProtocol:
        """Return the settings that a run of a seed has; fresh ones every time."""
        settled = self.protocol.settle(num_clients=self.population.num_clients, seed=seed)
        return copy.deepcopy(settled)

    @property
    def refused(self) -> Sequence[tuple[str, Any]]:
        """Fields with values that must be refused."""
        if self.bad_settings is not None:
            return self.bad_settings
        meaningless: dict[type, Any] = {int: -1, float: math.nan, str: "no such choice"}
        # Fields only: whatever else a protocol has worked out and kept is no setting.
        settings: Any = self.protocol
        kinds = {each.name: type(getattr(settings, each.name)) for each in fields(settings)}
        return [(name, meaningless[kind]) for name, kind in kinds.items() if kind in meaningless]

    @cached_property
    def _runs(self) -> dict[int, list[Round]]:
        return {}

    def run(self, seed: int) -> list[Round]:
        """Return the rounds of a run in process, all blocks in order; made once per seed."""
        if seed not in self._runs:
            protocol = self.settled(seed)
            protocol.check_population(self.population.num_clients)
            executor = InProcessExecutor(ClientWorker(self.population, seed=seed))
            self._runs[seed] = list(run_rounds(protocol, executor))
            expect(self._runs[seed], "next_question(initialize()) is None: the run has no round")
        return self._runs[seed]

    def last_state(self, seed: int) -> Any:
        return self.run(seed)[-1].after

    def plan(self, seed: int) -> Plan:
        return self.settled(seed).plan

    def summaries(self, seed: int) -> list[RoundSummary]:
        return list(self.last_state(seed).history)


def run_rounds(protocol: DiscoveryProtocol, executor: Executor) -> Iterator[Round]:
    """Run a protocol; it never sees more of an answer than a plain `Aggregate`."""
    state = protocol.initialize()
    while (question := protocol.next_question(state)) is not None:
        answer = executor.answer(Broadcast.to_all(question))
        before, state = state, protocol.finish_round(state, question, answer.aggregate)
        yield Round(before=before, question=question, aggregate=answer.aggregate, after=state)


class GroupedExecutor(InProcessExecutor):
    """Answers blocks in groups, last group first, as workers that are done in any order would."""

    def __init__(self, worker: ClientWorker, *, num_groups: int) -> None:
        super().__init__(worker)
        self._num_groups = num_groups

    def answer(self, broadcast: Broadcast, progress: Progress | None = None) -> Answer:
        num_blocks = broadcast.cohort.num_blocks
        groups = min(self._num_groups, num_blocks)
        parts = (
            self._worker.answer(broadcast, range(index, num_blocks, groups))
            for index in reversed(range(groups))
        )
        return reduce(Answer.merge, parts)
