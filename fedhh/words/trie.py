"""The prefix trie that a server broadcasts and clients walk.

Level l holds the kept prefixes of length l, each as one integer: ``parent * A + symbol``, where
parent is the index of its (l-1)-prefix in level l - 1 and A the alphabet's size. Sorted integers
are sorted prefixes. A level never holds finished words, since nothing extends them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.arrays import Ints
from fedhh.words.alphabet import END

Indices = npt.NDArray[np.int64]
Nodes = npt.NDArray[np.signedinteger]
Codes = npt.NDArray[np.uint16]

ABSENT = -1
"""Node of a word that has left the trie."""
_AT_ONCE = 2**18


@dataclass(frozen=True, kw_only=True, eq=False)
class PrefixTrie:
    """Kept prefixes of every length from 1 to ``length``; immutable.

    Attributes:
        alphabet_size: A, the end symbol included.
        levels: One sorted ``(P_l,) int64`` array per length, values in [0, P_(l-1) * A).
    """

    alphabet_size: int
    levels: tuple[Indices, ...] = ()

    @classmethod
    def all_of_length_one(cls, alphabet_size: int) -> PrefixTrie:
        """Return the trie of all single symbols: the paper's P_0, without the end symbol."""
        return cls(alphabet_size=alphabet_size, levels=(np.arange(1, alphabet_size),))

    @classmethod
    def empty(cls, alphabet_size: int) -> PrefixTrie:
        """Return the trie of no prefix, which nothing extends."""
        return cls(alphabet_size=alphabet_size, levels=(np.zeros(0, dtype=np.int64),))

    @property
    def length(self) -> int:
        return len(self.levels)

    @property
    def width(self) -> int:
        """Number of prefixes of that length."""
        return len(self.levels[-1]) if self.levels else 1

    def extend(self, candidates: Indices) -> PrefixTrie:
        """Return the trie with one more level, of kept candidates in any order.

        Those that end in the end symbol are finished words and do not enter the level.
        """
        live = np.sort(candidates[candidates % self.alphabet_size != END])
        return PrefixTrie(alphabet_size=self.alphabet_size, levels=(*self.levels, live))

    def step(self, nodes: Nodes, symbols: Codes, level: int) -> Nodes:
        """Return each word's node in ``levels[level]``, from its node one level up, as its dtype.

        Args:
            nodes: ``(n,)`` signed indices into the level above (0 above the first), or ABSENT.
            symbols: ``(n,)`` code of each word's symbol number ``level``.
            level: Which level to enter.
        """
        above = len(self.levels[level - 1]) if level else 1
        lookup = np.full(above * self.alphabet_size, ABSENT, dtype=np.int64)
        lookup[self.levels[level]] = np.arange(len(self.levels[level]))
        result = np.full_like(nodes, ABSENT)
        for first in range(0, len(nodes), _AT_ONCE):
            # Below the first layers few words are alive, so their symbols alone are looked at.
            alive = first + np.flatnonzero(nodes[first : first + _AT_ONCE] != ABSENT)
            found = symbols[alive]
            known = found < self.alphabet_size
            alive, found = alive[known], found[known]
            result[alive] = lookup[nodes[alive].astype(np.int64) * self.alphabet_size + found]
        return result

    def walk(self, codes: Codes) -> Nodes:
        """Return each row's node in the last level, ``(n,) int32``; codes ``(n, >= length)``."""
        nodes: Nodes = np.zeros(len(codes), dtype=np.int32)
        for level in range(self.length):
            nodes = self.step(nodes, codes[:, level], level)
        return nodes

    def spell(self, candidates: Indices) -> Codes:
        """Return the ``(n, length + 1)`` codes of candidates that extend the last level."""
        codes = np.empty((len(candidates), self.length + 1), dtype=np.uint16)
        values = np.asarray(candidates, dtype=np.int64)
        for position in range(self.length, -1, -1):
            codes[:, position] = values % self.alphabet_size
            parents = values // self.alphabet_size
            if position:
                values = self.levels[position - 1][parents]
        return codes


def match_rows(codes: Codes, rows: Codes) -> Ints:
    """Return for each row of ``codes`` its position among ``rows``, or -1.

    Args:
        codes: ``(n, width) uint16``.
        rows: ``(m, width) uint16``, distinct.
    """
    # Imported late: who only asks oracles needs no Arrow.
    import pyarrow as pa
    import pyarrow.compute as pc

    def as_bytes(table: Codes) -> Any:
        content = pa.py_buffer(np.ascontiguousarray(table))
        kind = pa.binary(2 * table.shape[1])
        return pa.FixedSizeBinaryArray.from_buffers(kind, len(table), [None, content])

    wanted = as_bytes(rows)
    matches = np.full(len(codes), -1, dtype=np.int64)
    for first in range(0, len(codes) if len(rows) else 0, _AT_ONCE):
        found = pc.index_in(as_bytes(codes[first : first + _AT_ONCE]), value_set=wanted)
        matches[first : first + _AT_ONCE] = found.fill_null(-1).to_numpy()
    return matches
