"""LDPMiner: frequent words of clients that hold sets, in two rounds with half of epsilon each.

Source: Qin, Yang, Yu, Khalil, Xiao, Ren (2016), "Heavy hitter estimation over set-valued data with
local differential privacy", CCS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from annotated_types import Ge

from fedhh.hashing import derived_seeds
from fedhh.mechanisms.base import PlannedLayer
from fedhh.mechanisms.local_reports import LocalReports
from fedhh.oracles import OracleSpec
from fedhh.protocol import Discoveries, RoundSummary
from fedhh.queries.base import Aggregate, PrefixQuery
from fedhh.queries.cohort import Cohort
from fedhh.queries.sets import PaddedSampleQuery
from fedhh.server.closed_domain import SetProtocol
from fedhh.server.found import Found
from fedhh.server.padded_sampling import sample_counts, sample_summary
from fedhh.server.pruning import top_eta
from fedhh.settings import Count, FromConfig, Items, decided
from fedhh.validation import require_epsilon

_CANDIDATES_PER_WORD = 2
_PHASES = ("bassily-smith", "sue")
"""The oracles of the two rounds: one bit about all words, then basic RAPPOR about few."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LdpMinerState:
    """Where a run of LDPMiner stands.

    Attributes:
        kept: ``(c,) int64``: the words of the next round, as numbers in the domain.
        found: The discovered words, most frequent first; empty before the second round.
        history: One summary per round.
    """

    kept: npt.NDArray[np.int64]
    found: Found
    history: tuple[RoundSummary, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LdpMiner(SetProtocol[LdpMinerState, PaddedSampleQuery | PrefixQuery]):
    """Settings of LDPMiner, among words that are known before.

    All clients answer in both rounds, with half of ``local_epsilon`` each. In the first, a client
    pads its set to L and reports one member by Bassily and Smith's oracle; the server keeps the 2 k
    most frequent words. In the second, a client does the same with its words among these, by
    symmetric unary encoding (basic RAPPOR). Counts are scaled by L.

    SVIM is the later protocol for the same task: it divides clients instead of epsilon, learns L,
    and spends no epsilon on bits about words that are not held. LDPMiner is here to compare with.

    ``local_epsilon`` is the privacy of a client over all rounds; a recount is a third one.

    Attributes:
        keep: k, words in the result.
        padded_size: L. Words of clients that hold more are counted too low; the paper takes it as
            given, and about the size that a tenth of all sets exceed is good.
        num_hashes: Coordinates of the first round's public matrix.
        hash_seed: Its seed; None for the run's, so that each run draws its own.
    """

    name: ClassVar[str] = "ldpminer"
    title: ClassVar[str] = "LDPMiner"
    state_types: ClassVar[tuple[type[Any], ...]] = (LdpMinerState, Found, RoundSummary)

    keep: Count = 100
    padded_size: Items = 10
    num_hashes: Count = 8192
    hash_seed: Annotated[Annotated[int, Ge(0)] | None, FromConfig("seed")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_epsilon(epsilon_of_a_round=self.round_epsilon)

    @property
    def round_epsilon(self) -> float:
        """Privacy of a client's report in one round."""
        return self.local_epsilon / self.num_rounds

    @property
    def num_rounds(self) -> int:
        """Two, and the recount."""
        return len(_PHASES) + self.recounts

    @property
    def num_cohorts(self) -> int:
        """Every round may draw from all clients."""
        return 1

    @property
    def num_kept(self) -> int:
        """2 k, or all words if there are fewer: candidates of the second round."""
        return min(_CANDIDATES_PER_WORD * self.keep, len(self.domain))

    @property
    def recount_oracle(self) -> OracleSpec:
        """The recount's randomizer, with the same part of the budget as any round's."""
        return replace(super().recount_oracle, epsilon=self.round_epsilon)

    @property
    def mechanism(self) -> LocalReports:
        """One report of each client in every round, which compose."""
        size = decided(self.clients_per_layer, "clients_per_layer")
        domains = [candidates + self._padding(candidates) for candidates in self._candidates]
        return LocalReports(
            layers=tuple(
                PlannedLayer(
                    pass_index=0,
                    layer=layer,
                    num_clients=size,
                    smallest_domain=domain,
                    largest_domain=domain,
                )
                for layer, domain in enumerate(domains, start=1)
            )
            + self.planned_recount(0, 3, most_words=self.keep),
            reuses_clients=True,
            max_items=1,
            false_discovery_rate=self.false_discovery_rate,
            anonymity_k=self.anonymity_k,
            randomizers=(OracleSpec(name=_PHASES[-1], epsilon=self.round_epsilon),),
            recount_randomizer=self.recount_oracle if self.recounts else None,
            is_of_whole_set=True,
        )

    def settle(self, *, num_clients: int, seed: int) -> Self:
        """Return the settings with everybody asked, and the run's public matrix."""
        settled = super().settle(num_clients=num_clients, seed=seed)
        return settled if self.hash_seed is not None else replace(settled, hash_seed=seed)

    def initialize(self) -> LdpMinerState:
        """Return the state before the first query."""
        return LdpMinerState(
            kept=np.arange(len(self.domain)), found=Found.nothing(self.domain.shape[1])
        )

    def next_query(self, state: LdpMinerState) -> PaddedSampleQuery | PrefixQuery | None:
        """Return the broadcast of the next round, the recount after the second, then None."""
        phase = len(state.history)
        size = decided(self.clients_per_layer, "clients_per_layer")
        if phase == len(_PHASES):
            return self.recount_query(state.found.codes, pass_index=0, layer=3)
        if phase > len(_PHASES):
            return None
        (seed,) = derived_seeds(self.hash_seed or 0, 1)
        return PaddedSampleQuery(
            **self.about_words(state.kept),
            layer=phase + 1,
            cohort=Cohort(start=0, size=size, redraw=phase),
            epsilon=self.round_epsilon,
            oracle_name=_PHASES[phase],
            oracle_params={} if phase else {"num_hashes": self.num_hashes, "hash_seed": seed},
            padded_size=self._padding(len(state.kept)),
        )

    def finish_round(
        self,
        state: LdpMinerState,
        query: PaddedSampleQuery | PrefixQuery,
        aggregate: Aggregate,
    ) -> LdpMinerState:
        """Return the state with the most frequent words of the round."""
        if isinstance(query, PrefixQuery):
            found, summary = self.recounted(state.found, query, aggregate)
            return replace(state, found=found, history=(*state.history, summary))
        is_last = bool(state.history)
        counts = sample_counts(query, aggregate)
        most = self.keep if is_last else self.num_kept
        kept, threshold = top_eta(counts.support, most, ties="strict")
        if is_last:
            kept = kept[np.argsort(-counts.support[kept], kind="stable")]
        summary = sample_summary(
            query, aggregate, threshold=threshold, num_kept=len(kept), is_last=is_last
        )
        return LdpMinerState(
            kept=state.kept[kept],
            found=self.found_words(query, aggregate, counts, kept) if is_last else state.found,
            history=(*state.history, summary),
        )

    def discoveries(self, state: LdpMinerState) -> Discoveries:
        """Return the words found, most frequent first; none before the second round.

        Estimates are of clients that hold the word, too low where sets larger than L do.
        """
        return state.found.discoveries(self.symbols)

    def summaries(self, state: LdpMinerState) -> Sequence[RoundSummary]:
        """Return one summary per round."""
        return state.history

    @property
    def _candidates(self) -> tuple[int, int]:
        """How many words each round is about."""
        return len(self.domain), self.num_kept

    def _padding(self, num_candidates: int) -> int:
        """Return L, but no more than a client can hold."""
        return min(self.padded_size, num_candidates)
