"""RAPPOR: words as noisy Bloom filters, decoded with a list of candidates.

Source: Erlingsson, Pihur, Korolova (2014), "RAPPOR: randomized aggregatable privacy-preserving
ordinal response", CCS.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from annotated_types import Ge, Gt, Le, Lt

from fedhh.hashing import derived_seeds
from fedhh.mechanisms.base import PlannedLayer
from fedhh.mechanisms.bloom_reports import RapporReports
from fedhh.oracles.bloom_filters import BitResponse, BloomFilters, BloomReports
from fedhh.protocol import Discoveries, RoundSummary
from fedhh.queries.base import Aggregate, PrefixQuery
from fedhh.queries.blooms import BloomQuery
from fedhh.queries.cohort import Cohort
from fedhh.server.closed_domain import ClosedDomain
from fedhh.server.found import Found
from fedhh.server.local_discovery import LocalProtocol
from fedhh.server.rappor_decoding import credible_words, decode
from fedhh.settings import FromConfig, decided
from fedhh.validation import InputError

_SEED_BITS = 64.0
_LARGEST_DESIGN = 2**27
"""Bits that all candidates set in all cohorts; the server looks each up, at about 20 ns."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RapporState:
    """Where a run of RAPPOR stands: before its only round, or after it.

    Attributes:
        found: The discovered words, most frequent first.
        others: Estimated reports about words that are no candidates.
        history: The round's summary, once it is over.
    """

    found: Found
    others: float = 0.0
    history: tuple[RoundSummary, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Rappor(
    ClosedDomain[RapporState, BloomQuery | PrefixQuery],
    LocalProtocol[RapporState, BloomQuery | PrefixQuery],
):
    """Settings of RAPPOR, for one collection of reports, decoded with a list of candidates.

    A client sends, for each word it contributes, a cohort that it draws and the bits of the word's
    Bloom filter there, randomized. Clients need no list: they may report any word, and the server
    finds those of its list in the sums. There is one round.

    Bits go through a permanent response, with chance f/2 each way, and an instantaneous one, with
    ``irr_p`` and ``irr_q``. f follows from ``local_epsilon``, which is the privacy of the report
    that is collected. The default is the paper's one-time RAPPOR, without the second step; that
    step costs accuracy, and pays where a device reports the same word again and again, which no
    round here asks for. What would bound all such reports is stated in a run's privacy section.

    Attributes:
        bloom_bits: k, bits of a filter.
        bloom_hashes: h, hash functions of a cohort.
        bloom_cohorts: m, cohorts with functions of their own.
        irr_p: Chance that a permanent 0 is sent as 1.
        irr_q: Chance that a permanent 1 is sent as 1.
        familywise_error: Chance that any candidate is returned which nobody holds, by Bonferroni's
            correction of the regression's p-values.
        hash_seed: Seed of all hash functions; None for the run's, so that each run draws its own.
    """

    name: ClassVar[str] = "rappor"
    title: ClassVar[str] = "RAPPOR"
    state_types: ClassVar[tuple[type[Any], ...]] = (RapporState, Found, RoundSummary)

    bloom_bits: Annotated[int, Ge(2), Le(2**16)] = 128
    bloom_hashes: Annotated[int, Ge(1), Le(64)] = 2
    bloom_cohorts: Annotated[int, Ge(1), Le(2**16)] = 64
    irr_p: Annotated[float, Ge(0), Lt(1)] = 0.0
    irr_q: Annotated[float, Gt(0), Le(1)] = 1.0
    familywise_error: Annotated[float, Gt(0), Lt(1)] = 0.05
    hash_seed: Annotated[Annotated[int, Ge(0)] | None, FromConfig("seed")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        # Made once here so that an epsilon that cannot be had is refused.
        _ = self.response
        size = len(self.domain) * self.bloom_cohorts * self.bloom_hashes
        if size > _LARGEST_DESIGN:
            raise InputError(
                f"Expected candidates x bloom_cohorts x bloom_hashes <= {_LARGEST_DESIGN:,}, got "
                f"{len(self.domain):,} x {self.bloom_cohorts} x {self.bloom_hashes}; lower "
                "bloom_cohorts, or give fewer candidates."
            )

    @property
    def response(self) -> BitResponse:
        """What happens to a bit, so that one report has ``local_epsilon``."""
        return BitResponse.of_one_report(
            self.local_epsilon, num_hashes=self.bloom_hashes, p=self.irr_p, q=self.irr_q
        )

    @property
    def num_cohorts(self) -> int:
        """Everybody is asked at once."""
        return 1

    @property
    def mechanism(self) -> RapporReports:
        """A report of RAPPOR for each contribution."""
        size = decided(self.clients_per_layer, "clients_per_layer")
        return RapporReports(
            layers=(
                PlannedLayer(
                    pass_index=0,
                    layer=1,
                    num_clients=size,
                    smallest_domain=len(self.domain) + 1,
                    largest_domain=len(self.domain) + 1,
                ),
                *self.planned_recount(0, 2, most_words=len(self.domain)),
            ),
            max_items=self.max_items,
            padded=self.pad,
            false_discovery_rate=self.false_discovery_rate,
            anonymity_k=self.anonymity_k,
            recount_randomizer=self.recount_oracle if self.recounts else None,
            epsilon_of_one_report=self.local_epsilon,
            epsilon_of_all_reports=self.response.epsilon_of_all_reports(self.bloom_hashes),
        )

    def settle(self, *, num_clients: int, seed: int) -> Self:
        """Return the settings with everybody asked, and the run's hash functions."""
        settled = super().settle(num_clients=num_clients, seed=seed)
        return settled if self.hash_seed is not None else replace(settled, hash_seed=seed)

    def initialize(self) -> RapporState:
        """Return the state before the round."""
        return RapporState(found=Found.nothing(self.domain.shape[1]))

    def next_query(self, state: RapporState) -> BloomQuery | PrefixQuery | None:
        """Return the one broadcast, after its answers the recount, then None."""
        size = decided(self.clients_per_layer, "clients_per_layer")
        if not state.history:
            return self._query(size)
        if len(state.history) > 1:
            return None
        return self.recount_query(state.found.codes, pass_index=0, layer=2)

    def finish_round(
        self, state: RapporState, query: BloomQuery | PrefixQuery, aggregate: Aggregate
    ) -> RapporState:
        """Return the state with the candidates that the sums of reports show."""
        if isinstance(query, PrefixQuery):
            found, summary = self.recounted(state.found, query, aggregate)
            return replace(state, found=found, history=(*state.history, summary))
        aggregate.check_answers(query)
        keys = query.names.keys(self.domain[:, : query.longest_word])
        decoded = decode(query.reports, aggregate.tally, keys)
        found = credible_words(
            decoded,
            self.domain,
            num_clients=aggregate.num_clients,
            familywise_error=self.familywise_error,
        )
        return RapporState(
            found=found,
            others=decoded.others,
            history=(self._summary(query, aggregate, found),),
        )

    def discoveries(self, state: RapporState) -> Discoveries:
        """Return the words found, most frequent first."""
        return state.found.discoveries(self.symbols)

    def summaries(self, state: RapporState) -> Sequence[RoundSummary]:
        """Return the summary of the round, if it is over.

        ``threshold`` is the estimate of the last word kept, in reports, and ``noise_std`` that of a
        candidate that shares no bit with another.
        """
        return state.history

    def _query(self, num_clients: int) -> BloomQuery:
        naming, hashing = derived_seeds(self.hash_seed or 0, 2)
        return BloomQuery(
            pass_index=0,
            layer=1,
            cohort=Cohort(start=0, size=num_clients),
            alphabet=self.symbols,
            max_items=self.max_items,
            sampler=self.sampler,
            pad=self.pad,
            longest_word=self.longest_word,
            reports=BloomReports(
                filters=BloomFilters(
                    num_bits=self.bloom_bits,
                    num_hashes=self.bloom_hashes,
                    num_cohorts=self.bloom_cohorts,
                    hash_seed=hashing,
                ),
                response=self.response,
            ),
            name_seed=naming,
        )

    def _summary(self, query: BloomQuery, aggregate: Aggregate, found: Found) -> RoundSummary:
        kept = len(found.codes)
        alone = aggregate.num_reports * self.response.bit_variance / self.bloom_hashes
        return RoundSummary(
            pass_index=0,
            layer=1,
            num_prefixes=0,
            num_candidates=len(self.domain),
            domain_size=len(self.domain) + 1,
            num_clients=aggregate.num_clients,
            num_reports=aggregate.num_reports,
            threshold=round(found.estimate[-1]) if kept else 0,
            threshold_z=math.nan,
            noise_std=float(np.sqrt(alone)),
            num_kept=kept,
            num_finished=kept,
            report_bits=query.reports.report_bits,
            download_bits=2 * _SEED_BITS,
        )
