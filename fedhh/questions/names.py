"""Names of words in a question: which value each distinct word has, once for all who hold it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fedhh.arrays import Ints
from fedhh.questions.clients import Held, Known, Values
from fedhh.questions.matching import WordMatcher
from fedhh.questions.question import SEED_BITS
from fedhh.words.alphabet import END, FOREIGN, Alphabet
from fedhh.words.trie import Codes, PrefixTrie, match_rows

if TYPE_CHECKING:
    # Compiled code loads with clients, and with no server that only asks.
    from fedhh.hashing import StringKeys

_AT_ONCE = 2**18
"""Words whose keys are made at a time, since what that takes is more than the keys."""


class Names(ABC):
    """Which value a word has; `known` is all that a new kind of names must say."""

    @property
    def num_candidates(self) -> int:
        """Candidates that it lists; 0 where clients name words by themselves."""
        return 0

    @property
    def num_prefixes(self) -> int:
        """Prefixes broadcast."""
        return 0

    @property
    def extended(self) -> PrefixTrie | None:
        """The trie of which candidates extend the last level; None where no prefix is listed."""
        return None

    def download_bits(self, alphabet: Alphabet) -> float:
        """Return the bits that a client downloads to know its values."""
        return 0.0

    @abstractmethod
    def known(self, words: WordMatcher, alphabet: Alphabet) -> Known:
        """Return the values of a population's words."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TrieNames(Names):
    """One more symbol after kept prefixes.

    Candidate values, in order: ``prefix * A + symbol`` for every prefix of the trie's last level
    and every symbol; then the ``finished`` words; behind them `nothing`. Layer i has candidates of
    ``i + 1`` symbols, end included.

    Attributes:
        trie: The kept prefixes, of length ``layer``.
        finished: ``(f, width)`` codes of words shorter than the candidates, to be voted on besides
            them; empty but in a pass's first layer.
        excluded: ``(x, width)`` codes of words that clients leave out, found by earlier passes.
    """

    trie: PrefixTrie
    finished: Codes
    excluded: Codes

    @classmethod
    def of_words(cls, words: Codes, alphabet: Alphabet) -> TrieNames:
        """Return the names of ``(f, width)`` whole words alone, each a candidate."""
        nothing = np.zeros((0, words.shape[1]), dtype=np.uint16)
        return cls(trie=PrefixTrie.empty(alphabet.size), finished=words, excluded=nothing)

    @property
    def num_extensions(self) -> int:
        """Candidates that extend a prefix."""
        return self.trie.width * self.trie.alphabet_size

    @property
    def num_candidates(self) -> int:
        return self.num_extensions + len(self.finished)

    @property
    def nothing(self) -> int:
        """The dummy: value of a contribution with nothing to say."""
        return self.num_candidates

    @property
    def num_prefixes(self) -> int:
        return self.trie.width if self.num_extensions else 0

    @property
    def extended(self) -> PrefixTrie:
        return self.trie

    def download_bits(self, alphabet: Alphabet) -> float:
        per_symbol = float(np.log2(alphabet.size))
        widths = [1, *(len(level) for level in self.trie.levels)][:-1]
        levels = sum(
            len(level) * (np.log2(max(above, 2)) + per_symbol)
            for above, level in zip(widths, self.trie.levels, strict=True)
        )
        words = (len(self.finished) + len(self.excluded)) * self.excluded.shape[1] * per_symbol
        return float(levels + words)

    def known(self, words: WordMatcher, alphabet: Alphabet) -> Known:
        return Known(words=words, values=words.prefix_values(self, alphabet))


@dataclass(frozen=True, kw_only=True, eq=False)
class UploadNames(TrieNames):
    """Words that clients upload once for all layers of a trie, by the numbers of the words.

    A word that the alphabet cannot spell, or longer than the trie is deep, has none. What a layer
    lists is about the uploads, and no client downloads it.
    """

    def download_bits(self, alphabet: Alphabet) -> float:
        return 0.0

    def known(self, words: WordMatcher, alphabet: Alphabet) -> Known:
        usable = words.lexicon.reachable(alphabet, self.excluded.shape[1] - 1)
        return Known(words=words, values=np.where(usable, np.arange(len(usable)), -1))

    def candidates(self, words: WordMatcher, alphabet: Alphabet) -> Values:
        """Return ``(V,) int64``: the candidate that each word begins with, -1 for none."""
        return words.prefix_values(self, alphabet)


@dataclass(frozen=True, kw_only=True, eq=False)
class StringNames(Names):
    """Keys of strings, whatever they are: of whole words, prefixes, or padded words.

    Keys, unlike numbers in a table of the population's strings, are the same in any population: a
    greedy client's ties go by them.

    Attributes:
        keys: From codes to keys.
        length: Symbols of a string; shorter words are filled up with the end symbol, longer ones
            cut.
        longest_word: Symbols of the longest word that takes part; any length if None.
        excluded: ``(x, length) uint16``: codes of strings that clients leave out.
    """

    keys: StringKeys
    length: int
    longest_word: int | None
    excluded: Codes | None = None

    @classmethod
    def draw(
        cls,
        alphabet: Alphabet,
        *,
        length: int,
        seed: int,
        longest_word: int | None = None,
        excluded: Codes | None = None,
    ) -> StringNames:
        """Return names whose keys are drawn by a seed, where strings are too long for numbers.

        Words longer than the strings take no part unless ``longest_word`` is given.
        """
        from fedhh.hashing import StringKeys

        keys = StringKeys.draw(alphabet_size=alphabet.size, length=length, seed=seed)
        longest = length if longest_word is None else longest_word
        return cls(keys=keys, length=length, longest_word=longest, excluded=excluded)

    @property
    def num_keys(self) -> int:
        """Keys lie below."""
        return self.keys.num_keys

    def download_bits(self, alphabet: Alphabet) -> float:
        left_out = 0 if self.excluded is None else len(self.excluded)
        return SEED_BITS + left_out * self.length * math.log2(alphabet.size)

    def keys_of(self, codes: Codes) -> Values:
        """Return ``(n,) int64``: the keys of ``(n, length or more) uint16`` strings."""
        return self.keys.keys(codes[:, : self.length])

    def known(self, words: WordMatcher, alphabet: Alphabet) -> Known:
        lexicon = words.lexicon
        if self.longest_word is None:
            codes = lexicon.encoded(alphabet, self.length)
            usable = ~(codes == FOREIGN).any(axis=1) & (codes[:, 0] != END)
        else:
            # The widest codes first: narrower ones are a part of them.
            usable = lexicon.reachable(alphabet, self.longest_word)
            codes = lexicon.encoded(alphabet, self.length)
        values = np.full(len(codes), -1, dtype=np.int64)
        left_out = None if self.excluded is None else self.keys.keys(self.excluded)
        for first in range(0, len(codes), _AT_ONCE):
            piece = slice(first, first + _AT_ONCE)
            keys, is_usable = self.keys.keys(codes[piece]), usable[piece]
            if left_out is not None:
                is_usable = is_usable & ~np.isin(keys, left_out)
            values[piece] = np.where(is_usable, keys, -1)
        return Known(words=words, values=values, codes=codes)


@dataclass(frozen=True, kw_only=True, eq=False)
class ItemSets(Names):
    """Candidates that a client holds if it has all of their words; a word's value is its place.

    Attributes:
        words: ``(w, width) uint16``: distinct words, closed by the end symbol.
        itemsets: ``(c, r) int64``: the words of each candidate, distinct; rows with fewer than r
            are filled up with -1 behind. One column: candidates are words.
    """

    words: Codes
    itemsets: Ints

    @classmethod
    def singletons(cls, words: Codes) -> ItemSets:
        """Return the itemsets of one word each."""
        return cls(words=words, itemsets=np.arange(len(words), dtype=np.int64)[:, None])

    @property
    def num_candidates(self) -> int:
        return len(self.itemsets)

    def download_bits(self, alphabet: Alphabet) -> float:
        symbols = self.words.size * math.log2(alphabet.size)
        if self.itemsets.shape[1] == 1:
            return symbols
        return symbols + self.itemsets.size * math.log2(len(self.words) + 1)

    def known(self, words: WordMatcher, alphabet: Alphabet) -> Known:
        codes = words.lexicon.encoded(alphabet, self.words.shape[1])
        return Known(words=words, values=match_rows(codes, self.words))

    @cached_property
    def _candidate_of(self) -> Values:
        candidates = np.full(len(self.words), -1, dtype=np.int64)
        candidates[self.itemsets[:, 0]] = np.arange(len(self.itemsets))
        return candidates

    def held_by(self, held: Held) -> tuple[Values, Values]:
        """Return pairs (client, candidate) as ``(h,) int64`` each, by client."""
        rows = held.rows
        places = held.known.values[rows.word_ids]
        owners = np.repeat(np.arange(len(rows.clients)), np.diff(rows.offsets))
        has_place = places >= 0
        if self.itemsets.shape[1] == 1:
            candidates = np.where(has_place, self._candidate_of[places], -1)
            return owners[candidates >= 0], candidates[candidates >= 0]
        has = np.zeros((len(rows.clients), len(self.words) + 1), dtype=np.bool_)
        has[owners[has_place], places[has_place]] = True
        # The last column stands for no word, which everybody has.
        has[:, -1] = True
        whole = np.logical_and.reduce(has[:, self.itemsets], axis=2)
        pairs = np.nonzero(whole)
        return pairs[0], pairs[1]

    def held_with(self, places: Values) -> Values:
        """Return the candidates all of whose words are among some words."""
        there = np.zeros(len(self.words) + 1, dtype=np.bool_)
        there[places] = True
        # The last entry stands for no word, which fills up itemsets.
        there[-1] = True
        return np.flatnonzero(there[self.itemsets].all(axis=1))
