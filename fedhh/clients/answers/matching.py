"""Which candidate values a population's words have."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedhh.clients.answers.base import Values
from fedhh.queries.base import PrefixQuery
from fedhh.words.alphabet import FOREIGN
from fedhh.words.lexicon import Lexicon, LexiconWalk
from fedhh.words.trie import ABSENT, Codes

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_29 = np.uint64(29)
_SPARSE = 32
"""Of the bits that rows are first looked up in, at most one in so many is set."""


class WordMatcher:
    """Finds the values of a population's words; keeps what the next query can use again."""

    def __init__(self, lexicon: Lexicon) -> None:
        """Match the words of this lexicon."""
        self.lexicon = lexicon
        self._walk: LexiconWalk | None = None
        self._walk_key: tuple[str, int] | None = None
        self._hashes: npt.NDArray[np.uint64] = np.zeros(0, dtype=np.uint64)
        self._excluded: Codes = np.zeros((0, 0), dtype=np.uint16)
        self._is_excluded: npt.NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)

    def prefix_values(self, query: PrefixQuery) -> Values:
        """Return ``(V,) int64``: each word's candidate value, or -1 where it has none."""
        width = query.excluded.shape[1]
        if self._walk is None or self._walk_key != (query.alphabet.symbols, width):
            self._walk = LexiconWalk(self.lexicon, query.alphabet, width)
            self._walk_key = (query.alphabet.symbols, width)
            self._hashes = row_hashes(self._walk.codes)
            self._excluded = np.zeros((0, width), dtype=np.uint16)
            self._is_excluded = np.zeros(len(self.lexicon), dtype=np.bool_)
        codes = self._walk.codes
        if not np.array_equal(self._excluded, query.excluded):
            self._excluded = query.excluded
            self._is_excluded = match_rows(codes, query.excluded) >= 0
        nodes = self._walk.nodes(query.trie)
        symbols = codes[:, query.trie.length]
        values = nodes * query.trie.alphabet_size + symbols
        values[(nodes == ABSENT) | (symbols == FOREIGN)] = -1
        finished = match_rows(codes, query.finished, hashes=self._hashes)
        values[finished >= 0] = query.num_extensions + finished[finished >= 0]
        values[self._is_excluded] = -1
        return values


def row_hashes(codes: Codes) -> npt.NDArray[np.uint64]:
    """Return ``(n,) uint64``: a hash of each row; four codes at a time, by multiplication."""
    columns = -(-codes.shape[1] // 4)
    padded = np.zeros((len(codes), 4 * columns), dtype=np.uint16)
    padded[:, : codes.shape[1]] = codes
    hashes = np.zeros(len(codes), dtype=np.uint64)
    for part in padded.view(np.uint64).T:
        hashes = (hashes ^ part) * _GOLDEN
        hashes ^= hashes >> _29
    return hashes


def match_rows(
    codes: Codes, rows: Codes, *, hashes: npt.NDArray[np.uint64] | None = None
) -> Values:
    """Return for each row of ``codes`` its position among ``rows``, or -1.

    Args:
        codes: ``(n, width) uint16``.
        rows: ``(m, width) uint16``, distinct.
        hashes: `row_hashes` of ``codes``, where they are known.
    """
    matches = np.full(len(codes), -1, dtype=np.int64)
    if not len(rows):
        return matches
    # Most rows match none, which a look at some bits of their hashes tells.
    mask = np.uint64((1 << (_SPARSE * len(rows)).bit_length()) - 1)
    marked = np.zeros(int(mask) + 1, dtype=np.bool_)
    wanted = row_hashes(rows)
    marked[wanted & mask] = True
    hashes = row_hashes(codes) if hashes is None else hashes
    near = np.flatnonzero(marked[hashes & mask])
    keys = hashes[near]
    order = np.argsort(wanted)
    if (wanted[order][1:] == wanted[order][:-1]).any():
        # Fixed-width byte strings compare as a whole; numpy drops trailing zeros, which are END.
        kind = f"S{2 * codes.shape[1]}"
        keys = np.ascontiguousarray(codes[near]).view(kind).ravel()
        wanted = np.ascontiguousarray(rows).view(kind).ravel()
        order = np.argsort(wanted)
    slots = np.minimum(np.searchsorted(wanted[order], keys), len(rows) - 1)
    hits = order[slots]
    hits[wanted[hits] != keys] = -1
    same = np.flatnonzero(hits >= 0)
    same = same[(codes[near[same]] == rows[hits[same]]).all(axis=1)]
    matches[near[same]] = hits[same]
    return matches
