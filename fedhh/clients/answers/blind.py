"""Answers to queries that broadcast no candidates: clients report strings, or parts of them.

What a client would say about a word is the same for everybody who holds it, so it is computed once
per distinct word; a block then only draws which, where and the coins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fedhh.clients.answers.base import Answerer, BlockCounts, Values, WordValues, contributions
from fedhh.clients.answers.matching import WordMatcher
from fedhh.clients.answers.sampling import add_noise_free_counts
from fedhh.clients.populations.population import ClientBlock
from fedhh.clients.populations.strings import coded_words
from fedhh.kernels.lookup import copy_entries, make_slots
from fedhh.oracles import FrequencyOracle
from fedhh.oracles.bloom_filters import NOTHING
from fedhh.queries.base import Query
from fedhh.queries.blooms import BloomQuery
from fedhh.queries.sketches import BlindPrefixQuery, FragmentQuery
from fedhh.random import Stream, generator
from fedhh.words.alphabet import END, FOREIGN, Alphabet
from fedhh.words.lexicon import Lexicon
from fedhh.words.parts import StringParts
from fedhh.words.trie import Codes


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


class FragmentAnswerer(Answerer):
    """Reports whole strings and parts of them: Apple (2017), Algorithm 9, for fragments."""

    def __init__(
        self, query: FragmentQuery[Any], words: WordMatcher, seed: int, *, noise_free: bool = False
    ) -> None:
        self._query = query
        self._seed = seed
        self._add = add_noise_free_counts if noise_free else _add_reports
        codes, keys = self._strings(words.lexicon.words)
        self._keys = WordValues.of(keys)
        self._table = FragmentTable(query.puzzle, codes, keys)

    def add_block(self, rows: ClientBlock, block: int, tally: Values) -> BlockCounts:
        query = self._query
        codes, coded_keys = self._strings(coded_words(rows.coded))
        chosen, counts = chosen_strings(query, rows, block, self._keys, coded_keys, seed=self._seed)
        rng = generator(self._seed, Stream.RANDOMIZER, query.pass_index, query.layer, block)
        held = chosen >= 0
        reported = rng.integers(query.puzzle.names.num_keys, size=len(chosen))
        reported[held] = chosen[held]
        positions = rng.integers(query.puzzle.num_positions, size=len(chosen))
        pieces = rng.integers(query.puzzle.num_fragments, size=len(chosen))
        for table in (self._table, FragmentTable(query.puzzle, codes, coded_keys)):
            table.fill(chosen, positions, pieces)

        word_sums, fragment_sums, records = query.split(tally)
        self._add(query.words, reported, rng=rng, out=word_sums)
        for position, sums in enumerate(fragment_sums):
            here = pieces[positions == position]
            self._add(query.fragments, here, rng=rng, out=sums)
        records += np.bincount(positions, minlength=query.puzzle.num_positions)
        return counts

    def _strings(self, words: Sequence[str]) -> tuple[Codes, Values]:
        return padded_strings(self._query.alphabet, self._query.puzzle, words)


def padded_strings(
    alphabet: Alphabet, parts: StringParts, words: Sequence[str]
) -> tuple[Codes, Values]:
    """Return the padded or truncated codes of words, and their keys, -1 for unusable ones."""
    codes = alphabet.encode(words, width=parts.length)
    usable = ~(codes == FOREIGN).any(axis=1) & (codes[:, 0] != END)
    return codes, np.where(usable, parts.names.keys(codes), -1)


class BlindPrefixAnswerer(Answerer):
    """Reports prefixes of a given length, whatever they are."""

    def __init__(
        self, query: BlindPrefixQuery, words: WordMatcher, seed: int, *, noise_free: bool = False
    ) -> None:
        self._query = query
        self._seed = seed
        self._add = add_noise_free_counts if noise_free else _add_reports
        self._keys = WordValues.of(self._prefixes(words.lexicon))

    def add_block(self, rows: ClientBlock, block: int, tally: Values) -> BlockCounts:
        query = self._query
        coded_keys = self._prefixes(Lexicon(words=coded_words(rows.coded)))
        chosen, counts = chosen_strings(query, rows, block, self._keys, coded_keys, seed=self._seed)
        rng = generator(self._seed, Stream.RANDOMIZER, query.pass_index, query.layer, block)
        held = chosen >= 0
        reported = rng.integers(query.names.num_keys, size=len(chosen))
        reported[held] = chosen[held]
        if query.prefixes.aggregate_form == "sketch":
            self._add(query.prefixes, reported, rng=rng, out=tally)
            return counts
        messages = np.asarray(query.prefixes.privatize(reported, rng=rng), dtype=np.int64)
        return replace(counts, messages=messages)

    def _prefixes(self, lexicon: Lexicon) -> Values:
        query = self._query
        codes = query.alphabet.encode(lexicon.words, width=query.prefix_length)
        usable = lexicon.reachable(query.alphabet, query.longest_word)
        return np.where(usable, query.names.keys(codes), -1)


class BloomAnswerer(Answerer):
    """Reports words as noisy Bloom filters: Erlingsson, Pihur, Korolova (2014)."""

    def __init__(
        self, query: BloomQuery, words: WordMatcher, seed: int, *, noise_free: bool = False
    ) -> None:
        self._query = query
        self._seed = seed
        reports = query.reports
        self._add = reports.add_noise_free_counts if noise_free else reports.add_reports
        self._keys = WordValues.of(self._names(words.lexicon))

    def add_block(self, rows: ClientBlock, block: int, tally: Values) -> BlockCounts:
        query = self._query
        coded_keys = self._names(Lexicon(words=coded_words(rows.coded)))
        chosen, counts = chosen_strings(query, rows, block, self._keys, coded_keys, seed=self._seed)
        rng = generator(self._seed, Stream.RANDOMIZER, query.pass_index, query.layer, block)
        self._add(chosen, rng=rng, out=tally)
        return counts

    def _names(self, lexicon: Lexicon) -> Values:
        query = self._query
        usable = lexicon.reachable(query.alphabet, query.longest_word)
        codes = lexicon.encoded(query.alphabet, query.longest_word)
        return np.where(usable, query.names.keys(codes), NOTHING)


def _add_reports(
    oracle: FrequencyOracle, values: Values, *, rng: np.random.Generator, out: Values
) -> None:
    oracle.aggregate(values=values, rng=rng, out=out)


def chosen_strings(
    query: Query,
    rows: ClientBlock,
    block: int,
    word_keys: WordValues,
    coded_keys: Values,
    *,
    seed: int,
) -> tuple[Values, BlockCounts]:
    """Return the keys of strings that a block's clients report, -1 for a dummy, and the counts.

    Keys, unlike numbers in a table of the population's strings, are the same in any population: a
    greedy client's ties go by them.
    """
    chosen, sizes = contributions(query, rows, block, word_keys, seed=seed, coded_values=coded_keys)
    flat = chosen.ravel() if query.pad else chosen[chosen >= 0]
    counts = BlockCounts(
        num_reports=len(flat),
        num_dummies=int(len(flat) - sizes.sum()),
        num_clients_with_items=int(np.count_nonzero(sizes)),
    )
    return flat, counts
