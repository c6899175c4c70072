"""Prefix Extending Method: disjoint groups report longer and longer prefixes, in one round trip.

Source: Wang, Li, Jha (2021), "Locally differentially private heavy hitter identification", IEEE
TDSC 18(2), section 4 (arXiv:1708.06674).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from fedhh.accounting.local_reports import LocalReports
from fedhh.accounting.rounds import PlannedRound
from fedhh.hashing import derived_seeds
from fedhh.oracles import OracleSpec
from fedhh.protocol import Answers, Heard, RunState
from fedhh.questions.names import StringNames
from fedhh.questions.question import Question
from fedhh.questions.reports import Reports
from fedhh.server.cohorts import BoundedWords, RunSeed
from fedhh.server.local_discovery import LocalProtocol, PostProcessed
from fedhh.server.pruning import top_eta
from fedhh.settings import AUTO, Count, Layers
from fedhh.validation import InputError
from fedhh.words.parts import extensions
from fedhh.words.trie import Codes

_LARGEST_LEVEL = 2**24
_MOST_OLH_REPORTS = 500_000
"""Of one group: scoring takes candidates times reports, about 0.1 ns each."""


@dataclass(frozen=True, kw_only=True)
class Pem(LocalProtocol, PostProcessed, BoundedWords):
    """Settings of the Prefix Extending Method, over symbols instead of bits.

    Clients are split into groups; group i reports prefixes of length l_i through an oracle that
    can be asked about any candidate afterwards. The server scores all prefixes of length l_1 with
    the first group's reports, keeps the best, extends them to length l_2, scores those with the
    second group's, and so on. No question depends on an answer, so all groups can be asked at once:
    this is LDP TrieHH's twin without interaction. It runs as one round per group only because the
    server can forget a group's reports as soon as it has scored them.

    A prefix is filled up with the end symbol: a word that has ended is carried along as it is.
    Words longer than ``length`` take no part. The last group's reports are about whole words; its
    best candidates are the result.

    With "olh", the paper's oracle, every report reaches the server, 32 bytes each, and scoring
    costs candidates times reports (0.1 ns each). The others add reports up to a sketch, whose size
    and cost do not depend on the number of reports: for more than about a million per group.

    Attributes:
        step: Symbols by which prefixes grow; the server scores ``keep * A**step`` candidates.
        keep: Prefixes kept per level, and words in the result.
        fixed_length: Whether every word has exactly ``length`` symbols, as the paper's m-bit values
            have: no prefix ends before, and the server scores ``keep * (A - 1)**step`` candidates.
        oracle: "olh" (the paper's), or a sketch, "flh", "cms", "hcms" or "bassily-smith"; "auto" is
            "olh" if a group sends at most half a million reports, and "flh" above, where scoring
            with "olh" takes too long.
        num_hashes: For sketches: their rows.
        hash_seed: Seed of all hash functions; None for the run's, so that each run draws its own.
    """

    name: ClassVar[str] = "pem"
    title: ClassVar[str] = "PEM"

    step: Layers = 2
    keep: Count = 100
    fixed_length: bool = False
    oracle: Literal["auto", "olh", "flh", "cms", "hcms", "bassily-smith"] = "auto"
    num_hashes: Count = 2048
    hash_seed: RunSeed = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.keep * self._branching**self.step > _LARGEST_LEVEL:
            raise InputError(
                f"Expected at most {_LARGEST_LEVEL:,} candidates per level, got {self.keep:,} x "
                f"{self._branching}^{self.step}; lower step or keep."
            )
        # Made once here so that a bad oracle is refused before anything runs.
        _ = self._question(len(self.prefix_lengths)).channel.pure

    @property
    def prefix_lengths(self) -> tuple[int, ...]:
        """Length of each group's prefixes.

        The first is the longest with no more prefixes than a later level has candidates; the
        paper's ceil(log2 k) + eta bits.
        """
        first = self.step
        while self._branching ** (first + 1) <= self.keep * self._branching**self.step:
            first += 1
        return (*range(min(first, self.length), self.length, self.step), self.length)

    @property
    def _branching(self) -> int:
        """Symbols that may follow a prefix, the end symbol among them unless lengths are fixed."""
        return self.symbols.size - self.fixed_length

    @property
    def num_cohorts(self) -> int:
        return len(self.prefix_lengths)

    @property
    def plan(self) -> LocalReports:
        return self.planned_reports(
            [
                replace(
                    self.planned_round(
                        group, self.cohort_clients, self._question(group).names.num_keys
                    ),
                    # No group is told what another one said.
                    opens_with_previous=group > 1,
                )
                for group in range(1, self.num_cohorts + 1)
            ],
            most_words=self.keep,
            randomizers=self._question(1).randomizers,
        )

    def resolve(self, num_clients: int) -> dict[str, Any]:
        changes = super().resolve(num_clients)
        if changes or self.oracle != AUTO:
            return changes
        reports = self.cohort_clients * self.max_items
        return {"oracle": "olh" if reports <= _MOST_OLH_REPORTS else "flh"}

    def begin(self) -> Codes:
        """Return the ``(1, length) uint16`` empty prefix: kept ones, filled up with end symbols."""
        return np.zeros((1, self.length), dtype=np.uint16)

    def ask(self, planned: PlannedRound, run: RunState) -> Question:
        return self._question(planned.layer)

    def hear(self, run: RunState, answers: Answers) -> Heard:
        """Return the best extensions of what was kept; of the last group, the words found.

        The server scores ``num_candidates``, of which none was broadcast.
        """
        question, aggregate, group = answers.question, answers.aggregate, answers.planned.layer
        candidates = extensions(
            run.own,
            self.prefix_lengths[group - 2] if group > 1 else 0,
            question.names.length,
            alphabet_size=question.alphabet.size,
            fixed_length=self.fixed_length,
        )
        support = question.channel.support(question, aggregate, question.names.keys_of(candidates))
        kept, threshold = top_eta(support, self.keep, ties="strict")
        order = kept[np.argsort(-support[kept], kind="stable")]
        best = candidates[order]
        found = None
        if question.names.length == self.length:
            how = self.post_processing
            found = answers.counted(best, support, order, post_processing=how)
        decision = answers.decision(
            threshold=threshold, num_candidates=len(candidates), num_kept=len(kept)
        )
        return Heard(own=best, decision=decision, found=found, kept=best)

    def _question(self, group: int) -> Question:
        naming, hashing = self.seeds(2)
        oracle = "olh" if self.oracle == AUTO else self.oracle
        params: dict[str, str | int | float] = {}
        if oracle != "olh":
            seeds = derived_seeds(hashing, len(self.prefix_lengths))
            params = {"num_hashes": self.num_hashes, "hash_seed": seeds[group - 1]}
        names = StringNames.draw(
            self.symbols,
            length=self.prefix_lengths[group - 1],
            longest_word=self.length,
            seed=naming,
        )
        spec = OracleSpec(name=oracle, epsilon=self.local_epsilon, params=params)
        channel = Reports(oracle=spec, num_values=names.num_keys, lists_values=False)
        return self.asking(names, channel)
