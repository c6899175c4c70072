"""SVIM: the most frequent words of clients that hold sets, with one report of each client.

Source: Wang, Li, Jha (2018), "Locally differentially private frequent itemset mining", IEEE S&P.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from annotated_types import Gt, Lt

from fedhh.mechanisms.base import PlannedLayer
from fedhh.mechanisms.local_reports import LocalReports
from fedhh.oracles import OracleSpec
from fedhh.protocol import Discoveries, RoundSummary
from fedhh.queries.base import Aggregate, PrefixQuery
from fedhh.queries.cohort import Cohort
from fedhh.queries.sets import HeldSetQuery, PaddedSampleQuery, SetSizeQuery
from fedhh.server.closed_domain import SetProtocol
from fedhh.server.found import Found
from fedhh.server.padded_sampling import (
    oracle_of_sample,
    padded_size,
    sample_counts,
    sample_summary,
    set_sizes,
)
from fedhh.server.pruning import top_eta
from fedhh.settings import AUTO, Count, decided
from fedhh.validation import InputError

Share = Annotated[float, Gt(0), Lt(1)]

_CANDIDATES_PER_WORD = 2
_MOST_OLH_SUPPORTS = 5e10
"""Candidates times reports: a tally by local hashing takes about 0.1 ns for each."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SvimState:
    """Where a run of SVIM stands.

    Attributes:
        kept: ``(c,) int64``: candidates that the first group's reports left, as numbers in the
            domain; all before it was asked.
        sizes: ``(c + 1,) float64``: clients of the second group by how many of them they hold.
        padded_size: L of the third group; 0 before it is known.
        found: The discovered words, most frequent first; empty before the last group.
        history: One summary per group heard.
    """

    kept: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.float64]
    padded_size: int
    found: Found
    history: tuple[RoundSummary, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Svim(SetProtocol[SvimState, HeldSetQuery | PrefixQuery]):
    """Settings of SVIM, among words that are known before.

    Clients are split into three groups, and each sends one report. The first says one of its words,
    and the server keeps the 2 k most frequent candidates; the second says how many of these it
    holds, and nine of ten sets are not larger than L; the third pads its set to L with dummies and
    says one member. There generalized randomized response may use more than epsilon, because a
    client's word is drawn with chance 1/L at most; where there are too many candidates for it, the
    oracle of the other groups is used. Counts are scaled by L, and by what larger sets lost.

    ``local_epsilon`` is the privacy of a client, whatever it holds. ``clients_per_layer`` is the
    mean size of the three groups.

    Attributes:
        keep: k, words in the result.
        candidate_share: Share of the clients in the first group.
        size_share: Share of the clients in the second.
        oracle: "olh" (the paper's) or "oue", which has the same variance, reports of a bit for each
            candidate, and a tally that can be drawn at once; "auto" is "olh" unless candidates
            times reports are too many to compare each with each.
    """

    name: ClassVar[str] = "svim"
    title: ClassVar[str] = "SVIM"
    state_types: ClassVar[tuple[type[Any], ...]] = (SvimState, Found, RoundSummary)

    keep: Count = 100
    candidate_share: Share = 0.4
    size_share: Share = 0.1
    oracle: Literal["auto", "olh", "oue"] = AUTO

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.candidate_share + self.size_share >= 1:
            raise InputError(
                "Expected candidate_share + size_share < 1, which leaves clients for the last "
                f"group, got candidate_share={self.candidate_share} + size_share={self.size_share}."
            )
        # Made once here so that an oracle that cannot have this epsilon is refused.
        _ = self._sample_query(self.initialize(), 1, Cohort(start=0, size=1)).randomizer

    @property
    def num_cohorts(self) -> int:
        """The three groups; N is their mean size."""
        return 3

    @property
    def group_sizes(self) -> tuple[int, int, int]:
        """Clients of each group."""
        total = self.num_cohorts * decided(self.clients_per_layer, "clients_per_layer")
        first = min(max(1, round(self.candidate_share * total)), total - 2)
        second = min(max(1, round(self.size_share * total)), total - first - 1)
        return first, second, total - first - second

    @property
    def num_kept(self) -> int:
        """2 k, or all words if there are fewer: candidates of the later groups."""
        return min(_CANDIDATES_PER_WORD * self.keep, len(self.domain))

    @property
    def mechanism(self) -> LocalReports:
        """One report of each client about its whole set."""
        domains = (
            (len(self.domain) + 1, len(self.domain) + 1),
            (self.num_kept + 1, self.num_kept + 1),
            (self.num_kept + 1, 2 * self.num_kept),
        )
        return LocalReports(
            layers=tuple(
                PlannedLayer(
                    pass_index=0,
                    layer=layer,
                    num_clients=size,
                    smallest_domain=smallest,
                    largest_domain=largest,
                )
                for layer, (size, (smallest, largest)) in enumerate(
                    zip(self.group_sizes, domains, strict=True), start=1
                )
            )
            + self.planned_recount(0, 4, most_words=self.keep),
            max_items=1,
            false_discovery_rate=self.false_discovery_rate,
            anonymity_k=self.anonymity_k,
            randomizers=(OracleSpec(name=self._oracle_name, epsilon=self.local_epsilon),),
            recount_randomizer=self.recount_oracle if self.recounts else None,
            is_of_whole_set=True,
        )

    def settle(self, *, num_clients: int, seed: int) -> Self:
        """Return the settings with all clients in groups, and the oracle."""
        settled = super().settle(num_clients=num_clients, seed=seed)
        if settled.oracle == AUTO:
            work = float(settled.group_sizes[0]) * len(settled.domain)
            settled = replace(settled, oracle="olh" if work <= _MOST_OLH_SUPPORTS else "oue")
        return settled

    def initialize(self) -> SvimState:
        """Return the state before the first query."""
        return SvimState(
            kept=np.arange(len(self.domain)),
            sizes=np.zeros(0),
            padded_size=0,
            found=Found.nothing(self.domain.shape[1]),
        )

    def next_query(self, state: SvimState) -> HeldSetQuery | PrefixQuery | None:
        """Return the broadcast to the next group, the recount after the last, then None."""
        group = len(state.history)
        sizes = self.group_sizes
        start = sum(sizes[:group])
        if group == len(sizes):
            return self.recount_query(state.found.codes, pass_index=0, layer=4)
        if group > len(sizes):
            return None
        cohort = Cohort(start=start, size=sizes[group])
        if group == 1:
            return SetSizeQuery(
                **self.about_words(state.kept),
                layer=2,
                cohort=cohort,
                epsilon=self.local_epsilon,
                oracle_name=self._oracle_name,
            )
        return self._sample_query(state, group + 1, cohort)

    def finish_round(
        self, state: SvimState, query: HeldSetQuery | PrefixQuery, aggregate: Aggregate
    ) -> SvimState:
        """Return the state after a group's reports, or the recount's."""
        if isinstance(query, PrefixQuery):
            found, summary = self.recounted(state.found, query, aggregate)
            return replace(state, found=found, history=(*state.history, summary))
        if isinstance(query, SetSizeQuery):
            sizes = set_sizes(query, aggregate)
            summary = sample_summary(
                query, aggregate, threshold=0, num_kept=query.num_candidates, is_last=False
            )
            return replace(
                state,
                sizes=sizes,
                padded_size=padded_size(sizes),
                history=(*state.history, summary),
            )
        assert isinstance(query, PaddedSampleQuery)
        is_last = bool(state.history)
        counts = sample_counts(query, aggregate, state.sizes)
        most = self.keep if is_last else self.num_kept
        kept, threshold = top_eta(counts.support, most, ties="strict")
        if is_last:
            kept = kept[np.argsort(-counts.support[kept], kind="stable")]
        summary = sample_summary(
            query, aggregate, threshold=threshold, num_kept=len(kept), is_last=is_last
        )
        found = state.found
        if is_last:
            found = self.found_words(query, aggregate, counts, kept)
        return replace(state, kept=state.kept[kept], found=found, history=(*state.history, summary))

    def discoveries(self, state: SvimState) -> Discoveries:
        """Return the words found, most frequent first; none before the last group.

        Estimates are of clients of the last group that hold the word.
        """
        return state.found.discoveries(self.symbols)

    def summaries(self, state: SvimState) -> Sequence[RoundSummary]:
        """Return one summary per group heard.

        The second group's round drops no candidate; its domain is the sizes that a set may have.
        """
        return state.history

    @property
    def _oracle_name(self) -> str:
        return "olh" if self.oracle == AUTO else self.oracle

    def _sample_query(self, state: SvimState, layer: int, cohort: Cohort) -> PaddedSampleQuery:
        """Return the question for one word of the set, padded to L; to 1 in the first group."""
        length = state.padded_size
        oracle = self._oracle_name
        if length:
            oracle = oracle_of_sample(len(state.kept), length, self.local_epsilon, oracle)
        return PaddedSampleQuery(
            **self.about_words(state.kept),
            layer=layer,
            cohort=cohort,
            epsilon=self.local_epsilon,
            oracle_name=oracle,
            padded_size=max(length, 1),
        )
