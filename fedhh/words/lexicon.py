"""The distinct words of a population, and where each of them stands in a trie.

A layer touches each distinct word once: its live node is carried from level to level, so that a
client's items are one array look-up away from their candidate values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedhh.arrays import Bools
from fedhh.words.alphabet import END, FOREIGN, Alphabet, nfc
from fedhh.words.trie import Codes, Indices, Nodes, PrefixTrie

_ENCODED_AT_ONCE = 2**18


@dataclass(frozen=True, kw_only=True, eq=False)
class Lexicon:
    """Distinct words; a word's id is its position.

    The last ``num_stubs`` are stubs: beginnings of rare words, which stand for all that begin so,
    count as contributions and cannot be found.

    >>> lexicon = Lexicon(words=["lol", "im"])
    >>> lexicon.ids(["im", "gone"]).tolist()
    [1, -1]
    """

    words: Sequence[str]
    num_stubs: int = 0
    _index: dict[str, int] = field(default_factory=dict, init=False, repr=False)
    _codes: dict[str, Codes] = field(default_factory=dict, init=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        # Workers make what they need of it.
        return {**self.__dict__, "_index": {}, "_codes": {}}

    def __len__(self) -> int:
        return len(self.words)

    def ids(self, words: Iterable[str]) -> Indices:
        """Return each word's id, ``int64``; -1 for words that the lexicon lacks, in NFC."""
        if not self._index:
            own = self.words if "".join(self.words).isascii() else map(nfc, self.words)
            self._index.update(zip(own, range(len(self)), strict=True))
        return np.array([self._index.get(nfc(word), -1) for word in words], dtype=np.int64)

    def only(self, keep: Bools) -> Lexicon:
        """Return some of the words, ``keep`` being ``(V,) bool``, without stubs."""
        return Lexicon(words=[self.words[i] for i in np.flatnonzero(keep).tolist()])

    def encoded(self, alphabet: Alphabet, width: int) -> Codes:
        """Return ``(V, width) uint16``: `Alphabet.encode` of the words, not writable.

        The last alphabet's codes stay: all who measure or answer ask for the same ones.
        """
        codes = self._codes.get(alphabet.symbols)
        if codes is None or codes.shape[1] < width:
            self._codes.clear()
            codes = np.empty((len(self), width), dtype=np.uint16)
            # In pieces, since what encoding takes in between is larger than the codes.
            for first in range(0, len(self), _ENCODED_AT_ONCE):
                piece = self.words[first : first + _ENCODED_AT_ONCE]
                codes[first : first + _ENCODED_AT_ONCE] = alphabet.encode(piece, width=width)
            codes.flags.writeable = False
            self._codes[alphabet.symbols] = codes
        return codes[:, :width]

    def reachable(self, alphabet: Alphabet, depth: int) -> Bools:
        """Return ``(V,) bool``: which words have 1 to ``depth`` symbols, all of the alphabet's."""
        codes = self.encoded(alphabet, depth + 1)
        reached = (codes[:, -1] == END) & (codes[:, 0] != END)
        for column in codes.T:
            reached &= column != FOREIGN
        return np.asarray(reached)


class LexiconWalk:
    """Each word's live node in a growing trie, advanced level by level.

    The walk is a cache: the result is always ``trie.walk(codes)``. When the trie grew out of the
    last one seen, only the new level is walked.
    """

    def __init__(self, lexicon: Lexicon, alphabet: Alphabet, width: int) -> None:
        """Encode the first ``width`` symbols of every word."""
        self.codes: Codes = lexicon.encoded(alphabet, width)
        self._trie: PrefixTrie | None = None
        self._nodes: Nodes = np.zeros(0, dtype=np.int32)

    def nodes(self, trie: PrefixTrie) -> Nodes:
        """Return ``(V,) int32``: every word's node in the trie's last level, or ABSENT."""
        if self._trie is None or not _grew_from(trie, self._trie):
            self._nodes = trie.walk(self.codes)
        else:
            for level in range(self._trie.length, trie.length):
                self._nodes = trie.step(self._nodes, self.codes[:, level], level)
        self._trie = trie
        return self._nodes


def _grew_from(trie: PrefixTrie, earlier: PrefixTrie) -> bool:
    if trie.alphabet_size != earlier.alphabet_size or trie.length < earlier.length:
        return False
    pairs = zip(earlier.levels, trie.levels, strict=False)
    return all(a is b or np.array_equal(a, b) for a, b in pairs)
