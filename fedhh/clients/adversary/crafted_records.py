"""Fake answers to questions for records and Bloom filters: several reports about one string."""

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
from fedhh.questions.blooms import BloomQuestion, NgramQuestion
from fedhh.questions.sketches import FragmentQuestion
from fedhh.words.parts import StringParts


class RecordCrafter(Crafter):
    """What questions for records about padded strings share; nothing of a record is checked."""

    @property
    @abstractmethod
    def _puzzle(self) -> StringParts:
        """How strings are cut."""

    @cached_property
    def _strings(self) -> tuple[Values, Values]:
        """Keys of the lexicon's strings, -1 for unusable ones, and their parts by position."""
        lexicon = self._words.lexicon
        codes, keys = padded_strings(self._question.alphabet, self._puzzle, lexicon)
        parts = np.full((len(keys), self._puzzle.num_positions), -1, dtype=np.int64)
        usable = keys >= 0
        parts[usable] = self._puzzle.fragments(codes[usable], keys[usable])
        return keys, parts

    def add_random_values(
        self, num_clients: int, *, rng: np.random.Generator, tally: Tally
    ) -> BlockCounts:
        # Who has nothing to say reports uniform values.
        question = replace(self._question, pad=True)
        return answer_as_honest(question, self._words, no_words(num_clients), rng=rng, tally=tally)


class FragmentCrafter(RecordCrafter):
    """Records of a whole string and a fragment: at a random position, those of all targets.

    Positions are uniform, as in honest records, so that every part of a target has support.
    """

    _question: FragmentQuestion[Any]

    @property
    def _puzzle(self) -> StringParts:
        puzzle: StringParts = self._question.puzzle
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
            report_maker(self._question.words, keys[numbers], goal, rng),
            lambda place: report_maker(self._question.fragments, parts[numbers, place], goal, rng),
            num_clients,
            rng,
            tally,
        )
        return self._counts(num_clients)

    def add_random_reports(
        self, num_clients: int, *, rng: np.random.Generator, tally: Tally
    ) -> BlockCounts:
        self._add_records(
            partial(random_reports, self._question.words, rng=rng),
            lambda _: partial(random_reports, self._question.fragments, rng=rng),
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
        question = self._question
        word_sums, fragment_sums, records = question.split(tally)
        count, positions = num_clients * question.max_items, question.puzzle.num_positions
        aggregate_in_parts(question.words, of_strings, count, word_sums)
        numbers = rng.multinomial(count, np.full(positions, 1 / positions))
        for place, number in enumerate(numbers.tolist()):
            aggregate_in_parts(
                question.fragments, of_fragments(place), number, fragment_sums[place]
            )
        records += numbers


class BloomCrafter(Crafter):
    """Bloom filters in a random cohort, with the bits of all targets there, or without any.

    Other bits are 1 up to what an honest report expects, rounded down. Nothing of it is checked.
    """

    _question: BloomQuestion

    def add(
        self,
        targets: Sequence[int],
        num_clients: int,
        *,
        goal: Goal,
        rng: np.random.Generator,
        tally: Tally,
    ) -> BlockCounts:
        question, lexicon = self._question, self._words.lexicon
        usable = lexicon.reachable(question.alphabet, question.longest_word)
        codes = lexicon.encoded(question.alphabet, question.longest_word)
        keys = live_values(np.where(usable, question.names.keys(codes), -1), targets)
        if not len(keys):
            return self.add_random_reports(num_clients, rng=rng, tally=tally)
        add_filters(
            question.reports, keys, num_clients * question.max_items, goal=goal, rng=rng, out=tally
        )
        return self._counts(num_clients)

    def add_random_reports(
        self, num_clients: int, *, rng: np.random.Generator, tally: Tally
    ) -> BlockCounts:
        question = self._question
        add_random_filters(question.reports, num_clients * question.max_items, rng=rng, out=tally)
        return self._counts(num_clients, holders=0)

    def add_random_values(
        self, num_clients: int, *, rng: np.random.Generator, tally: Tally
    ) -> BlockCounts:
        question = self._question
        keys = rng.integers(question.names.num_keys, size=num_clients * question.max_items)
        question.reports.add_reports(keys, rng=rng, out=tally)
        return self._counts(num_clients, holders=0)


class NgramCrafter(RecordCrafter):
    """Records of a whole string and two n-grams: the string's filter has all targets' bits.

    Each record's n-grams are those of one target, in turn, without noise: the patterns that say
    most for it. Against words, they are those of random texts, with the targets' bits left out.
    """

    _question: NgramQuestion

    @property
    def _puzzle(self) -> StringParts:
        return self._question.puzzle

    def add(
        self,
        targets: Sequence[int],
        num_clients: int,
        *,
        goal: Goal,
        rng: np.random.Generator,
        tally: Tally,
    ) -> BlockCounts:
        question = self._question
        keys, texts = self._strings
        numbers = np.asarray(targets, dtype=np.int64)
        numbers = np.unique(numbers[keys[numbers] >= 0])
        if not len(numbers):
            return self.add_random_reports(num_clients, rng=rng, tally=tally)
        words, patterns = question.split(tally)
        count = num_clients * question.max_items
        add_filters(question.words, keys[numbers], count, goal=goal, rng=rng, out=words)
        pairs = rng.integers(len(question.pairs), size=count)
        cohorts = rng.integers(question.ngrams.filters.num_cohorts, size=count)
        make = self._supporting if goal == "promote" else self._opposing
        first, second = (
            make(texts[numbers], cohorts, question.pairs[pairs, side], rng) for side in range(2)
        )
        np.add.at(patterns, (pairs, cohorts, first, second), 1)
        return self._counts(num_clients)

    def add_random_reports(
        self, num_clients: int, *, rng: np.random.Generator, tally: Tally
    ) -> BlockCounts:
        question = self._question
        words, patterns = question.split(tally)
        count = num_clients * question.max_items
        add_random_filters(question.words, count, rng=rng, out=words)
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
        random = rng.integers(self._question.puzzle.num_texts, size=len(positions))
        response = self._question.ngrams.response
        bits = response.answer(self._bits(cohorts, positions, random), rng=rng)
        for own in texts:
            bits &= ~self._bits(cohorts, positions, own[positions])
        return self._numbers(bits)

    def _bits(self, cohorts: Values, positions: Values, texts: Values) -> Any:
        """Return the filters of texts at positions, ``(n, k) bool``."""
        keys = self._question.ngram_keys(positions, texts)
        return self._question.ngrams.filters.filters(cohorts, keys)

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
