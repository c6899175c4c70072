"""Questions answered with Bloom filters: about whole words, and about their n-grams, too.

Source: Erlingsson, Pihur, Korolova (2014), "RAPPOR: randomized aggregatable privacy-preserving
ordinal response", CCS; for n-grams Fanti, Pihur, Erlingsson (2016), "Building a RAPPOR with the
unknown: privacy-preserving learning of associations and data dictionaries", PoPETs, section 4.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedhh.hashing import Keys, StringKeys
from fedhh.oracles.base import Tally, Values
from fedhh.oracles.bloom_filters import BloomReports
from fedhh.questions.base import SEED_BITS, ItemQuestion
from fedhh.words.puzzle import FragmentPuzzle


@dataclass(frozen=True, kw_only=True, eq=False)
class BloomQuestion(ItemQuestion):
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


@dataclass(frozen=True, kw_only=True, eq=False)
class NgramQuestion(ItemQuestion):
    """Asks for words, padded to one length, as records of three reports of RAPPOR's.

    A record is a report about the whole string, a uniformly random pair of positions, and a report
    about the n-gram at each of them, both in one cohort, drawn apart from the whole string's. A
    contribution with nothing to say reports a uniformly random string and uniformly random n-grams.

    The tally holds what the whole string's reports add up to, and then, for each pair of positions
    and cohort, how many records had each pattern of bits at the first position and at the second.

    Attributes:
        puzzle: How strings are cut; a fragment is an n-gram's text.
        words: Reports about whole strings.
        ngrams: Reports about n-grams, of few bits and one hash.
    """

    puzzle: FragmentPuzzle
    words: BloomReports
    ngrams: BloomReports

    @cached_property
    def pairs(self) -> Values:
        """Pairs of positions, ``(pairs, 2) int64``, the first one less."""
        positions = range(self.puzzle.num_positions)
        return np.array(list(itertools.combinations(positions, 2)), dtype=np.int64)

    @property
    def num_patterns(self) -> int:
        """Patterns of bits of one n-gram's report."""
        return int(2**self.ngrams.filters.num_bits)

    @property
    def tally_size(self) -> int:
        tables = len(self.pairs) * self.ngrams.filters.num_cohorts
        return self.words.tally_size + tables * self.num_patterns**2

    @property
    def local_epsilon(self) -> float:
        return self.words.epsilon + 2 * self.ngrams.epsilon

    @property
    def domain_size(self) -> int:
        return self.puzzle.names.num_keys

    @property
    def report_bits(self) -> float:
        both = 2 * self.ngrams.filters.num_bits + math.log2(self.ngrams.filters.num_cohorts)
        return self.words.report_bits + both + math.log2(len(self.pairs))

    @property
    def download_bits(self) -> float:
        return 3 * SEED_BITS

    def ngram_keys(self, positions: Values, texts: Values) -> Keys:
        """Return ``(n,) int64``: what a text at a position is hashed as."""
        return positions * self.puzzle.num_texts + texts

    def split(self, tally: Tally) -> tuple[Tally, Tally]:
        """Return views: whole strings ``(w,)``, and tables ``(pairs, m, 2**k, 2**k)``."""
        first = self.words.tally_size
        shape = (-1, self.ngrams.filters.num_cohorts, self.num_patterns, self.num_patterns)
        return tally[:first], tally[first:].reshape(shape)
