"""Which values a population's words have in questions, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedhh.arrays import Bools, Ints
from fedhh.words.alphabet import FOREIGN, Alphabet
from fedhh.words.lexicon import Lexicon, LexiconWalk
from fedhh.words.trie import ABSENT, Codes, match_rows

if TYPE_CHECKING:
    from fedhh.questions.names import TrieNames


_AT_ONCE = 2**18


class WordMatcher:
    """Finds the values of a population's words; keeps what the next question can use again."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self._walk: LexiconWalk | None = None
        self._walk_key: tuple[str, int] | None = None
        self._excluded: Codes = np.zeros((0, 0), dtype=np.uint16)
        self._is_excluded: Bools = np.zeros(0, dtype=np.bool_)

    def walk(self, alphabet: Alphabet, width: int) -> LexiconWalk:
        """Return the words' walk by ``width`` symbols of an alphabet, the one asked for last."""
        if self._walk is None or self._walk_key != (alphabet.symbols, width):
            self._walk = LexiconWalk(self.lexicon, alphabet, width)
            self._walk_key = (alphabet.symbols, width)
            self._excluded = np.zeros((0, width), dtype=np.uint16)
            self._is_excluded = np.zeros(len(self.lexicon), dtype=np.bool_)
        return self._walk

    def prefix_values(self, names: TrieNames, alphabet: Alphabet) -> Ints:
        """Return ``(V,) int64``: each word's candidate value, or -1 where it has none."""
        width = names.excluded.shape[1]
        walk = self.walk(alphabet, width)
        codes = walk.codes
        if not np.array_equal(self._excluded, names.excluded):
            self._excluded = names.excluded
            for first in range(0, len(codes), _AT_ONCE):
                piece = slice(first, first + _AT_ONCE)
                self._is_excluded[piece] = match_rows(codes[piece], names.excluded) >= 0
        nodes = walk.nodes(names.trie)
        values = np.full(len(codes), -1, dtype=np.int64)
        for first in range(0, len(codes), _AT_ONCE):
            alive = first + np.flatnonzero(nodes[first : first + _AT_ONCE] != ABSENT)
            symbols = codes[alive, names.trie.length]
            known = symbols != FOREIGN
            alive, symbols = alive[known], symbols[known]
            values[alive] = nodes[alive].astype(np.int64) * names.trie.alphabet_size + symbols
        if len(names.finished):
            finished = match_rows(codes, names.finished)
            values[finished >= 0] = names.num_extensions + finished[finished >= 0]
        if len(names.excluded):
            values[self._is_excluded] = -1
        return values
