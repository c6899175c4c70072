"""Discoveries of a closed domain: protocols that get the list of possible words.

That is knowledge which discoveries of an open domain do not have: whoever compares them should say
where the list comes from.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np

from fedhh.accounting.rounds import PlannedRound
from fedhh.arrays import Floats, Ints
from fedhh.oracles import OracleSpec
from fedhh.protocol import Answers, Heard, RunState
from fedhh.questions.choice import PaddedMember, SetSize
from fedhh.questions.names import ItemSets
from fedhh.questions.question import Question
from fedhh.questions.reports import Reports
from fedhh.server.local_discovery import CohortProtocol, PostProcessed
from fedhh.server.padded_sampling import sample_counts, set_sizes
from fedhh.server.pruning import top_eta
from fedhh.settings import Count, FromConfig
from fedhh.validation import InputError
from fedhh.words.candidates import Candidates
from fedhh.words.trie import Codes

_CANDIDATES_PER_WORD = 2

MOST_CANDIDATES = 2**22
"""Words that a domain may have; each is counted in every round about all of them."""


@dataclass(frozen=True, kw_only=True)
class ClosedDomain(CohortProtocol):
    """A discovery among candidates: a public list of words, known to all before the run.

    Attributes:
        candidates: The words. Those that the alphabet cannot spell take no part.
    """

    candidates: Annotated[Candidates, FromConfig("population.candidates")] = field(
        default_factory=Candidates
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not len(self.candidates):
            raise InputError(
                f"Expected candidates for {self.name}, which asks about words that it knows, got "
                "none; set population.candidates to a file with a word per line, or to "
                '"from-data" for the clients\' own words, which is not private.'
            )
        if not 1 <= len(self.domain) <= MOST_CANDIDATES:
            raise InputError(
                f"Expected from 1 to {MOST_CANDIDATES:,} candidates that the alphabet can spell, "
                f"got {len(self.domain):,} of {len(self.candidates):,} words; change "
                "population.alphabet or population.candidates."
            )

    @cached_property
    def domain(self) -> Codes:
        """The candidates that the alphabet can spell, ``(c, longest + 1) uint16``, closed."""
        domain = self.candidates.spelled(self.symbols)
        domain.flags.writeable = False
        return domain

    @property
    def longest_word(self) -> int:
        return int(self.domain.shape[1]) - 1


@dataclass(frozen=True, kw_only=True, eq=False)
class SetState:
    """Where a discovery stands whose clients hold sets.

    Attributes:
        kept: ``(c,) int64``: candidates of the next round, as numbers in the domain; all at first.
        sizes: ``(c + 1,) float64``: clients that were asked by how many of them they hold; empty
            before any was.
    """

    kept: Ints
    sizes: Floats


@dataclass(frozen=True, kw_only=True)
class SetProtocol(ClosedDomain, PostProcessed):
    """A discovery whose clients send one report each about the set of words that they hold.

    It is about a value that is drawn uniformly from the client's padded set, or about a dummy.
    ``local_epsilon`` is therefore that of a client, and not of one of its words alone.

    Attributes:
        keep: k, words in the result.
    """

    corrects_counts: ClassVar[bool] = False
    """Whether counts are corrected for members that padding cut off, by the sizes of sets."""

    keep: Count = 100

    @property
    def num_kept(self) -> int:
        """2 k, or all words if there are fewer: candidates of the later rounds."""
        return min(_CANDIDATES_PER_WORD * self.keep, len(self.domain))

    def names_of(self, kept: Ints) -> ItemSets:
        """Return ``(c,) int64`` kept words of the domain, as sets of one."""
        return ItemSets.singletons(self.domain[kept])

    def size_question(
        self,
        names: ItemSets,
        oracle: OracleSpec,
        *,
        largest: int | None = None,
    ) -> Question:
        """Return the question for how many candidates a client holds.

        Args:
            names: The candidates.
            oracle: The randomizer.
            largest: Clients that hold more say this; None for no such bound.
        """
        choice = SetSize(largest=largest)
        return Question(
            names=names,
            choice=choice,
            channel=Reports(oracle=oracle, num_values=choice.largest_size(names) + 1),
        )

    def member_question(
        self,
        names: ItemSets,
        oracle: OracleSpec,
        *,
        padded_size: int,
    ) -> Question:
        """Return the question for one member of a client's set, which is padded to L.

        Args:
            names: The candidates.
            oracle: The randomizer, at the epsilon of a client's report.
            padded_size: L.
        """
        return Question(
            names=names,
            choice=PaddedMember(padded_size=padded_size),
            channel=Reports.padded(names, oracle, padded_size=padded_size),
        )

    def begin(self) -> SetState:
        return SetState(kept=np.arange(len(self.domain)), sizes=np.zeros(0))

    @abstractmethod
    def asks_size(self, planned: PlannedRound) -> bool:
        """Return whether a round asks how many candidates a client holds, and not for one."""

    @abstractmethod
    def is_last(self, planned: PlannedRound) -> bool:
        """Return whether a round's candidates are the words found, the best of them."""

    def hear(self, run: RunState, answers: Answers) -> Heard:
        """Return the sizes of sets, or the 2 k best candidates; of the last round, the words found.

        A round about sizes drops no candidate; its domain is the sizes that a set may have.
        Estimates are of clients of the last round that hold the word.
        """
        own = run.own
        if self.asks_size(answers.planned):
            return Heard(own=replace(own, sizes=set_sizes(answers)), decision=answers.decision())
        is_last = self.is_last(answers.planned)
        most = self.keep if is_last else self.num_kept
        kept, threshold = top_eta(answers.votes, most, ties="strict")
        found = None
        if is_last:
            kept = kept[np.argsort(-answers.votes[kept], kind="stable")]
            sizes = own.sizes if self.corrects_counts else None
            counts = sample_counts(answers, sizes, post_processing=self.post_processing)
            found = answers.found(
                answers.question.names.words[kept],
                estimate=counts.estimate[kept],
                variance=counts.variance[kept],
                z=counts.z[kept],
            )
        decision = answers.decision(threshold=threshold, num_kept=len(kept))
        return Heard(own=replace(own, kept=own.kept[kept]), decision=decision, found=found)
