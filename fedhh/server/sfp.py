"""Sequence Fragment Puzzle: Apple's one-round discovery of words.

Source: Differential Privacy Team, Apple (2017), "Learning with privacy at scale", section 4.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Gt, Lt

from fedhh.hashing import derived_seeds
from fedhh.mechanisms.base import PlannedLayer
from fedhh.mechanisms.local_reports import LocalReports
from fedhh.oracles import OracleSpec
from fedhh.protocol import Discoveries, RoundSummary
from fedhh.queries.base import Aggregate, Cohort, PrefixQuery
from fedhh.queries.sketches import FragmentQuery
from fedhh.server.found import Found
from fedhh.server.local_discovery import LocalProtocol
from fedhh.server.noise import Noise
from fedhh.server.puzzle_decoding import Assembly, PuzzleSummary, assemble
from fedhh.settings import Count, FromConfig, Layers, decided
from fedhh.validation import require_epsilon
from fedhh.words.puzzle import FragmentPuzzle

Votes = npt.NDArray[np.int64]

_SEEDS = 3
_SEED_BITS = 64.0


@dataclass(frozen=True, kw_only=True, eq=False)
class SfpState:
    """Where a run of SFP stands: before its only round, or after it.

    Attributes:
        found: The discovered words, most frequent first.
        decoding: What became of the fragments; None before the round.
        history: The round's summary, once it is over.
    """

    found: Found
    decoding: PuzzleSummary | None = None
    history: tuple[RoundSummary, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Sfp(LocalProtocol[SfpState, FragmentQuery[FragmentPuzzle] | PrefixQuery]):
    """Settings of the Sequence Fragment Puzzle; the sketches' defaults are Apple's deployment.

    Clients report, for each sampled word, the whole string and one fragment of it at a random
    position, both randomized. The server looks for frequent fragments, puts strings together from
    fragments with a common puzzle number (a small hash of the whole string), and asks the sketch
    of whole strings about them. There is one round.

    Shorter words are padded with blanks and found; longer ones are truncated, and what is found
    then is their beginning: a run's discoveries say of which words that is so (``is_truncated``).

    Attributes:
        word_share: Share of ``local_epsilon`` that goes to the report about the whole string, the
            paper's epsilon; the rest is the fragment's, the paper's epsilon'. Apple's 2 + 6 are 8
            with a share of 0.25.
        length: Symbols of a padded string; a multiple of ``fragment_length``.
        fragment_length: Symbols of a fragment.
        num_puzzles: Puzzle numbers.
        word_oracle: Sketch of whole strings: "cms" (the paper's) or "hcms".
        word_hashes: Its rows, k.
        word_cells: Its cells per row, m.
        fragment_oracle: "cms" (the paper's), "hcms", or "ss": Subset Selection on all fragments,
            for a comparison that is fair to the puzzle.
        fragment_hashes: Rows of a fragment sketch, k'.
        fragment_cells: Its cells per row, m'.
        max_fragments: T, most fragments kept per position.
        noise_budget: About how many strings of noise, per puzzle number, may be as credible as one
            that is looked up: see `puzzle_decoding.assemble`. Infinite for the paper's rule, all
            strings from the T most frequent fragments.
        max_strings: Most strings put together per puzzle number; what is cut is reported.
        max_words: Most words in the result.
        word_z: Least z of a word's count in the sketch of whole strings, against the noise of the
            randomizer alone.
        hash_seed: Seed of all hash functions; None for the run's, so that each run draws its own.
    """

    name: ClassVar[str] = "sfp"
    title: ClassVar[str] = "SFP"
    state_types: ClassVar[tuple[type[Any], ...]] = (SfpState, Found, PuzzleSummary, RoundSummary)
    truncates_words: ClassVar[bool] = True

    word_share: Annotated[float, Gt(0), Lt(1)] = 0.25
    length: Layers = 10
    fragment_length: Count = 2
    num_puzzles: Count = 256
    word_oracle: Literal["cms", "hcms"] = "cms"
    word_hashes: Count = 2048
    word_cells: Count = 1024
    fragment_oracle: Literal["cms", "hcms", "ss"] = "cms"
    fragment_hashes: Count = 2048
    fragment_cells: Count = 1024
    max_fragments: Count = 50_000
    noise_budget: Annotated[float, Gt(0)] = 0.02
    max_strings: Count = 200_000
    max_words: Count = 1_000
    word_z: Annotated[float, Gt(-math.inf), Lt(math.inf)] = 0.5
    hash_seed: Annotated[Annotated[int, Ge(0)] | None, FromConfig("seed")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_epsilon(word_epsilon=self.word_epsilon, fragment_epsilon=self.fragment_epsilon)
        # Made once here so that bad sizes are refused before anything runs.
        query = self._query(num_clients=1)
        _ = query.words, query.fragments

    @property
    def word_epsilon(self) -> float:
        """Privacy of the report about the whole string; the paper's epsilon."""
        return self.local_epsilon * self.word_share

    @property
    def fragment_epsilon(self) -> float:
        """Privacy of the report about the fragment; the paper's epsilon'."""
        return self.local_epsilon * (1 - self.word_share)

    @property
    def num_cohorts(self) -> int:
        """Everybody is asked at once."""
        return 1

    @property
    def longest_word(self) -> int:
        """As many symbols as a padded string."""
        return self.length

    @property
    def mechanism(self) -> LocalReports:
        """A record of two reports, whose epsilons compose: Apple (2017), Theorem 4.5."""
        query = self._query(num_clients=decided(self.clients_per_layer, "clients_per_layer"))
        return LocalReports(
            layers=(
                PlannedLayer(
                    pass_index=0,
                    layer=1,
                    num_clients=query.cohort.size,
                    smallest_domain=query.puzzle.num_fragments,
                    largest_domain=query.puzzle.num_fragments,
                ),
                *self.planned_recount(0, 2, most_words=self.max_words),
            ),
            max_items=self.max_items,
            padded=self.pad,
            false_discovery_rate=self.false_discovery_rate,
            randomizers=(query.word_oracle, query.fragment_oracle),
            recount_randomizer=self.recount_oracle if self.recounts else None,
        )

    def settle(self, *, num_clients: int, seed: int) -> Self:
        """Return the settings with everybody asked, and the run's hash functions."""
        settled = super().settle(num_clients=num_clients, seed=seed)
        return settled if self.hash_seed is not None else replace(settled, hash_seed=seed)

    def initialize(self) -> SfpState:
        """Return the state before the round."""
        return SfpState(found=Found.nothing(self.length))

    def next_query(self, state: SfpState) -> FragmentQuery[FragmentPuzzle] | PrefixQuery | None:
        """Return the one broadcast, after its answers the recount, then None."""
        size = decided(self.clients_per_layer, "clients_per_layer")
        if not state.history:
            return self._query(num_clients=size)
        if len(state.history) > 1:
            return None
        return self.recount_query(
            state.found.codes,
            pass_index=0,
            layer=2,
            cohort=Cohort(start=size, size=self.num_recount_clients),
        )

    def finish_round(
        self,
        state: SfpState,
        query: FragmentQuery[FragmentPuzzle] | PrefixQuery,
        aggregate: Aggregate,
    ) -> SfpState:
        """Return the state with the words decoded from the sketches."""
        if isinstance(query, PrefixQuery):
            found, summary = self.recounted(state.found, query, aggregate)
            return replace(state, found=found, history=(*state.history, summary))
        if len(aggregate.tally) != query.tally_size:
            raise ValueError(
                f"Expected a tally of {query.tally_size} numbers, got {len(aggregate.tally)}."
            )
        word_sums, fragment_sums, records = query.split(aggregate.tally)
        oracle = query.fragments
        codes, decoding = assemble(
            query.puzzle,
            oracle.support_of_all(fragment_sums),
            records,
            oracle,
            Assembly(
                max_fragments=self.max_fragments,
                noise_budget=self.noise_budget,
                max_strings=self.max_strings,
            ),
        )
        support = query.words.support(word_sums, query.puzzle.names.keys(codes))
        # What the randomizer alone explains is dropped. Whether a word is significant also depends
        # on the frequent words that it may share cells with.
        z = Noise(oracle=query.words, num_reports=aggregate.num_reports).z(support)
        noise = Noise.of_aggregate(query.words, aggregate.num_reports, word_sums)
        order = np.argsort(-support, kind="stable")
        kept = order[z[order] >= self.word_z][: self.max_words]
        found = Found.counted(query, aggregate, noise, codes=codes[kept], support=support[kept])
        return SfpState(
            found=found,
            decoding=decoding,
            history=(
                self._summary(
                    query,
                    aggregate,
                    found,
                    looked_up=len(codes),
                    threshold=int(support[kept[-1]]) if len(kept) else 0,
                    noise_std=noise.std,
                ),
            ),
        )

    def discoveries(self, state: SfpState) -> Discoveries:
        """Return the words found, most frequent first."""
        return state.found.discoveries(self.symbols)

    def summaries(self, state: SfpState) -> Sequence[RoundSummary]:
        """Return the summary of the round, if it is over.

        It is about whole strings: ``num_candidates`` were put together from fragments and looked
        up, ``threshold`` is the support of the last one kept, ``domain_size`` is the number of
        fragment values, and ``report_bits`` that of a record of two reports.
        """
        return state.history

    def _query(self, *, num_clients: int) -> FragmentQuery[FragmentPuzzle]:
        symbols = self.symbols
        naming, words, fragments = derived_seeds(self.hash_seed or 0, 3)
        puzzle = FragmentPuzzle(
            alphabet_size=symbols.size,
            length=self.length,
            fragment_length=self.fragment_length,
            num_puzzles=self.num_puzzles,
            hash_seed=naming,
        )
        return FragmentQuery(
            pass_index=0,
            layer=1,
            cohort=Cohort(start=0, size=num_clients),
            alphabet=symbols,
            max_items=self.max_items,
            sampler=self.sampler,
            pad=self.pad,
            puzzle=puzzle,
            word_oracle=OracleSpec(
                name=self.word_oracle,
                epsilon=self.word_epsilon,
                params=_sketch_params(self.word_hashes, self.word_cells, words),
            ),
            fragment_oracle=OracleSpec(
                name=self.fragment_oracle,
                epsilon=self.fragment_epsilon,
                params={"subset_size": "optimal"}
                if self.fragment_oracle == "ss"
                else _sketch_params(self.fragment_hashes, self.fragment_cells, fragments),
            ),
        )

    def _summary(
        self,
        query: FragmentQuery[FragmentPuzzle],
        aggregate: Aggregate,
        found: Found,
        *,
        looked_up: int,
        threshold: int,
        noise_std: float,
    ) -> RoundSummary:
        return RoundSummary(
            pass_index=0,
            layer=1,
            num_prefixes=0,
            num_candidates=looked_up,
            domain_size=query.puzzle.num_fragments,
            num_clients=aggregate.num_clients,
            num_reports=aggregate.num_reports,
            threshold=threshold,
            threshold_z=float(found.z[-1]) if len(found.z) else 0.0,
            noise_std=noise_std,
            num_kept=len(found.codes),
            num_finished=len(found.codes),
            report_bits=query.report_bits,
            download_bits=_SEEDS * _SEED_BITS,
        )


def _sketch_params(num_hashes: int, num_cells: int, seed: int) -> dict[str, str | int | float]:
    return {"num_hashes": num_hashes, "num_cells": num_cells, "hash_seed": seed}
