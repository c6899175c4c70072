"""Prefix Extending Method: disjoint groups report longer and longer prefixes, in one round trip.

Source: Wang, Li, Jha (2021), "Locally differentially private heavy hitter identification", IEEE
TDSC 18(2), section 4 (arXiv:1708.06674).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, Self

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
from fedhh.queries.sketches import BlindPrefixQuery
from fedhh.server.found import Found
from fedhh.server.local_discovery import LocalProtocol
from fedhh.server.noise import Noise
from fedhh.server.pruning import top_eta
from fedhh.settings import AUTO, Count, FromConfig, Layers, decided
from fedhh.validation import InputError
from fedhh.words.alphabet import END
from fedhh.words.trie import Codes

_LARGEST_LEVEL = 2**24
_SEED_BITS = 64.0
_MOST_OLH_REPORTS = 500_000
"""Of one group: scoring takes candidates times reports, about 0.1 ns each."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PemState:
    """Where a run of PEM stands.

    Attributes:
        kept: ``(k, length) uint16``: prefixes kept so far, filled up with the end symbol.
        found: The discovered words, most frequent first; empty before the last group.
        history: One summary per group heard.
    """

    kept: Codes
    found: Found
    history: tuple[RoundSummary, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Pem(LocalProtocol[PemState, BlindPrefixQuery | PrefixQuery]):
    """Settings of the Prefix Extending Method, over symbols instead of bits.

    Clients are split into groups; group i reports prefixes of length l_i through an oracle that
    can be asked about any candidate afterwards. The server scores all prefixes of length l_1 with
    the first group's reports, keeps the best, extends them to length l_2, scores those with the
    second group's, and so on. No query depends on an answer, so all groups can be asked at once:
    this is LDP TrieHH's twin without interaction. It runs as one round per group only because the
    server can forget a group's reports as soon as it has scored them.

    A prefix is filled up with the end symbol: a word that has ended is carried along as it is.
    Words longer than ``length`` take no part. The last group's reports are about whole words; its
    best candidates are the result.

    With "olh", the paper's oracle, every report reaches the server, 32 bytes each, and scoring
    costs candidates times reports (0.1 ns each). The others add reports up to a sketch, whose size
    and cost do not depend on the number of reports: for more than about a million per group.

    Attributes:
        length: Symbols of the longest word.
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
    state_types: ClassVar[tuple[type[Any], ...]] = (PemState, Found, RoundSummary)

    length: Layers = 10
    step: Layers = 2
    keep: Count = 100
    fixed_length: bool = False
    oracle: Literal["auto", "olh", "flh", "cms", "hcms", "bassily-smith"] = "auto"
    num_hashes: Count = 2048
    hash_seed: Annotated[Annotated[int, Ge(0)] | None, FromConfig("seed")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.keep * self._branching**self.step > _LARGEST_LEVEL:
            raise InputError(
                f"Expected at most {_LARGEST_LEVEL:,} candidates per level, got {self.keep:,} x "
                f"{self._branching}^{self.step}; lower step or keep."
            )
        # Made once here so that a bad oracle is refused before anything runs.
        _ = self._query(len(self.prefix_lengths) - 1, num_clients=1).prefixes

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
    def longest_word(self) -> int:
        """The last prefix is the whole word."""
        return self.length

    @property
    def num_cohorts(self) -> int:
        """One group for each length."""
        return len(self.prefix_lengths)

    @property
    def mechanism(self) -> LocalReports:
        """A report of the oracle about a prefix of the group's length for each contribution."""
        queries = [self._query(group) for group in range(self.num_cohorts)]
        return LocalReports(
            layers=tuple(
                PlannedLayer(
                    pass_index=0,
                    layer=query.layer,
                    num_clients=query.cohort.size,
                    smallest_domain=query.names.num_keys,
                    largest_domain=query.names.num_keys,
                )
                for query in queries
            )
            + self.planned_recount(0, self.num_cohorts + 1, most_words=self.keep),
            max_items=self.max_items,
            padded=self.pad,
            false_discovery_rate=self.false_discovery_rate,
            anonymity_k=self.anonymity_k,
            randomizers=(queries[0].oracle,),
            recount_randomizer=self.recount_oracle if self.recounts else None,
        )

    def settle(self, *, num_clients: int, seed: int) -> Self:
        """Return the settings with all clients in groups, the oracle, and the run's hashes."""
        settled = super().settle(num_clients=num_clients, seed=seed)
        if settled.oracle == AUTO:
            reports = decided(settled.clients_per_layer, "clients_per_layer") * self.max_items
            oracle: Literal["olh", "flh"] = "olh" if reports <= _MOST_OLH_REPORTS else "flh"
            settled = replace(settled, oracle=oracle)
        return settled if self.hash_seed is not None else replace(settled, hash_seed=seed)

    def initialize(self) -> PemState:
        """Return the state before the first query."""
        return PemState(
            kept=np.zeros((1, self.length), dtype=np.uint16), found=Found.nothing(self.length)
        )

    def next_query(self, state: PemState) -> BlindPrefixQuery | PrefixQuery | None:
        """Return the broadcast to the next group, the recount after the last, then None."""
        group, groups = len(state.history), self.num_cohorts
        if group < groups:
            return self._query(group)
        if group > groups:
            return None
        return self.recount_query(state.found.codes, pass_index=0, layer=groups + 1)

    def finish_round(
        self, state: PemState, query: BlindPrefixQuery | PrefixQuery, aggregate: Aggregate
    ) -> PemState:
        """Return the state after a group's reports: the best extensions of what was kept."""
        if isinstance(query, PrefixQuery):
            found, summary = self.recounted(state.found, query, aggregate)
            return replace(state, found=found, history=(*state.history, summary))
        group = len(state.history)
        known = self.prefix_lengths[group - 1] if group else 0
        candidates = extensions(
            state.kept,
            known,
            query.prefix_length,
            alphabet_size=query.alphabet.size,
            fixed_length=self.fixed_length,
        )
        oracle = query.prefixes
        keys = query.names.keys(candidates[:, : query.prefix_length])
        support = _support(query, aggregate, keys)
        noise = Noise.of_aggregate(oracle, aggregate.num_reports, aggregate.tally)
        kept, threshold = top_eta(support, self.keep, ties="strict")
        order = kept[np.argsort(-support[kept], kind="stable")]
        found = state.found
        is_last = query.prefix_length == self.length
        if is_last:
            found = Found.counted(
                query, aggregate, noise, codes=candidates[order], support=support[order]
            )
        reports = aggregate.num_reports
        summary = RoundSummary(
            pass_index=0,
            layer=query.layer,
            num_prefixes=0,
            num_candidates=len(candidates),
            domain_size=query.names.num_keys,
            num_clients=aggregate.num_clients,
            num_reports=reports,
            threshold=threshold,
            threshold_z=noise.threshold_z(threshold, num_dropped=len(candidates) - len(kept)),
            noise_std=noise.std,
            num_kept=len(kept),
            num_finished=len(found.codes),
            report_bits=oracle.report_bits,
            download_bits=2 * _SEED_BITS,
        )
        return PemState(kept=candidates[order], found=found, history=(*state.history, summary))

    def discoveries(self, state: PemState) -> Discoveries:
        """Return the words found, most frequent first; none before the last group."""
        return state.found.discoveries(self.symbols)

    def summaries(self, state: PemState) -> Sequence[RoundSummary]:
        """Return one summary per group heard.

        ``num_prefixes`` is 0, as nothing is broadcast; ``num_candidates`` are scored by the server.
        """
        return state.history

    def _query(self, group: int, *, num_clients: int | None = None) -> BlindPrefixQuery:
        """Return a group's broadcast; for a check of the settings, to so many clients."""
        size = num_clients or decided(self.clients_per_layer, "clients_per_layer")
        naming, hashing = derived_seeds(self.hash_seed or 0, 2)
        oracle = "olh" if self.oracle == AUTO else self.oracle
        is_sketch = oracle != "olh"
        params: dict[str, str | int | float] = {}
        if is_sketch:
            seeds = derived_seeds(hashing, len(self.prefix_lengths))
            params = {"num_hashes": self.num_hashes, "hash_seed": seeds[group]}
        return BlindPrefixQuery(
            pass_index=0,
            layer=group + 1,
            cohort=Cohort(start=group * size, size=size),
            alphabet=self.symbols,
            max_items=self.max_items,
            sampler=self.sampler,
            pad=self.pad,
            prefix_length=self.prefix_lengths[group],
            longest_word=self.length,
            oracle=OracleSpec(name=oracle, epsilon=self.local_epsilon, params=params),
            hash_seed=naming,
        )


def extensions(
    kept: Codes, known: int, length: int, *, alphabet_size: int, fixed_length: bool = False
) -> Codes:
    """Return all prefixes of ``length`` symbols that extend kept ones; none is the empty word.

    Args:
        kept: ``(k, width) uint16`` distinct prefixes, filled up with the end symbol.
        known: Their length; prefixes that end before it are carried along as they are.
        length: The new length, at most width.
        alphabet_size: A, the end symbol included.
        fixed_length: Whether none ends before ``width`` symbols.

    Returns:
        ``(c, width) uint16``.
    """
    prefixes = kept
    symbols = np.arange(int(fixed_length), alphabet_size)
    for position in range(known, length):
        ended = (prefixes[:, position - 1] == END) if position else np.zeros(1, dtype=np.bool_)
        live = np.repeat(prefixes[~ended], len(symbols), axis=0)
        live[:, position] = np.tile(symbols, np.count_nonzero(~ended))
        prefixes = np.concatenate([prefixes[ended], live])
        if position == 0:
            prefixes = prefixes[prefixes[:, 0] != END]
    return prefixes


def _support(
    query: BlindPrefixQuery, aggregate: Aggregate, keys: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return how many of a group's reports support each candidate."""
    oracle = query.prefixes
    if oracle.has_fixed_aggregate:
        aggregate.check_answers(query)
        return oracle.support(aggregate.tally, keys)
    if aggregate.messages is None or len(aggregate.messages) != aggregate.num_reports:
        raise ValueError(
            f"Expected {aggregate.num_reports} messages for group {query.layer}, got "
            f"{0 if aggregate.messages is None else len(aggregate.messages)}."
        )
    return oracle.tally(aggregate.messages, keys)
