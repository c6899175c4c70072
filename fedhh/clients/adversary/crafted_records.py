"""Fake answers to queries for records and Bloom filters: several reports about one string."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from fedhh.clients.adversary.crafted_reports import ReportMaker, live_values, report_maker
from fedhh.clients.adversary.crafter import (
    Crafter,
    Goal,
    answer_as_honest,
    no_words,
)
from fedhh.clients.answers.base import BlockCounts
from fedhh.clients.answers.blind import padded_strings
from fedhh.clients.answers.matching import Values
from fedhh.oracles.base import Tally
from fedhh.oracles.bloom_filters import BloomReports
from fedhh.oracles.crafted_reports import aggregate_in_parts, bits_with
from fedhh.oracles.poisoning import random_reports
from fedhh.queries.blooms import BloomQuery, NgramQuery
from fedhh.queries.sketches import FragmentQuery
from fedhh.words.parts import StringParts


class RecordCrafter(Crafter):
    """What queries for records about padded strings share; nothing of a record is checked."""

    @property
    @abstractmethod
    def _puzzle(self) -> StringParts:
        """How strings are cut."""

    @cached_property
    def _strings(self) -> tuple[Values, Values]:
        """Keys of the lexicon's strings, -1 for unusable ones, and their parts by position."""
        lexicon = self._words.lexicon
        codes, keys = padded_strings(self._query.alphabet, self._puzzle, lexicon)
        parts = np.full((len(keys), self._puzzle.num_positions), -1, dtype=np.int64)
        usable = keys >= 0
        parts[usable] = self._puzzle.fragments(codes[usable], keys[usable])
        return keys, parts

    def add_random_values(
        self, num_clients: int, *, rng: np.random.Generator, tally: Tally
    ) -> BlockCounts:
        # Who has nothing to say reports uniform values.
        query = replace(self._query, pad=True)
        return answer_as_honest(query, self._words, no_words(num_clients), rng=rng, tally=tally)


class FragmentCrafter(RecordCrafter):
    """Records of a whole string and a fragment: at a random position, those of all targets.

    Positions are uniform, as in honest records, so that every part of a target has support.
    """

    _query: FragmentQuery[Any]

    @property
    def _puzzle(self) -> StringParts:
        puzzle: StringParts = self._query.puzzle
        return puzzle

    def add(
        self,
        targets: Sequence[int],
        num_clients: int,
        *,
        goal: Goal,
        rng: np.random.Generator,
        tally: Tally,
    ) -> BlockCounts:
        keys, parts = self._strings
        numbers = np.asarray(targets, dtype=np.int64)
        numbers = numbers[keys[numbers] >= 0]
        if not len(numbers):
            return self.add_random_reports(num_clients, rng=rng, tally=tally)
        self._add_records(
            report_maker(self._query.words, keys[numbers], goal, rng),
            lambda place: report_maker(self._query.fragments, parts[numbers, place], goal, rng),
            num_clients,
            rng,
            tally,
        )
        return self._counts(num_clients)

    def add_random_reports(
        self, num_clients: int, *, rng: np.random.Generator, tally: Tally
    ) -> BlockCounts:
        self._add_records(
            partial(random_reports, self._query.words, rng=rng),
            lambda _: partial(random_reports, self._query.fragments, rng=rng),
            num_clients,
            rng,
            tally,
        )
        return self._counts(num_clients, holders=0)

    def _add_records(
        self,
        of_strings: ReportMaker,
        of_fragments: Callable[[int], ReportMaker],
        num_clients: int,
        rng: np.random.Generator,
        tally: Tally,
    ) -> None:
        """Add records, made of reports about strings and of those at each position."""
        query = self._query
        word_sums, fragment_sums, records = query.split(tally)
        count, positions = num_clients * query.max_items, query.puzzle.num_positions
        aggregate_in_parts(query.words, of_strings, count, word_sums)
        numbers = rng.multinomial(count, np.full(positions, 1 / positions))
        for place, number in enumerate(numbers.tolist()):
            aggregate_in_parts(query.fragments, of_fragments(place), number, fragment_sums[place])
        records += numbers


class BloomCrafter(Crafter):
    """Bloom filters in a random cohort, with the bits of all targets there, or without any.

    Other bits are 1 up to what an honest report expects, rounded down. Nothing of it is checked.
    """

    _query: BloomQuery

    def add(
        self,
        targets: Sequence[int],
        num_clients: int,
        *,
        goal: Goal,
        rng: np.random.Generator,
        tally: Tally,
    ) -> BlockCounts:
        query, lexicon = self._query, self._words.lexicon
        usable = lexicon.reachable(query.alphabet, query.longest_word)
        codes = lexicon.encoded(query.alphabet, query.longest_word)
        keys = live_values(np.where(usable, query.names.keys(codes), -1), targets)
        if not len(keys):
            return self.add_random_reports(num_clients, rng=rng, tally=tally)
        add_filters(
            query.reports, keys, num_clients * query.max_items, goal=goal, rng=rng, out=tally
        )
        return self._counts(num_clients)

    def add_random_reports(
        self, num_clients: int, *, rng: np.random.Generator, tally: Tally
    ) -> BlockCounts:
        query = self._query
        add_random_filters(query.reports, num_clients * query.max_items, rng=rng, out=tally)
        return self._counts(num_clients, holders=0)

    def add_random_values(
        self, num_clients: int, *, rng: np.random.Generator, tally: Tally
    ) -> BlockCounts:
        query = self._query
        keys = rng.integers(query.names.num_keys, size=num_clients * query.max_items)
        query.reports.add_reports(keys, rng=rng, out=tally)
        return self._counts(num_clients, holders=0)


class NgramCrafter(RecordCrafter):
    """Records of a whole string and two n-grams: the string's filter has all targets' bits.

    Each record's n-grams are those of one target, in turn, without noise: the patterns that say
    most for it. Against words, they are those of random texts, with the targets' bits left out.
    """

    _query: NgramQuery

    @property
    def _puzzle(self) -> StringParts:
        return self._query.puzzle

    def add(
        self,
        targets: Sequence[int],
        num_clients: int,
        *,
        goal: Goal,
        rng: np.random.Generator,
        tally: Tally,
    ) -> BlockCounts:
        query = self._query
        keys, texts = self._strings
        numbers = np.asarray(targets, dtype=np.int64)
        numbers = np.unique(numbers[keys[numbers] >= 0])
        if not len(numbers):
            return self.add_random_reports(num_clients, rng=rng, tally=tally)
        words, patterns = query.split(tally)
        count = num_clients * query.max_items
        add_filters(query.words, keys[numbers], count, goal=goal, rng=rng, out=words)
        pairs = rng.integers(len(query.pairs), size=count)
        cohorts = rng.integers(query.ngrams.filters.num_cohorts, size=count)
        make = self._supporting if goal == "promote" else self._opposing
        first, second = (
            make(texts[numbers], cohorts, query.pairs[pairs, side], rng) for side in range(2)
        )
        np.add.at(patterns, (pairs, cohorts, first, second), 1)
        return self._counts(num_clients)

    def add_random_reports(
        self, num_clients: int, *, rng: np.random.Generator, tally: Tally
    ) -> BlockCounts:
        query = self._query
        words, patterns = query.split(tally)
        count = num_clients * query.max_items
        add_random_filters(query.words, count, rng=rng, out=words)
        patterns += rng.multinomial(count, np.full(patterns.size, 1 / patterns.size)).reshape(
            patterns.shape
        )
        return self._counts(num_clients, holders=0)

    def _supporting(
        self, texts: Values, cohorts: Values, positions: Values, rng: np.random.Generator
    ) -> Values:
        """Return the patterns of targets' texts, ``(targets, positions)``, at one position each."""
        turns = np.arange(len(positions)) % len(texts)
        return self._numbers(self._bits(cohorts, positions, texts[turns, positions]))

    def _opposing(
        self, texts: Values, cohorts: Values, positions: Values, rng: np.random.Generator
    ) -> Values:
        random = rng.integers(self._query.puzzle.num_texts, size=len(positions))
        response = self._query.ngrams.response
        bits = response.answer(self._bits(cohorts, positions, random), rng=rng)
        for own in texts:
            bits &= ~self._bits(cohorts, positions, own[positions])
        return self._numbers(bits)

    def _bits(self, cohorts: Values, positions: Values, texts: Values) -> Any:
        """Return the filters of texts at positions, ``(n, k) bool``."""
        keys = self._query.ngram_keys(positions, texts)
        return self._query.ngrams.filters.filters(cohorts, keys)

    def _numbers(self, bits: Any) -> Values:
        return np.asarray(bits @ (1 << np.arange(bits.shape[1], dtype=np.int64)), dtype=np.int64)


def add_filters(
    reports: BloomReports,
    keys: Values,
    count: int,
    *,
    goal: Goal,
    rng: np.random.Generator,
    out: Tally,
) -> None:
    """Add reports with all bits of some keys, or none of them, to a tally of Bloom filters."""
    filters, response = reports.filters, reports.response
    ones, by_cohort = reports.split(out)
    bit = int(goal == "promote")
    set_bits = filters.num_hashes
    expected = set_bits * response.one + (filters.num_bits - set_bits) * response.zero
    numbers = _in_cohorts(reports, count, rng)
    for cohort in np.flatnonzero(numbers).tolist():
        own = np.unique(filters.positions(np.full(len(keys), cohort), keys))
        made = bits_with(
            filters.num_bits, own, bit=bit, ones=int(expected), count=int(numbers[cohort]), rng=rng
        )
        ones[cohort] += made.sum(axis=0, dtype=np.int64)
    by_cohort += numbers


def add_random_filters(
    reports: BloomReports, count: int, *, rng: np.random.Generator, out: Tally
) -> None:
    """Add reports of uniform bits to a tally of Bloom filters."""
    ones, by_cohort = reports.split(out)
    numbers = _in_cohorts(reports, count, rng)
    ones += rng.binomial(numbers[:, None], 0.5, size=ones.shape)
    by_cohort += numbers


def _in_cohorts(reports: BloomReports, count: int, rng: np.random.Generator) -> Values:
    """Return how many of some reports are of each cohort, drawn uniformly."""
    cohorts = reports.filters.num_cohorts
    return rng.multinomial(count, np.full(cohorts, 1 / cohorts)).astype(np.int64)
