"""Queries answered with Bloom filters: RAPPOR's, about whole words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from fedhh.hashing import StringKeys
from fedhh.oracles.bloom_filters import BloomReports
from fedhh.queries.base import SEED_BITS, Query


@dataclass(frozen=True, kw_only=True, eq=False)
class BloomQuery(Query):
    """Asks for words, whatever they are, one report of a Bloom filter for each.

    A word with other symbols, or with more than ``longest_word``, is left out. A contribution with
    nothing to say is the report of an empty filter.

    Attributes:
        longest_word: Symbols of the longest word that takes part.
        reports: The filters and what happens to their bits.
        name_seed: Seed of the words' keys.
    """

    longest_word: int
    reports: BloomReports
    name_seed: int

    @cached_property
    def names(self) -> StringKeys:
        """Keys of words, which the filters hash."""
        return StringKeys.draw(
            alphabet_size=self.alphabet.size, length=self.longest_word, seed=self.name_seed
        )

    @property
    def tally_size(self) -> int:
        return self.reports.tally_size

    @property
    def local_epsilon(self) -> float:
        return self.reports.epsilon

    @property
    def report_bits(self) -> float:
        return self.reports.report_bits

    @property
    def download_bits(self) -> float:
        return 2 * SEED_BITS
