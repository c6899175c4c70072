"""Discoveries of a closed domain: protocols that are told which words there may be.

That is knowledge which discoveries of an open domain do not have: whoever compares them should say
where the list comes from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Generic, Literal

import numpy as np
import numpy.typing as npt

from fedhh.found import Found
from fedhh.protocol import QueryType, State
from fedhh.queries.base import Aggregate
from fedhh.queries.sets import PaddedSampleQuery, singletons
from fedhh.server.local_discovery import CohortProtocol
from fedhh.server.padded_sampling import SampleCounts
from fedhh.server.pruning import top_eta
from fedhh.settings import FromConfig
from fedhh.validation import InputError
from fedhh.words.candidates import Candidates
from fedhh.words.trie import Codes

MOST_CANDIDATES = 2**22
"""Words that a domain may have; each is counted in every round about all of them."""


@dataclass(frozen=True, kw_only=True)
class ClosedDomain(CohortProtocol[State, QueryType], Generic[State, QueryType]):
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


@dataclass(frozen=True, kw_only=True)
class SetProtocol(ClosedDomain[State, QueryType], Generic[State, QueryType]):
    """A discovery whose clients send one report each about the set of words that they hold.

    ``local_epsilon`` is therefore that of a client, and not of one of its words alone.
    """

    @property
    def max_items(self) -> int:
        """One report, about one value that is drawn from the client's padded set."""
        return 1

    @property
    def sampler(self) -> Literal["random", "greedy"]:
        """Uniformly: a word's chance to be drawn must not exceed 1 / L."""
        return "random"

    @property
    def pad(self) -> bool:
        """A client that holds no candidate reports a dummy."""
        return True

    def about_words(self, kept: npt.NDArray[np.int64]) -> dict[str, Any]:
        """Return what queries say about some words of the domain.

        Args:
            kept: ``(c,) int64``: which words.
        """
        return {
            "words": self.domain[kept],
            "itemsets": singletons(len(kept)),
            "epsilon": self.local_epsilon,
        }

    def most_supported(
        self, counts: SampleCounts, most: int, *, ranked: bool
    ) -> tuple[npt.NDArray[np.int64], int]:
        """Return the places of the candidates with the most support, and the least of these.

        Args:
            counts: Of a round.
            most: How many are kept, at most.
            ranked: Whether the most supported comes first; otherwise places ascend.
        """
        kept, threshold = top_eta(counts.support, most, ties="strict")
        if ranked:
            kept = kept[np.argsort(-counts.support[kept], kind="stable")]
        return kept, threshold

    def found_words(
        self, query: PaddedSampleQuery, aggregate: Aggregate, counts: SampleCounts, kept: Any
    ) -> Found:
        """Return some of a round's words, as they stand in ``(h,) int64`` kept."""
        return Found(
            codes=query.words[kept],
            pass_index=np.zeros(len(kept), dtype=np.int64),
            layer=np.full(len(kept), query.layer),
            estimate=counts.estimate[kept],
            variance=counts.variance[kept],
            z=counts.z[kept],
            num_clients=np.full(len(kept), aggregate.num_clients),
            interval_z=np.full(len(kept), np.nan),
        )
