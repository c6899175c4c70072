"""A query for plain words: for a curator whom those clients trust that it asks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from fedhh.hashing import StringKeys
from fedhh.queries.base import SEED_BITS, ItemQuery


@dataclass(frozen=True, kw_only=True, eq=False)
class PlainWordsQuery(ItemQuery):
    """Asks each client for up to B of its words, as they are.

    Nothing is randomized: it is for clients who trust whoever counts. The answer's messages are
    histograms, ``(rows, longest_word + 1) int64``: a word's codes, filled up with the end symbol,
    and how many clients of a block contributed it. Several rows may be about one word. A word
    longer than ``longest_word``, or with a foreign symbol, takes no part. The tally is empty.

    Attributes:
        longest_word: Symbols of the longest word that takes part.
        hash_seed: Seed of the names of words, by which a client chooses among equals.
    """

    longest_word: int
    hash_seed: int

    @cached_property
    def names(self) -> StringKeys:
        """Names of words."""
        return StringKeys.draw(
            alphabet_size=self.alphabet.size, length=self.longest_word, seed=self.hash_seed
        )

    @property
    def num_candidates(self) -> int:
        """All strings, by their names: which of them anybody holds is not known."""
        return self.names.num_keys

    @property
    def domain_size(self) -> int:
        return self.num_candidates

    @property
    def download_bits(self) -> float:
        return SEED_BITS

    @property
    def report_bits(self) -> float:
        return self.longest_word * math.log2(self.alphabet.size)

    @property
    def tally_size(self) -> int:
        return 0
