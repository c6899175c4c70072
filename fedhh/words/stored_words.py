"""Words that stay where they lie, in an Arrow array that may be mapped from a file."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fedhh.arrays import Bools, SmallInts
from fedhh.words.alphabet import nfc
from fedhh.words.lexicon import Lexicon
from fedhh.words.trie import Indices

_AT_ONCE = 2**16


class StoredWords(Sequence[str]):
    """Distinct words in the order of their code points; each becomes a string when it is read."""

    def __init__(self, texts: pa.Array) -> None:
        """Take a ``large_string`` array without nulls.

        Raises:
            ValueError: The words are not valid UTF-8, not distinct, or not in order.
        """
        texts.validate(full=True)
        # Arrow compares bytes, and UTF-8 has the order of code points.
        if len(texts) > 1 and not pc.all(pc.less(texts[:-1], texts[1:])).as_py():
            raise ValueError("The words are not in order.")
        self._texts = texts
        self._places: SmallInts | None = None

    def __len__(self) -> int:
        return len(self._texts if self._places is None else self._places)

    def __getitem__(self, place: Any) -> Any:
        where = place if self._places is None else self._places[place]
        if not isinstance(place, slice):
            return self._texts[int(where)].as_py()
        some = self._texts[where] if self._places is None else self._texts.take(pa.array(where))
        return some.to_pylist()

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), _AT_ONCE):
            yield from self[first : first + _AT_ONCE]

    def find(self, word: str) -> int:
        """Return a word's place, or -1."""
        place = bisect_left(self, word)
        return place if place < len(self) and self[place] == word else -1

    def only(self, keep: Bools) -> StoredWords:
        """Return some of the words, ``keep`` being ``(n,) bool``; they stay where they lie."""
        some = copy(self)
        some._places = np.flatnonzero(keep).astype(np.int32)
        if self._places is not None:
            some._places = self._places[some._places]
        return some


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredLexicon(Lexicon):
    """Distinct words in NFC that are searched where they lie.

    An index would take more memory than all else that is held of them.
    """

    words: StoredWords

    def only(self, keep: Bools) -> StoredLexicon:
        return StoredLexicon(words=self.words.only(keep))

    def ids(self, words: Iterable[str]) -> Indices:
        return np.fromiter((self.words.find(nfc(word)) for word in words), dtype=np.int64)
