"""A watch list: clients report whole words through a sketch, which the server asks about a list."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedhh import Heard
from fedhh.questions import OracleSpec, Reports, StringNames
from fedhh.server.closed_domain import ClosedDomain
from fedhh.server.local_discovery import LocalProtocol

LEAST_Z = 4.0
"""How far above the noise a word's reports must lie, in standard deviations."""


@dataclass(frozen=True, kw_only=True)
class WatchList(ClosedDomain, LocalProtocol):
    """One round, in which clients need not know the list of candidates.

    Attributes:
        hash_seed: Of names and sketch; the run's if None.
    """

    name: ClassVar[str] = "watch-list"
    title: ClassVar[str] = "Watch list"

    hash_seed: int | None = None

    @property
    def plan(self):
        """The one round."""
        asked, most = self.ask(None, None), len(self.domain)
        rounds = [self.planned_round(1, self.cohort_clients, asked.domain_size)]
        return self.planned_reports(rounds, most_words=most, randomizers=asked.randomizers)

    def ask(self, planned, run):
        """Return the question: strings by their keys, and one report of a sketch for each."""
        naming, hashing = self.seeds(2)
        names = StringNames.draw(self.symbols, length=self.longest_word, seed=naming)
        params = {"num_hashes": 64, "num_cells": 1024, "hash_seed": hashing}
        oracle = OracleSpec(name="hashtogram", epsilon=self.local_epsilon, params=params)
        channel = Reports(oracle=oracle, num_values=names.num_keys, lists_values=False)
        return self.asking(names, channel)

    def hear(self, run, answers):
        """Return the words of the list that stand out of the noise."""
        question = answers.question
        keys = question.names.keys_of(self.domain)
        votes = question.channel.support(question, answers.aggregate, keys)
        kept = np.flatnonzero(answers.noise.z(votes) >= LEAST_Z)
        sizes = {"num_candidates": len(votes), "num_kept": len(kept)}
        threshold = int(votes[kept].min() if len(kept) else votes.max() + 1)
        decision = answers.decision(threshold=threshold, **sizes)
        found = answers.counted(self.domain[kept], votes[kept])
        return Heard(decision=decision, found=found)
