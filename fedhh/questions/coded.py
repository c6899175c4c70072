"""Coded words in questions: their strings, and their candidates in a trie without any string."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fedhh.kernels.coded import PAIRS, coded_values
from fedhh.questions.matching import Values, WordMatcher
from fedhh.words.alphabet import Alphabet
from fedhh.words.coded_words import (
    CONSONANTS,
    FEWEST_SYLLABLES,
    MARK,
    VOWELS,
    coded_numbers,
    coded_words,
)
from fedhh.words.lexicon import Lexicon
from fedhh.words.trie import Codes, PrefixTrie

if TYPE_CHECKING:
    from fedhh.questions.names import TrieNames

_PAIR = 4
"""Symbols of two syllables."""


def coded_matcher(numbers: Values) -> WordMatcher:
    """Return the matcher of the coded words with ``(m,) int64`` numbers."""
    return WordMatcher(Lexicon(words=coded_words(numbers)))


class CodedMatcher:
    """Finds the candidates of coded words, which no lexicon holds, in a question's trie."""

    def __init__(self, names: TrieNames, alphabet: Alphabet) -> None:
        self._alphabet, self._trie, self._ended = alphabet, names.trie, names.finished
        levels = names.trie.levels
        self._candidates = np.concatenate(levels) if levels else np.zeros(0, dtype=np.int64)
        self._starts = np.r_[0, np.cumsum([len(level) for level in levels])].astype(np.int64)
        self._consonants = _codes(alphabet, CONSONANTS)
        self._vowels = _codes(alphabet, VOWELS)
        self._mark = int(_codes(alphabet, MARK)[0])
        self._consonants_after = np.zeros(0, dtype=np.uint32)
        self._pair_nodes = self._walk_pairs()
        self._consonants_after = self._walk_on()
        excluded = _numbers(alphabet, names.excluded)
        self._excluded = excluded[excluded >= 0]

    def values(self, numbers: Values) -> Values:
        """Return ``(m,) int64``: the value of each coded word, or -1 where it has none.

        Args:
            numbers: ``(m,) int64``, as in `ClientBlock.coded`.
        """
        if not len(numbers):
            return np.zeros(0, dtype=np.int64)
        values = self._walk(numbers, self._pair_nodes)
        finished, words = self._finished
        if len(finished):
            places = np.minimum(np.searchsorted(finished, numbers), len(finished) - 1)
            ended = finished[places] == numbers
            values[ended] = self._trie.width * self._trie.alphabet_size + words[places[ended]]
        if len(self._excluded):
            values[np.isin(numbers, self._excluded)] = -1
        return values

    def _walk(self, numbers: Values, pair_nodes: Values) -> Values:
        values: Values = coded_values(
            numbers,
            self._consonants,
            self._vowels,
            self._mark,
            FEWEST_SYLLABLES,
            self._starts,
            self._candidates,
            self._trie.alphabet_size,
            pair_nodes,
            self._consonants_after,
        )
        return values

    @cached_property
    def _finished(self) -> tuple[Values, Values]:
        """The numbers of finished words that are coded, ascending, and which words these are."""
        numbers = _numbers(self._alphabet, self._ended)
        (coded,) = np.nonzero(numbers >= 0)
        words = coded[np.argsort(numbers[coded])]
        return numbers[words], words

    def _walk_pairs(self) -> Values:
        """Return the node of any two first syllables, lowest digit first, or their value."""
        if self._trie.length < _PAIR:
            # The shortest words begin with every pair, and all words with one.
            return self._walk(np.arange(PAIRS), np.zeros(0, dtype=np.int64))
        syllables = np.stack(
            [np.repeat(self._consonants, len(VOWELS)), np.tile(self._vowels, len(CONSONANTS))],
            axis=1,
        )
        size = len(syllables)
        codes = np.concatenate(
            [np.tile(syllables, (size, 1)), np.repeat(syllables, size, axis=0)], axis=1
        )
        trie = PrefixTrie(
            alphabet_size=self._trie.alphabet_size,
            levels=self._trie.levels[:_PAIR],
        )
        return trie.walk(codes.astype(np.uint16))

    def _walk_on(self) -> npt.NDArray[np.uint32]:
        """Return the consonants that lead from each two syllables to the last level, as bits.

        Nodes stay in a trie when all that grew from them is gone, and most coded words end there.
        """
        levels, size = self._trie.levels, self._trie.alphabet_size
        bits = np.zeros(PAIRS, dtype=np.uint32)
        if len(levels) <= _PAIR:
            return bits
        alive = np.ones(len(levels[-1]), dtype=np.bool_)
        for place in range(len(levels) - 1, _PAIR, -1):
            nodes = levels[place][alive]
            fits = self._vowels if place % 2 else np.r_[self._consonants, self._mark]
            alive = np.zeros(len(levels[place - 1]), dtype=np.bool_)
            alive[nodes[np.isin(nodes % size, fits)] // size] = True
        nodes = levels[_PAIR][alive]
        pair_of = np.full(len(levels[_PAIR - 1]), -1, dtype=np.int64)
        there = np.flatnonzero(self._pair_nodes >= 0)
        pair_of[self._pair_nodes[there]] = there
        pairs = pair_of[nodes // size]
        for number, consonant in enumerate(self._consonants.tolist()):
            goes_on = pairs[(pairs >= 0) & (nodes % size == consonant)]
            bits[goes_on] |= np.uint32(1 << number)
        return bits


def _codes(alphabet: Alphabet, symbols: str) -> Values:
    return alphabet.encode(list(symbols), width=1)[:, 0].astype(np.int64)


def _numbers(alphabet: Alphabet, codes: Codes) -> Values:
    """Return the number of each row that spells a coded word, -1 for the others."""
    return coded_numbers(alphabet.decode(codes))
