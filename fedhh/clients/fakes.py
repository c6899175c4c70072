"""What fake clients send.

It is drawn once a round, in one place, from streams of its own: it is the same on any number of
workers. Who of a cohort is fake says its roster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fedhh import adversary
from fedhh.questions.answer import Answer, Diagnostics
from fedhh.questions.channel import NOT_THE_FIRST_BLOCK, Answering, Channel, together
from fedhh.questions.choice import Attack
from fedhh.questions.clients import ClientBlock, Sent
from fedhh.questions.matching import WordMatcher
from fedhh.questions.question import Question, Tally
from fedhh.random import Stream, generator
from fedhh.words.lexicon import Lexicon

_AT_ONCE = 4096
"""Fake clients whose reports are held at a time."""

_COINS = 2
"""First number of the path of their coins; 0 is that of their targets, 1 of their positions."""


class Fakes:
    """The fake clients of a run."""

    def __init__(
        self,
        *,
        words: Sequence[str],
        num_groups: int = 1,
        goal: adversary.Goal,
        strategy: adversary.Strategy,
        seed: int,
    ) -> None:
        """Take what they are about.

        Args:
            words: The words.
            num_groups: Into how many groups they fall, each about its part of the words.
            goal: What they are after.
            strategy: How.
            seed: The run's seed.
        """
        self._targets = np.split(np.arange(len(words)), num_groups)
        self._goal, self._strategy = goal, strategy
        self._seed = seed
        self._matcher = WordMatcher(Lexicon(words=list(words)))

    def answer(self, question: Question, numbers: Sequence[int]) -> Answer:
        """Return what so many fake clients of each group send in answer to a question."""
        tally = np.zeros(question.tally_size, dtype=np.int64)
        is_honest = self._goal != "demote" and self._strategy == "input"
        send = self._send_honest if is_honest else self._send_crafted
        sent = together(question, send(question, numbers, tally))
        aggregate = Answer.of(tally, sent).aggregate
        return Answer(aggregate=aggregate, diagnostics=Diagnostics(fakes=aggregate))

    def _send_honest(self, question: Question, numbers: Sequence[int], tally: Tally) -> list[Sent]:
        """Add what clients with these words send, who do as they are asked."""
        # Another seed than the run's: the same streams would give fakes the coins of honest ones.
        coins = generator(self._seed, Stream.ADVERSARY, _COINS)
        answering = Answering(question, self._matcher, int(coins.integers(2**63)))
        words = np.stack(self._targets)[np.repeat(np.arange(len(numbers)), numbers)]
        return [
            answering.add_block(ClientBlock.holding(words[start : start + _AT_ONCE]), block, tally)
            for block, start in enumerate(range(0, len(words), _AT_ONCE), NOT_THE_FIRST_BLOCK)
        ]

    def _send_crafted(self, question: Question, numbers: Sequence[int], tally: Tally) -> list[Sent]:
        sign = -1 if self._goal == "demote" else 1
        if self._strategy == "random-reports":
            sign = 0
        channel: Channel = question.channel
        sent: list[Sent] = []
        for part, (targets, number) in enumerate(zip(self._targets, numbers, strict=True)):
            path = (_COINS, question.pass_index, question.layer, part)
            whole = Attack(
                question=question,
                words=self._matcher,
                targets=targets,
                sign=sign,
                num_clients=number,
                rng=generator(self._seed, Stream.ADVERSARY, *path),
                tally=tally,
            )
            sent += [
                channel.craft(replace(whole, num_clients=min(_AT_ONCE, number - done)))
                for done in range(0, number, _AT_ONCE)
            ]
        return sent
