"""A query for words as three Bloom filters: of the whole, and of two of its n-grams.

Source: Fanti, Pihur, Erlingsson (2016), "Building a RAPPOR with the unknown: privacy-preserving
learning of associations and data dictionaries", PoPETs, section 4.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedhh.hashing import Keys
from fedhh.oracles.base import Tally, Values
from fedhh.oracles.bloom_filters import BloomReports
from fedhh.queries.base import SEED_BITS, Query
from fedhh.words.puzzle import FragmentPuzzle


@dataclass(frozen=True, kw_only=True, eq=False)
class NgramQuery(Query):
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
