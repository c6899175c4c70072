"""Words that are known before anybody is asked: the domain of a closed discovery."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedhh.words.alphabet import END, FOREIGN, Alphabet, nfc
from fedhh.words.trie import Codes


@dataclass(frozen=True, repr=False)
class Candidates:
    """Distinct words in alphabetical order, public like the settings of a run.

    The order says nothing of who holds what: equal counts may be distinguished by it.

    Attributes:
        words: The words, in Unicode form NFC; any order, form and repetitions are taken.

    >>> Candidates(["lol", "brb", "lol"]).words
    ('brb', 'lol')
    """

    words: Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", tuple(sorted(set(map(nfc, self.words)))))

    def __len__(self) -> int:
        return len(self.words)

    def __repr__(self) -> str:
        digest = hashlib.sha256("\0".join(self.words).encode("utf-8", "surrogatepass")).hexdigest()
        return f"Candidates({len(self)} words, {digest[:16]})"

    def spelled(self, alphabet: Alphabet) -> Codes:
        """Return the codes of the words that an alphabet can spell, closed by the end symbol.

        Returns:
            ``(c, longest + 1) uint16``; words with other symbols, and the empty one, are left out.
        """
        words = list(self.words)
        codes = alphabet.encode(words, width=1 + max(map(len, words), default=0))
        spelled = codes[~(codes == FOREIGN).any(axis=1) & (codes[:, 0] != END)]
        longest = int((spelled != END).sum(axis=1).max(initial=0))
        return np.ascontiguousarray(spelled[:, : longest + 1])
