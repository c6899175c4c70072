"""Contributions reported as Bloom filters: RAPPOR's, with a list of candidates and without."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fedhh.hashing import Keys
from fedhh.oracles.attack import bits_with
from fedhh.oracles.bloom import BloomReports
from fedhh.questions.channel import Channel, RngOf
from fedhh.questions.choice import Attack
from fedhh.questions.clients import Coins, Said, Sent, Values
from fedhh.questions.question import SEED_BITS, Question, Tally
from fedhh.questions.records import PaddedRecords
from fedhh.questions.reports import or_random
from fedhh.words.puzzle import FragmentPuzzle


@dataclass(frozen=True, kw_only=True, eq=False)
class Ngrams(PaddedRecords):
    """Whole strings and pairs of their n-grams, as records of three reports of RAPPOR's.

    Source: Fanti, Pihur, Erlingsson (2016), "Building a RAPPOR with the unknown: privacy-preserving
    learning of associations and data dictionaries", PoPETs, section 4.

    A record is a report about the whole string, a uniformly random pair of positions, and a report
    about the n-gram at each of them, both in one cohort, drawn apart from the whole string's. A
    contribution with nothing to say reports a uniformly random string and uniformly random n-grams.
    A part of the puzzle is an n-gram's text.

    The tally holds what the whole string's reports add up to, and then, for each pair of positions
    and cohort, how many records had each pattern of bits at the first position and at the second.

    Attributes:
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
    def download_bits(self) -> float:
        return 2 * SEED_BITS

    def report_bits(self, question: Question) -> float:
        both = 2 * self.ngrams.filters.num_bits + math.log2(self.ngrams.filters.num_cohorts)
        return self.words.report_bits + both + math.log2(len(self.pairs))

    def ngram_keys(self, positions: Values, texts: Values) -> Keys:
        """Return ``(n,) int64``: what a text at a position is hashed as."""
        return positions * self.puzzle.num_texts + texts

    def split(self, tally: Tally) -> tuple[Tally, Tally]:
        """Return views: whole strings ``(w,)``, and tables ``(pairs, m, 2**k, 2**k)``."""
        first = self.words.tally_size
        shape = (-1, self.ngrams.filters.num_cohorts, self.num_patterns, self.num_patterns)
        return tally[:first], tally[first:].reshape(shape)

    def add(self, question: Question, said: Said, table: Any, coins: Coins, tally: Tally) -> Sent:
        keys, rng = said.contributions(question.pad), coins.randomizer
        reported = or_random(keys, self.puzzle.names.num_keys, rng)
        pairs = rng.integers(len(self.pairs), size=len(keys))
        texts = rng.integers(self.puzzle.num_texts, size=(2, len(keys)))
        positions = np.ascontiguousarray(self.pairs[pairs].T)
        for side in range(2):
            table.fill(keys, positions[side], texts[side])
        words, patterns = self.split(tally)
        self.words.add_reports(reported, rng=rng, out=words)
        cohorts = rng.integers(self.ngrams.filters.num_cohorts, size=len(keys))
        first, second = (
            self._numbers(
                self.ngrams.response.answer(
                    self._bits(cohorts, positions[side], texts[side]), rng=rng
                )
            )
            for side in range(2)
        )
        np.add.at(patterns, (pairs, cohorts, first, second), 1)
        return Sent.of(said, len(keys))

    def craft(self, attack: Attack) -> Sent:
        """Add records whose string's filter has all targets' bits.

        Each record's n-grams are those of one target, in turn, without noise: the patterns that say
        most for it. Against words, they are those of random texts, with the targets' bits left out.
        """
        keys, texts = self.keys_and_parts(replace(attack, targets=np.unique(attack.targets)))
        sign, count, rng = attack.sign, attack.count, attack.rng
        of_words, patterns = self.split(attack.tally)
        add_filters(self.words, keys, count, sign=sign, rng=rng, out=of_words)
        if not len(keys):
            uniform = np.full(patterns.size, 1 / patterns.size)
            patterns += rng.multinomial(count, uniform).reshape(patterns.shape)
            return attack.sent(holds=False)
        pairs = rng.integers(len(self.pairs), size=count)
        cohorts = rng.integers(self.ngrams.filters.num_cohorts, size=count)
        make = self._supporting if sign > 0 else self._opposing
        first, second = (make(texts, cohorts, self.pairs[pairs, side], rng) for side in range(2))
        np.add.at(patterns, (pairs, cohorts, first, second), 1)
        return attack.sent()

    def _supporting(
        self, texts: Values, cohorts: Values, positions: Values, rng: np.random.Generator
    ) -> Values:
        """Return the patterns of targets' texts, ``(targets, positions)``, at one position each."""
        turns = np.arange(len(positions)) % len(texts)
        return self._numbers(self._bits(cohorts, positions, texts[turns, positions]))

    def _opposing(
        self, texts: Values, cohorts: Values, positions: Values, rng: np.random.Generator
    ) -> Values:
        random = rng.integers(self.puzzle.num_texts, size=len(positions))
        bits = self.ngrams.response.answer(self._bits(cohorts, positions, random), rng=rng)
        for own in texts:
            bits &= ~self._bits(cohorts, positions, own[positions])
        return self._numbers(bits)

    def _bits(self, cohorts: Values, positions: Values, texts: Values) -> Any:
        """Return the filters of texts at positions, ``(n, k) bool``."""
        return self.ngrams.filters.filters(cohorts, self.ngram_keys(positions, texts))

    def _numbers(self, bits: Any) -> Values:
        """Return ``(n,) int64``: filters as numbers, bit i as 2**i."""
        return np.asarray(bits @ (1 << np.arange(bits.shape[1], dtype=np.int64)), dtype=np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Blooms(Channel):
    """A report of a Bloom filter for each word, whatever it is.

    Source: Erlingsson, Pihur, Korolova (2014), "RAPPOR: randomized aggregatable privacy-preserving
    ordinal response", CCS. A contribution with nothing to say is the report of an empty filter.

    Attributes:
        reports: The filters and what happens to their bits.
    """

    reports: BloomReports

    @property
    def tally_size(self) -> int:
        return self.reports.tally_size

    @property
    def local_epsilon(self) -> float:
        return self.reports.epsilon

    @property
    def download_bits(self) -> float:
        return SEED_BITS

    def report_bits(self, question: Question) -> float:
        return self.reports.report_bits

    def add(self, question: Question, said: Said, table: Any, coins: Coins, tally: Tally) -> Sent:
        keys, reports = said.contributions(question.pad), self.reports
        add = reports.add_noise_free_counts if question.counts_only else reports.add_reports
        add(keys, rng=coins.randomizer, out=tally)
        return Sent.of(said, len(keys))

    @property
    def can_sample(self) -> bool:
        return True

    @property
    def report_draws(self) -> int:
        return self.reports.filters.num_bits

    def sample(self, counts: Tally, rng_of: RngOf) -> Tally:
        return self.reports.sample_aggregate(counts, rng=rng_of(0))

    def craft(self, attack: Attack) -> Sent:
        """Add filters in a random cohort, with the bits of all targets there, or without any.

        Other bits are 1 up to what an honest report expects, rounded down. Nothing of it is
        checked.
        """
        keys, sign = attack.aim
        add_filters(self.reports, keys, attack.count, sign=sign, rng=attack.rng, out=attack.tally)
        return attack.sent(holds=sign != 0)


def add_filters(
    reports: BloomReports,
    keys: Values,
    count: int,
    *,
    sign: int,
    rng: np.random.Generator,
    out: Tally,
) -> None:
    """Add reports with all bits of some keys (sign 1), or none, to a tally of Bloom filters.

    Without keys, their bits are uniform.
    """
    filters, response = reports.filters, reports.response
    ones, by_cohort = reports.split(out)
    cohorts = filters.num_cohorts
    numbers = rng.multinomial(count, np.full(cohorts, 1 / cohorts)).astype(np.int64)
    by_cohort += numbers
    if not len(keys):
        ones += rng.binomial(numbers[:, None], 0.5, size=ones.shape)
        return
    bit = int(sign > 0)
    set_bits = filters.num_hashes
    expected = set_bits * response.one + (filters.num_bits - set_bits) * response.zero
    for cohort in np.flatnonzero(numbers).tolist():
        own = np.unique(filters.positions(np.full(len(keys), cohort), keys))
        made = bits_with(
            filters.num_bits, own, bit=bit, ones=int(expected), count=int(numbers[cohort]), rng=rng
        )
        ones[cohort] += made.sum(axis=0, dtype=np.int64)
