"""Answers to questions that broadcast no candidates: clients report strings, or parts of them.

What a client would say about a word is the same for everybody who holds it, so it is computed once
per distinct word; a block then only draws which, where and the coins.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from fedhh.clients.answers.base import BlockCounts, ItemAnswerer, WordValues
from fedhh.clients.answers.matching import Values, WordMatcher
from fedhh.clients.populations.coded_words import coded_words
from fedhh.clients.populations.population import ClientBlock
from fedhh.kernels.lookup import copy_entries, make_slots
from fedhh.kernels.sampling import choose_contributions
from fedhh.oracles.bloom_filters import NOTHING
from fedhh.questions.base import Messages, Question
from fedhh.questions.blooms import BloomQuestion, NgramQuestion
from fedhh.questions.plain_words import PlainWordsQuestion
from fedhh.questions.sketches import BlindPrefixQuestion, FragmentQuestion
from fedhh.random import Stream
from fedhh.words.alphabet import END, FOREIGN, Alphabet
from fedhh.words.lexicon import Lexicon
from fedhh.words.parts import StringParts
from fedhh.words.trie import Codes


class BlindAnswerer(ItemAnswerer):
    """Reports strings by their keys.

    Keys, unlike numbers in a table of the population's strings, are the same in any population: a
    greedy client's ties go by them.
    """

    def __init__(
        self, question: Question, words: WordMatcher, seed: int, *, noise_free: bool = False
    ) -> None:
        super().__init__(question, words, seed, noise_free=noise_free)
        self._keys, self._table = self._known(words.lexicon)

    def add_block(self, rows: ClientBlock, block: int, tally: Values) -> BlockCounts:
        coded_keys, coded_table = self._known(Lexicon(words=coded_words(rows.coded)))
        choices = self.choices(rows, block, self._keys, coded_keys.values)
        chosen, sizes = choose_contributions(*choices)
        keys = chosen.ravel() if self._question.pad else chosen[chosen >= 0]
        rng = self._rng(Stream.RANDOMIZER, block)
        messages = self._report(keys, (self._table, coded_table), rng, tally)
        return BlockCounts.of(sizes, len(keys), messages)

    def _known(self, lexicon: Lexicon) -> tuple[WordValues, Any]:
        codes, usable, keys = self._named(lexicon)
        keys = np.where(usable, keys, NOTHING)
        return WordValues.of(keys), self._table_of(codes, keys)

    @abstractmethod
    def _named(self, lexicon: Lexicon) -> tuple[Codes, Any, Values]:
        """Return each word's codes, whether it takes part, and its key if it does."""

    def _table_of(self, codes: Codes, keys: Values) -> Any:
        """Return what is computed once for each distinct string."""

    @abstractmethod
    def _report(
        self, keys: Values, tables: tuple[Any, Any], rng: np.random.Generator, tally: Values
    ) -> Messages | None:
        """Add reports about strings to the tally, or return them.

        Args:
            keys: ``(n,) int64``: of the strings, `NOTHING` for a dummy.
            tables: `_table_of` the lexicon's strings, and of the block's coded words.
            rng: Source of the coins.
            tally: ``(question.tally_size,) int64``, changed in place.
        """


class FragmentTable:
    """The fragments of distinct strings, found by the strings' keys."""

    def __init__(self, puzzle: StringParts, codes: Codes, keys: Values) -> None:
        """Cut strings into fragments.

        Args:
            puzzle: How.
            codes: ``(V, length)``: each word's string, which words may share.
            keys: ``(V,) int64``: the strings' keys, -1 for words without one.
        """
        words = np.flatnonzero(keys >= 0)
        distinct, first = np.unique(keys[words], return_index=True)
        self._slots = make_slots(distinct)
        self._fragments = puzzle.fragments(codes[words[first]], distinct)

    def fill(self, keys: Values, positions: Values, out: Values) -> None:
        """Write each string's fragment at its position to ``out``, for strings of this table.

        Args:
            keys: ``(n,) int64``.
            positions: ``(n,) int64``.
            out: ``(n,) int64``, changed in place.
        """
        if len(self._fragments):
            copy_entries(self._slots, self._fragments, keys, positions, out)


class FragmentAnswerer(BlindAnswerer):
    """Reports whole strings and parts of them: Apple (2017), Algorithm 9, for fragments."""

    _question: FragmentQuestion[Any]

    def _report(
        self, keys: Values, tables: tuple[Any, Any], rng: np.random.Generator, tally: Values
    ) -> None:
        question = self._question
        reported = _or_random(keys, question.puzzle.names.num_keys, rng)
        positions = rng.integers(question.puzzle.num_positions, size=len(keys))
        pieces = rng.integers(question.puzzle.num_fragments, size=len(keys))
        for table in tables:
            table.fill(keys, positions, pieces)
        word_sums, fragment_sums, records = question.split(tally)
        self._add(question.words, reported, rng, word_sums)
        for position, sums in enumerate(fragment_sums):
            self._add(question.fragments, pieces[positions == position], rng, sums)
        records += np.bincount(positions, minlength=question.puzzle.num_positions)

    def _named(self, lexicon: Lexicon) -> tuple[Codes, Any, Values]:
        codes, keys = padded_strings(self._question.alphabet, self._question.puzzle, lexicon)
        return codes, keys >= 0, keys

    def _table_of(self, codes: Codes, keys: Values) -> FragmentTable:
        return FragmentTable(self._question.puzzle, codes, keys)


class NgramAnswerer(FragmentAnswerer):
    """Reports whole strings and pairs of their n-grams: Fanti et al. (2016), section 4."""

    _question: NgramQuestion  # type: ignore[assignment]

    def _report(
        self, keys: Values, tables: tuple[Any, Any], rng: np.random.Generator, tally: Values
    ) -> None:
        question = self._question
        reported = _or_random(keys, question.puzzle.names.num_keys, rng)
        pairs = rng.integers(len(question.pairs), size=len(keys))
        texts = rng.integers(question.puzzle.num_texts, size=(2, len(keys)))
        positions = np.ascontiguousarray(question.pairs[pairs].T)
        for table in tables:
            for side in range(2):
                table.fill(keys, positions[side], texts[side])
        words, patterns = question.split(tally)
        question.words.add_reports(reported, rng=rng, out=words)
        cohorts = rng.integers(question.ngrams.filters.num_cohorts, size=len(keys))
        first, second = (
            self._patterns(cohorts, question.ngram_keys(positions[side], texts[side]), rng)
            for side in range(2)
        )
        np.add.at(patterns, (pairs, cohorts, first, second), 1)

    def _patterns(self, cohorts: Values, keys: Values, rng: np.random.Generator) -> Values:
        """Return ``(n,) int64``: the noisy filters of n-grams, bit i as 2**i."""
        reports = self._question.ngrams
        bits = reports.response.answer(reports.filters.filters(cohorts, keys), rng=rng)
        return np.asarray(bits @ (1 << np.arange(reports.filters.num_bits, dtype=np.int64)))


class BlindPrefixAnswerer(BlindAnswerer):
    """Reports prefixes of a given length, whatever they are."""

    _question: BlindPrefixQuestion

    def _report(
        self, keys: Values, tables: tuple[Any, Any], rng: np.random.Generator, tally: Values
    ) -> Messages | None:
        question = self._question
        reported = _or_random(keys, question.names.num_keys, rng)
        if question.prefixes.aggregate_form != "sketch":
            return np.asarray(question.prefixes.privatize(reported, rng=rng), dtype=np.int64)
        self._add(question.prefixes, reported, rng, tally)
        return None

    def _named(self, lexicon: Lexicon) -> tuple[Codes, Any, Values]:
        question = self._question
        # The widest codes first: narrower ones are a part of them.
        usable = lexicon.reachable(question.alphabet, question.longest_word)
        codes = lexicon.encoded(question.alphabet, question.prefix_length)
        return codes, usable, question.names.keys(codes)


class BloomAnswerer(BlindAnswerer):
    """Reports words as noisy Bloom filters: Erlingsson, Pihur, Korolova (2014)."""

    _question: BloomQuestion

    def _report(
        self, keys: Values, tables: tuple[Any, Any], rng: np.random.Generator, tally: Values
    ) -> None:
        reports = self._question.reports
        add = reports.add_noise_free_counts if self._noise_free else reports.add_reports
        add(keys, rng=rng, out=tally)

    def _named(self, lexicon: Lexicon) -> tuple[Codes, Any, Values]:
        return _whole_words(self._question, lexicon)


class PlainWordsAnswerer(BlindAnswerer):
    """Sends words as they are, for a curator whom these clients trust: Avent et al. (2017)."""

    _question: PlainWordsQuestion

    def _report(
        self, keys: Values, tables: tuple[Any, Any], rng: np.random.Generator, tally: Values
    ) -> Messages:
        question = self._question
        sent = keys >= 0
        sizes = (
            sent.reshape(-1, question.max_items).sum(axis=1) if question.by_size else np.zeros(0)
        )
        if question.inclusion < 1:
            sent &= rng.random(len(keys)) < question.inclusion
        words, which = np.unique(keys[sent], return_inverse=True)
        groups = which.ravel()
        if question.by_size:
            groups = groups * (question.max_items + 1) + np.repeat(sizes, question.max_items)[sent]
        kinds, counts = np.unique(groups, return_counts=True)
        histogram = np.zeros((len(kinds), question.message_size), dtype=np.int64)
        histogram[:, -1] = counts
        if question.by_size:
            kinds, histogram[:, -2] = np.divmod(kinds, question.max_items + 1)
        for names in tables:
            names.fill(words[kinds], histogram[:, : question.longest_word])
        return histogram

    def merged(self, messages: Sequence[Messages | None]) -> Messages | None:
        together = super().merged(messages)
        return together if together is None else self._question.merged(together)

    def _named(self, lexicon: Lexicon) -> tuple[Codes, Any, Values]:
        codes, usable, keys = _whole_words(self._question, lexicon)
        if self._question.excluded is not None:
            usable = usable & ~np.isin(keys, self._question.names.keys(self._question.excluded))
        return codes, usable, keys

    def _table_of(self, codes: Codes, keys: Values) -> _Names:
        return _Names(codes, keys)


class _Names:
    """Words, found by their keys."""

    def __init__(self, codes: Codes, keys: Values) -> None:
        usable = np.flatnonzero(keys >= 0)
        self._keys, first = np.unique(keys[usable], return_index=True)
        self._codes = codes[usable[first]]

    def fill(self, keys: Values, out: Values) -> None:
        """Write the codes of those keys that are known to the rows of ``out``."""
        if len(self._keys):
            places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
            known = self._keys[places] == keys
            out[known] = self._codes[places[known]]


def padded_strings(
    alphabet: Alphabet, parts: StringParts, lexicon: Lexicon
) -> tuple[Codes, Values]:
    """Return the padded or truncated codes of words, and their keys, -1 for unusable ones."""
    codes = lexicon.encoded(alphabet, parts.length)
    usable = ~(codes == FOREIGN).any(axis=1) & (codes[:, 0] != END)
    return codes, np.where(usable, parts.names.keys(codes), -1)


def _whole_words(
    question: BloomQuestion | PlainWordsQuestion, lexicon: Lexicon
) -> tuple[Codes, Any, Values]:
    usable = lexicon.reachable(question.alphabet, question.longest_word)
    codes = lexicon.encoded(question.alphabet, question.longest_word)
    return codes, usable, question.names.keys(codes)


def _or_random(keys: Values, num_keys: int, rng: np.random.Generator) -> Values:
    """Return the keys, with a uniformly random one for each dummy."""
    random = rng.integers(num_keys, size=len(keys))
    return np.where(keys >= 0, keys, random)
