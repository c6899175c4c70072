"""Which symbol follows which in public words, by up to some preceding symbols."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedhh.server.adaptive.character_model import contexts
from fedhh.words.alphabet import END, FOREIGN, Alphabet
from fedhh.words.trie import Codes

_Floats = npt.NDArray[np.float64]

LONGEST_CONTEXT = 4
"""More preceding symbols say less of words that are not public."""

_LONGEST = 25
"""Symbols of a known word that are counted."""

_LARGEST_TABLE = 16_000_000
"""Entries of a table of counts; larger alphabets get shorter contexts."""

_LARGEST_NUMBER = 2**62

_WEIGHT = 5.0
"""How many symbols seen in a context weigh as much as what the shorter context says."""


@dataclass(frozen=True, eq=False)
class PublicPrior:
    """Counts of symbols after contexts of 0, 1, 2, ... symbols.

    Attributes:
        contexts: For each length, ``(r,) int64``, ascending: the contexts that occur. What is
            before a word counts as one more symbol.
        counts: For each, ``(r, A) float32``: whole numbers.
    """

    contexts: tuple[npt.NDArray[np.int64], ...]
    counts: tuple[npt.NDArray[np.float32], ...]

    @classmethod
    def counted(cls, words: Iterable[str], alphabet: Alphabet, *, context: int) -> PublicPrior:
        """Return the counts of words, by up to ``context`` preceding symbols.

        Words with a symbol that the alphabet lacks are left out.
        """
        size = alphabet.size
        codes = alphabet.encode(list(words), width=_LONGEST)
        codes = codes[~(codes == FOREIGN).any(axis=1)]
        lengths = [(codes[:, :position] != END).all(axis=1) for position in range(_LONGEST)]
        all_contexts, all_counts = [], []
        for length in range(context + 1):
            if (size + 1) ** length > _LARGEST_NUMBER:
                break
            numbers = np.concatenate(
                [contexts(codes[here, :at], size, length) for at, here in enumerate(lengths)]
            )
            symbols = np.concatenate([codes[here, at] for at, here in enumerate(lengths)])
            different, row = np.unique(numbers, return_inverse=True)
            if length and len(different) * size > _LARGEST_TABLE:
                break
            cells = row * size + symbols
            counts = np.bincount(cells, minlength=max(len(different), 1) * size)
            all_contexts.append(different)
            all_counts.append(counts.reshape(-1, size).astype(np.float32))
        return cls(contexts=tuple(all_contexts), counts=tuple(all_counts))

    def law(self, spelled: Codes) -> _Floats:
        """Return ``(n, A) float64``: the law of the symbol after each ``(n, length)`` prefix.

        What a context says is smoothed by shorter and shorter ones.
        """
        size = self.counts[0].shape[1]
        seen = self.counts[0].sum(axis=0, dtype=np.float64)
        law = np.broadcast_to((seen + 1) / (seen.sum() + size), (len(spelled), size))
        for length in range(1, len(self.contexts)):
            numbers = contexts(spelled, size, length)
            known = self.contexts[length]
            if not len(known):
                break
            row = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
            # A context that does not occur has no longer one that does.
            occurs = known[row] == numbers
            counts = self.counts[length][row[occurs]]
            law = law.copy()
            law[occurs] = (counts + _WEIGHT * law[occurs]) / (
                counts.sum(axis=1, keepdims=True, dtype=np.float64) + _WEIGHT
            )
        return np.asarray(law)


@functools.lru_cache(maxsize=4)
def public_prior(words: frozenset[str], alphabet: Alphabet, context: int) -> PublicPrior:
    """Return `PublicPrior.counted`, counted once."""
    return PublicPrior.counted(words, alphabet, context=context)
