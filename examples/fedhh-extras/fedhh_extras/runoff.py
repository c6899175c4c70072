"""A poll with a runoff: some clients vote on a public list, the others on what is left of it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedhh import Heard, InputError
from fedhh.server.local_discovery import LocalProtocol
from fedhh.settings import Count


@dataclass(frozen=True, kw_only=True)
class Runoff(LocalProtocol):
    """Half of the clients vote on all words, the other half on the ``keep`` best of them.

    Attributes:
        words: The public list, separated by spaces.
        keep: Words of the runoff, and of the result.
    """

    name: ClassVar[str] = "runoff"
    title: ClassVar[str] = "Poll with a runoff"

    words: str = "lol brb omg"
    keep: Count = 2

    num_cohorts = 2
    listed = property(lambda self: sorted(set(self.words.split())))
    longest_word = property(lambda self: max(map(len, self.listed)))

    def __post_init__(self):
        super().__post_init__()
        if not self.listed or set("".join(self.listed)) - set(self.symbols.symbols):
            raise InputError(f"Expected words of the alphabet's symbols, got words={self.words!r}.")

    @property
    def plan(self):
        """Two rounds, whose domains are the words and the dummy."""
        sizes = len(self.listed), min(self.keep, len(self.listed))
        rounds = [
            self.planned_round(layer, self.cohort_clients, words + 1)
            for layer, words in enumerate(sizes, start=1)
        ]
        return self.planned_reports(
            rounds, most_words=self.keep, randomizers=(self.validation_oracle,)
        )

    def begin(self):
        """Return which words are left, as places in the list: all."""
        return np.arange(len(self.listed))

    def ask(self, planned, run):
        """Return the broadcast of the words that are left."""
        codes = self.symbols.encode(self.listed, width=self.longest_word + 1)
        return self.words_question(codes[run.own], self.validation_oracle)

    def hear(self, run, answers):
        """Return the words with the most votes; of the runoff, as words found."""
        votes = answers.votes
        best = np.argsort(-votes, kind="stable")[: self.keep]
        found = answers.counted(answers.question.names.finished[best], votes[best])
        return Heard(
            own=run.own[best],
            decision=answers.decision(threshold=int(votes[best].min()), num_kept=len(best)),
            found=found if answers.planned.layer == 2 else None,
        )
