"""A poll with a runoff: some clients vote on a public list, the others on what is left of it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedhh import Heard
from fedhh.server.closed_domain import ClosedDomain
from fedhh.server.local_discovery import LocalProtocol
from fedhh.settings import Count


@dataclass(frozen=True, kw_only=True)
class Runoff(ClosedDomain, LocalProtocol):
    """Half of the clients vote on all candidates, the other half on the ``keep`` best of them.

    Attributes:
        keep: Words of the runoff, and of the result.
    """

    name: ClassVar[str] = "runoff"
    title: ClassVar[str] = "Poll with a runoff"

    keep: Count = 2
    num_cohorts = 2

    @property
    def plan(self):
        """Two rounds, whose domains are the words and the dummy."""
        first, second = len(self.domain), min(self.keep, len(self.domain))
        rounds = [
            self.planned_round(1, self.cohort_clients, first + 1),
            self.planned_round(2, self.cohort_clients, second + 1),
        ]
        oracles = (self.validation_oracle,)
        return self.planned_reports(rounds, most_words=second, randomizers=oracles)

    def begin(self):
        """Return which words are left, as places in the list: all."""
        return np.arange(len(self.domain))

    def ask(self, planned, run):
        """Return the broadcast of the words that are left."""
        return self.words_question(self.domain[run.own], self.validation_oracle)

    def hear(self, run, answers):
        """Return the words with the most votes; of the runoff, as words found."""
        best = np.argsort(-answers.votes, kind="stable")[: self.keep]
        votes = answers.votes[best]
        found = answers.counted(self.domain[run.own[best]], votes)
        return Heard(
            own=run.own[best],
            decision=answers.decision(threshold=int(votes.min()), num_kept=len(best)),
            found=found if answers.planned.layer == 2 else None,
        )
