"""Asks the honest clients of a cohort through another executor, and answers for the fake ones.

The fake clients of a round are those that stand between its first and its last position. Without
them, honest clients are again a cohort, of the same clients in their own order, so who asks them
knows nothing of fakes. What the fakes send is drawn once a round, here, from streams of their own:
it is the same on any number of workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from fedhh.adversary import FakeGroup, FakePositions, Goal, Strategy
from fedhh.clients.populations.population import StoredPopulation
from fedhh.clients.worker import ClientWorker
from fedhh.questions.answer import Answer, Diagnostics, FakeReports
from fedhh.questions.channel import Channel
from fedhh.questions.choice import Attack
from fedhh.questions.clients import Sent
from fedhh.questions.cohort import Cohort
from fedhh.questions.matching import WordMatcher
from fedhh.questions.question import Aggregate, AnyQuestion, merge_messages
from fedhh.random import Stream, generator
from fedhh.simulation.executor import Executor, Progress
from fedhh.words.lexicon import Lexicon

_AT_ONCE = 4096
"""Fake clients whose reports are held at a time."""

_POSITIONS, _COINS = 1, 2
"""First numbers of the paths of what is drawn; 0 is that of the targets."""


class AdversaryExecutor(Executor):
    """Adds what fake clients send to what honest ones do."""

    def __init__(
        self,
        executor: Executor,
        *,
        words: Sequence[str],
        groups: tuple[FakeGroup, ...],
        num_honest: int,
        goal: Goal,
        strategy: Strategy,
        seed: int,
    ) -> None:
        """Ask honest clients through this executor.

        Args:
            executor: The way to the honest clients; closed with this one.
            words: What the fake clients are about.
            groups: The fake clients by their words.
            num_honest: Clients of the population.
            goal: What they are after.
            strategy: How.
            seed: The run's seed.
        """
        self._executor = executor
        self._groups = groups
        self._num_honest = num_honest
        self._goal, self._strategy = goal, strategy
        self._seed = seed
        self._lexicon = Lexicon(words=list(words))
        self._matcher = WordMatcher(self._lexicon)
        self._positions: FakePositions | None = None
        self._redraw: int | None = None

    def answer(self, question: AnyQuestion, progress: Progress | None = None) -> Iterator[Answer]:
        """Yield the honest clients' answers, then that of the fake ones."""
        cohort = question.cohort
        positions = self._positions_of(cohort)
        stop = cohort.start + cohort.size
        before, behind = positions.before(cohort.start), positions.before(stop)
        honest = replace(cohort, start=cohort.start - before, size=cohort.size - behind + before)
        if honest.size:
            yield from self._executor.answer(replace(question, cohort=honest), progress)
        if behind > before:
            yield self._fake_answer(
                question, positions.numbers(cohort.start, stop, len(self._groups)).tolist()
            )
            if progress is not None:
                progress(behind - before)
        elif not honest.size:
            yield Answer(aggregate=Aggregate.empty(question.tally_size))

    def close(self) -> None:
        self._executor.close()

    def _positions_of(self, cohort: Cohort) -> FakePositions:
        """Return where fakes stand in a cohort's order of clients."""
        if self._positions is None or self._redraw != cohort.redraw:
            path = (_POSITIONS, 0 if cohort.redraw is None else 1 + cohort.redraw)
            rng = generator(self._seed, Stream.ADVERSARY, *path)
            self._positions = FakePositions.draw(self._groups, self._num_honest, rng=rng)
            self._redraw = cohort.redraw
        return self._positions

    def _fake_answer(self, question: AnyQuestion, numbers: list[int]) -> Answer:
        if self._goal != "demote" and self._strategy == "input":
            aggregate = self._honest_reports(question, numbers)
        else:
            aggregate = self._crafted_reports(question, numbers)
        return Answer(
            aggregate=aggregate,
            diagnostics=Diagnostics(
                fakes=FakeReports(
                    clients=sum(numbers), reports=aggregate.num_reports, tally=aggregate.tally
                )
            ),
        )

    def _honest_reports(self, question: AnyQuestion, numbers: list[int]) -> Aggregate:
        """Return what clients with these words send, who do as they are asked."""
        holders, words = [], []
        first = 0
        for group, number in zip(self._groups, numbers, strict=True):
            clients = np.arange(first, first + number)
            holders.append(np.repeat(clients, len(group.targets)))
            words.append(np.tile(group.targets, number))
            first += number
        fakes = StoredPopulation.from_rows(
            name="fake clients",
            lexicon=self._lexicon,
            clients=np.concatenate(holders).astype(np.int64),
            word_ids=np.concatenate(words).astype(np.int64),
            num_clients=first,
        )
        # Another seed than the run's: the same streams would give fakes the coins of honest ones.
        coins = generator(self._seed, Stream.ADVERSARY, _COINS)
        worker = ClientWorker(fakes, seed=int(coins.integers(2**63)))
        cohort = Cohort(start=0, size=first)
        answer = worker.answer(replace(question, cohort=cohort), range(cohort.num_blocks))
        return answer.aggregate

    def _crafted_reports(self, question: AnyQuestion, numbers: list[int]) -> Aggregate:
        tally = np.zeros(question.tally_size, dtype=np.int64)
        sent: list[Sent] = []
        for part, (group, number) in enumerate(zip(self._groups, numbers, strict=True)):
            path = (_COINS, question.pass_index, question.layer, part)
            whole = Attack(
                question=question,
                words=self._matcher,
                targets=np.asarray(group.targets, dtype=np.int64),
                goal="demote" if self._goal == "demote" else "promote",
                num_clients=number,
                rng=generator(self._seed, Stream.ADVERSARY, *path),
                tally=tally,
            )
            sent += [
                self._send(replace(whole, num_clients=min(_AT_ONCE, number - done)))
                for done in range(0, number, _AT_ONCE)
            ]
        return Aggregate(
            tally=tally,
            num_reports=sum(each.num_reports for each in sent),
            num_clients=sum(numbers),
            messages=merge_messages([each.messages for each in sent]),
        )

    def _send(self, attack: Attack) -> Sent:
        channel: Channel = attack.question.channel
        if self._strategy == "random-reports":
            return channel.craft_random(attack)
        if self._strategy == "random-values":
            return channel.craft_random_values(attack)
        return channel.craft(attack)
