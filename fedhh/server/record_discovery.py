"""What discoveries in one round share whose clients report a string, and a part of it.

Every contribution is a record of two reports: the whole string through a sketch, and one part of
it, at a random position, through another oracle. The server finds candidates from the parts, by a
protocol's own rule, and asks the sketch of whole strings about them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Generic, Literal, Self, TypeVar

import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Gt, Lt

from fedhh.hashing import derived_seeds
from fedhh.mechanisms.base import PlannedLayer
from fedhh.mechanisms.local_reports import LocalReports
from fedhh.oracles import OracleSpec
from fedhh.protocol import Discoveries, RoundSummary
from fedhh.queries.base import Aggregate, PrefixQuery
from fedhh.queries.cohort import Cohort
from fedhh.queries.sketches import FragmentQuery, Parts
from fedhh.server.found import Found
from fedhh.server.local_discovery import LocalProtocol
from fedhh.server.noise import Noise
from fedhh.server.significance import above_noise
from fedhh.settings import Count, FromConfig, Layers, Positive, decided
from fedhh.validation import require_epsilon
from fedhh.words.trie import Codes

Sums = npt.NDArray[np.int64]
Told = TypeVar("Told")
"""What a protocol tells of its decoding."""

_SEEDS = 3
_SEED_BITS = 64.0


@dataclass(frozen=True, kw_only=True, eq=False)
class RecordState(Generic[Told]):
    """Where a run stands: before its round of records, after it, or after the recount.

    Attributes:
        found: The discovered words, most frequent first.
        decoding: What became of the parts on the way to candidates; None before.
        history: One summary per finished round.
    """

    found: Found
    decoding: Told | None = None
    history: tuple[RoundSummary, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RecordProtocol(
    LocalProtocol[RecordState[Told], FragmentQuery[Parts] | PrefixQuery], Generic[Parts, Told]
):
    """A discovery by records of two reports, in one round.

    Shorter words are padded with blanks and found; longer ones are truncated, and what is found
    then is their beginning: a run's discoveries say of which words that is so (``is_truncated``).

    Attributes:
        word_share: Share of ``local_epsilon`` that goes to the report about the whole string; the
            rest is that of the report about its part.
        length: Symbols of a padded string.
        max_words: Most words in the result.
        hash_seed: Seed of all hash functions; None for the run's, so that each run draws its own.
    """

    state_types: ClassVar[tuple[type[Any], ...]] = (RecordState, Found, RoundSummary)
    truncates_words: ClassVar[bool] = True

    word_share: Annotated[float, Gt(0), Lt(1)] = 0.5
    length: Layers = 10
    max_words: Count = 1_000
    hash_seed: Annotated[Annotated[int, Ge(0)] | None, FromConfig("seed")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_epsilon(word_epsilon=self.word_epsilon, part_epsilon=self.part_epsilon)

    @property
    def word_epsilon(self) -> float:
        """Privacy of the report about the whole string."""
        return self.local_epsilon * self.word_share

    @property
    def part_epsilon(self) -> float:
        """Privacy of the report about its part."""
        return self.local_epsilon - self.word_epsilon

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
        """A record of two reports, whose epsilons add up."""
        query = self.records(num_clients=decided(self.clients_per_layer, "clients_per_layer"))
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
            anonymity_k=self.anonymity_k,
            randomizers=(query.word_oracle, query.fragment_oracle),
            recount_randomizer=self.recount_oracle if self.recounts else None,
        )

    def settle(self, *, num_clients: int, seed: int) -> Self:
        """Return the settings with everybody asked, and the run's hash functions."""
        settled = super().settle(num_clients=num_clients, seed=seed)
        return settled if self.hash_seed is not None else replace(settled, hash_seed=seed)

    def initialize(self) -> RecordState[Told]:
        """Return the state before the round."""
        return RecordState(found=Found.nothing(self.length))

    def next_query(self, state: RecordState[Told]) -> FragmentQuery[Parts] | PrefixQuery | None:
        """Return the one broadcast, after its answers the recount, then None."""
        size = decided(self.clients_per_layer, "clients_per_layer")
        if not state.history:
            return self.records(num_clients=size)
        if len(state.history) > 1:
            return None
        return self.recount_query(state.found.codes, pass_index=0, layer=2)

    def finish_round(
        self,
        state: RecordState[Told],
        query: FragmentQuery[Parts] | PrefixQuery,
        aggregate: Aggregate,
    ) -> RecordState[Told]:
        """Return the state with the words that the candidates' own counts let through."""
        if isinstance(query, PrefixQuery):
            found, summary = self.recounted(state.found, query, aggregate)
            return replace(state, found=found, history=(*state.history, summary))
        aggregate.check_answers(query)
        word_sums, part_sums, records = query.split(aggregate.tally)
        codes, decoding = self.candidates(query, part_sums, records)
        support = query.words.support(word_sums, query.puzzle.names.keys(codes))
        noise = Noise.of_aggregate(query.words, aggregate.num_reports, word_sums)
        chosen = self.credible(noise, support)
        found = Found.counted(query, aggregate, noise, codes=codes[chosen], support=support[chosen])
        threshold = int(support[chosen[-1]] if len(chosen) else support.max(initial=-1) + 1)
        summary = RoundSummary(
            pass_index=0,
            layer=1,
            num_prefixes=0,
            num_candidates=len(codes),
            domain_size=query.puzzle.num_fragments,
            num_clients=aggregate.num_clients,
            num_reports=aggregate.num_reports,
            threshold=threshold,
            threshold_z=noise.threshold_z(threshold, num_dropped=len(codes) - len(chosen)),
            noise_std=noise.std,
            num_kept=len(chosen),
            num_finished=len(chosen),
            report_bits=query.report_bits,
            download_bits=_SEEDS * _SEED_BITS,
        )
        return RecordState(found=found, decoding=decoding, history=(summary,))

    def discoveries(self, state: RecordState[Told]) -> Discoveries:
        """Return the words found, most frequent first."""
        return state.found.discoveries(self.symbols)

    def summaries(self, state: RecordState[Told]) -> Sequence[RoundSummary]:
        """Return one summary per finished round.

        The first is about whole strings: ``num_candidates`` were looked up, ``threshold`` is the
        support of the last one kept, ``domain_size`` is the number of values that a part may have,
        and ``report_bits`` that of a record of two reports.
        """
        return state.history

    @abstractmethod
    def candidates(
        self, query: FragmentQuery[Parts], sums: Sums, records: Sums
    ) -> tuple[Codes, Told]:
        """Return the strings that the parts speak for.

        Args:
            query: The broadcast.
            sums: ``(positions, s) int64``: the aggregate of each position's parts.
            records: ``(positions,) int64``: how many records each position has.

        Returns:
            ``(c, length) uint16`` distinct codes, and what became of the parts.
        """

    @abstractmethod
    def credible(self, noise: Noise, support: Sums) -> Sums:
        """Return which candidates the words' own sketch lets through, most frequent first.

        Args:
            noise: What chance does to a word's support, values that share its cells included.
            support: ``(c,) int64``: that of each candidate.

        Returns:
            ``int64``: at most ``max_words`` numbers of candidates.
        """

    @abstractmethod
    def parts(self, seed: int) -> Parts:
        """Return how strings are cut, with names and hashes of a seed."""

    @abstractmethod
    def word_oracle_spec(self, seed: int) -> OracleSpec:
        """Return the sketch of whole strings, with the hash functions of a seed."""

    @abstractmethod
    def part_oracle_spec(self, seed: int) -> OracleSpec:
        """Return the parts' oracle, with the hash functions of a seed if it is a sketch."""

    def records(self, *, num_clients: int) -> FragmentQuery[Parts]:
        """Return the broadcast to so many clients."""
        naming, words, parts = derived_seeds(self.hash_seed or 0, _SEEDS)
        return FragmentQuery(
            pass_index=0,
            layer=1,
            cohort=Cohort(start=0, size=num_clients),
            alphabet=self.symbols,
            max_items=self.max_items,
            sampler=self.sampler,
            pad=self.pad,
            puzzle=self.parts(naming),
            word_oracle=self.word_oracle_spec(words),
            fragment_oracle=self.part_oracle_spec(parts),
        )


def report_oracle(
    name: str, epsilon: float, *, num_hashes: int, num_cells: int, seed: int
) -> OracleSpec:
    """Return one of a record's oracles: a sketch of these sizes, or "ss", which has none."""
    params: dict[str, str | int | float] = {"subset_size": "optimal"}
    if name != "ss":
        params = {"num_hashes": num_hashes, "num_cells": num_cells, "hash_seed": seed}
    return OracleSpec(name=name, epsilon=epsilon, params=params)


SketchName = Literal["hashtogram", "cms", "hcms"]
"""Sketches that a record's reports may go through."""


@dataclass(frozen=True, kw_only=True)
class SketchedRecords(RecordProtocol[Parts, tuple[int, ...]]):
    """A discovery by records whose sketches have one size, of words that noise does not explain.

    What it tells of its decoding is how many it kept at each step.

    Attributes:
        num_hashes: Rows of each sketch, k.
        num_cells: Cells of each row, m.
        noise_words: Most words that nobody holds in the result, in expectation over the noise; see
            `significance.above_noise`.
    """

    num_hashes: Count = 64
    num_cells: Count = 4096
    noise_words: Positive = 0.1

    @property
    @abstractmethod
    def word_sketch(self) -> str:
        """Name of the sketch of whole strings."""

    @property
    @abstractmethod
    def part_oracle(self) -> str:
        """Name of the parts' oracle: a sketch, or Subset Selection."""

    def word_oracle_spec(self, seed: int) -> OracleSpec:
        """Return the sketch of whole strings, with the hash functions of a seed."""
        return self._oracle(self.word_sketch, self.word_epsilon, seed)

    def part_oracle_spec(self, seed: int) -> OracleSpec:
        """Return the parts' oracle, with the hash functions of a seed if it is a sketch."""
        return self._oracle(self.part_oracle, self.part_epsilon, seed)

    def credible(self, noise: Noise, support: Sums) -> Sums:
        """Return the candidates that noise does not explain, most frequent first."""
        return above_noise(noise, support, noise_kept=self.noise_words, most=self.max_words)

    def _oracle(self, name: str, epsilon: float, seed: int) -> OracleSpec:
        return report_oracle(
            name, epsilon, num_hashes=self.num_hashes, num_cells=self.num_cells, seed=seed
        )
