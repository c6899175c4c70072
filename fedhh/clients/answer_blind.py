"""Answers to queries that broadcast no candidates: clients report strings, or parts of them.

What a client would say about a word is the same for everybody who holds it, so it is computed once
per distinct string; a block then only draws which, where and the coins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from fedhh.alphabet import END, FOREIGN
from fedhh.clients.answerer import Answerer, BlockCounts, Values, contributions
from fedhh.clients.matching import WordMatcher
from fedhh.clients.population import ClientBlock
from fedhh.clients.strings import coded_words
from fedhh.lexicon import Lexicon
from fedhh.oracles import SketchOracle
from fedhh.oracles.sketch import privatize_and_aggregate
from fedhh.queries import Query
from fedhh.random import Stream, generator
from fedhh.sketch_queries import BlindPrefixQuery, FragmentQuery
from fedhh.trie import Codes

Mask = npt.NDArray[np.bool_]


class StringTable:
    """The distinct strings that a lexicon's words report, numbered in the order of their keys.

    Attributes:
        keys: ``(u,) int64``, ascending.
        word_values: ``(V,) int64``: the number of each word's string, -1 for words without one.
        rows: ``(u,) int64``: a word that has each string.
    """

    def __init__(self, keys: Values, usable: Mask) -> None:
        """Number strings.

        Args:
            keys: ``(V,) int64``: each word's string, which words may share.
            usable: ``(V,) bool``: words that have one.
        """
        words = np.flatnonzero(usable)
        self.keys, first, numbers = np.unique(keys[words], return_index=True, return_inverse=True)
        self.rows = words[first]
        self.word_values = np.full(len(keys), -1, dtype=np.int64)
        self.word_values[words] = numbers

    def number_more(self, keys: Values, usable: Mask) -> tuple[Values, StringTable]:
        """Number the strings of words beside the lexicon, after its own.

        Args:
            keys: ``(m,) int64``: each word's string.
            usable: ``(m,) bool``: words that have one.

        Returns:
            ``(m,) int64`` numbers, -1 for none; and the table of those words, whose string i has
            number ``len(self.keys) + i`` unless the lexicon has it.
        """
        more = StringTable(keys, usable)
        values = more.word_values + len(self.keys)
        places = np.minimum(np.searchsorted(self.keys, keys), max(len(self.keys) - 1, 0))
        listed = self.keys[places] == keys if len(self.keys) else np.zeros(len(keys), dtype=bool)
        values[listed] = places[listed]
        values[~usable] = -1
        return values, more


class FragmentAnswerer(Answerer):
    """Reports whole strings and fragments of them: Apple (2017), Algorithm 9."""

    def __init__(self, query: FragmentQuery, words: WordMatcher, seed: int) -> None:
        """Cut every distinct word into fragments, once."""
        self._query = query
        self._seed = seed
        codes, keys, usable = self._strings(words.lexicon.words)
        self._table = StringTable(keys, usable)
        rows = self._table.rows
        self._fragments = query.puzzle.fragments(codes[rows], keys[rows])

    def add_block(self, rows: ClientBlock, block: int, tally: Values) -> BlockCounts:
        """Sample each client's strings, and add one record for each of them."""
        query = self._query
        codes, coded_keys, usable = self._strings(coded_words(rows.coded))
        coded_values, more = self._table.number_more(coded_keys, usable)
        keys = np.concatenate([self._table.keys, more.keys])
        fragments = np.concatenate(
            [self._fragments, query.puzzle.fragments(codes[more.rows], more.keys)]
        )
        chosen, counts = _chosen_strings(
            query, rows, block, self._table.word_values, coded_values, seed=self._seed
        )
        rng = generator(self._seed, Stream.RANDOMIZER, query.pass_index, query.layer, block)
        held = chosen >= 0
        reported = rng.integers(query.puzzle.names.num_keys, size=len(chosen))
        reported[held] = keys[chosen[held]]
        positions = rng.integers(query.puzzle.num_positions, size=len(chosen))
        pieces = rng.integers(query.puzzle.num_fragments, size=len(chosen))
        pieces[held] = fragments[chosen[held], positions[held]]

        word_sums, fragment_sums, records = query.split(tally)
        query.words.privatize_and_sketch(reported, rng=rng, out=word_sums)
        for position, sums in enumerate(fragment_sums):
            here = pieces[positions == position]
            privatize_and_aggregate(query.fragments, here, rng=rng, out=sums)
        records += np.bincount(positions, minlength=query.puzzle.num_positions)
        return counts

    def _strings(self, words: Sequence[str]) -> tuple[Codes, Values, Mask]:
        """Return the padded or truncated codes of words, their keys, and which are usable."""
        codes = self._query.alphabet.encode(words, width=self._query.puzzle.length)
        usable = ~(codes == FOREIGN).any(axis=1) & (codes[:, 0] != END)
        return codes, self._query.puzzle.names.keys(codes), usable


class BlindPrefixAnswerer(Answerer):
    """Reports prefixes of a given length, whatever they are."""

    def __init__(self, query: BlindPrefixQuery, words: WordMatcher, seed: int) -> None:
        """Name every distinct prefix, once."""
        self._query = query
        self._seed = seed
        self._table = StringTable(*self._prefixes(words.lexicon))

    def add_block(self, rows: ClientBlock, block: int, tally: Values) -> BlockCounts:
        """Sample each client's prefixes, and report each of them."""
        query = self._query
        beyond = self._prefixes(Lexicon(words=coded_words(rows.coded)))
        coded_values, more = self._table.number_more(*beyond)
        keys = np.concatenate([self._table.keys, more.keys])
        chosen, counts = _chosen_strings(
            query, rows, block, self._table.word_values, coded_values, seed=self._seed
        )
        rng = generator(self._seed, Stream.RANDOMIZER, query.pass_index, query.layer, block)
        held = chosen >= 0
        reported = rng.integers(query.names.num_keys, size=len(chosen))
        reported[held] = keys[chosen[held]]
        if isinstance(query.prefixes, SketchOracle):
            query.prefixes.privatize_and_sketch(reported, rng=rng, out=tally)
            return counts
        messages = np.asarray(query.prefixes.privatize(reported, rng=rng), dtype=np.int64)
        return replace(counts, messages=messages)

    def _prefixes(self, lexicon: Lexicon) -> tuple[Values, Mask]:
        """Return the key of each word's prefix, and which words are short enough to take part."""
        query = self._query
        codes = query.alphabet.encode(lexicon.words, width=query.prefix_length)
        return query.names.keys(codes), lexicon.reachable(query.alphabet, query.longest_word)


def truncated_words(lexicon: Lexicon, length: int) -> Mask:
    """Return ``(V,) bool``: words longer than ``length``, of which SFP clients report a part."""
    return np.array([len(word) > length for word in lexicon.words], dtype=np.bool_)


def _chosen_strings(
    query: Query,
    rows: ClientBlock,
    block: int,
    word_values: Values,
    coded_values: Values,
    *,
    seed: int,
) -> tuple[Values, BlockCounts]:
    """Return the strings that a block's clients report, -1 for a dummy, and their counts."""
    chosen, sizes = contributions(
        query, rows, block, word_values, seed=seed, coded_values=coded_values
    )
    flat = chosen.ravel() if query.pad else chosen[chosen >= 0]
    counts = BlockCounts(
        num_reports=len(flat),
        num_dummies=int(len(flat) - sizes.sum()),
        num_clients_with_items=int(np.count_nonzero(sizes)),
    )
    return flat, counts
