"""Which symbol follows which: a prior for a trie's children, public and learned as a run goes.

Nothing here is about a client: the public model is counted on known words (`PublicPrior`), the
learned one on tallies, which the randomizer has made private.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedhh.arrays import Floats, Ints
from fedhh.words.alphabet import END, FOREIGN, Alphabet
from fedhh.words.trie import Codes

_LARGEST_TABLE = 4_000_000
"""Entries of a table of counts; larger alphabets get shorter contexts."""

_LEARNED_WEIGHT = 20.0
"""How many symbols seen in a context weigh as much as what the shorter context says."""

_LEAST_SHARE = 0.02
"""Of the uniform part of a mixture: no symbol is ever ruled out."""

LONGEST_CONTEXT = 4
"""Preceding symbols that public words are counted by; more say less of words not public."""

_LONGEST = 25
"""Symbols of a known word that are counted."""

_LARGEST_PUBLIC_TABLE = 16_000_000
"""Entries of a table of counts; larger alphabets get shorter contexts."""

_LARGEST_NUMBER = 2**62

_PUBLIC_WEIGHT = 5.0
"""How many symbols seen in a context weigh as much as what the shorter context says."""


def context_length(alphabet_size: int) -> int:
    """Return how many preceding symbols a model of this alphabet can look at: 2, 1 or 0."""
    return next(n for n in (2, 1, 0) if n == 0 or (alphabet_size + 1) ** (n + 1) <= _LARGEST_TABLE)


def contexts(spelled: Codes, alphabet_size: int, order: int | None = None) -> Ints:
    """Return the number of each prefix's last symbols: those before its start count as one more.

    Args:
        spelled: ``(n, length) uint16`` prefixes.
        alphabet_size: A.
        order: k, how many symbols; that of `context_length` if None.

    Returns:
        ``(n,) int64`` in [0, (A + 1)**k).
    """
    order = context_length(alphabet_size) if order is None else order
    numbers = np.zeros(len(spelled), dtype=np.int64)
    for back in range(order, 0, -1):
        symbols: Ints | int = alphabet_size
        if spelled.shape[1] >= back:
            symbols = spelled[:, -back].astype(np.int64)
        numbers = numbers * (alphabet_size + 1) + symbols
    return numbers


@dataclass(frozen=True, kw_only=True, eq=False)
class CharacterModel:
    """A mixture of three distributions of the next symbol: uniform, of public words, and learned.

    How much each weighs is learned as well, so that a model that knows nothing of the words, or
    the wrong language, has the minimal weight after a layer.

    Attributes:
        learned: ``((A + 1)**k, A) float64``: probable children seen so far, by context.
        weights: ``(3,) float64``: of the three, summing to one.
    """

    learned: Floats
    weights: Floats

    @classmethod
    def new(cls, alphabet_size: int, *, has_public: bool) -> CharacterModel:
        """Return the model before the first layer."""
        rows = (alphabet_size + 1) ** context_length(alphabet_size)
        weights = np.array([0.1, 0.8, 0.1] if has_public else [0.9, 0.0, 0.1])
        return cls(learned=np.zeros((rows, alphabet_size)), weights=weights)

    def distributions(self, numbers: Ints, public: Floats | None) -> list[Floats]:
        """Return the three distributions, each ``(n, A) float64``, after n contexts.

        Args:
            numbers: ``(n,) int64``, see `contexts`.
            public: ``(n, A) float64``, of `PublicPrior`; or None.
        """
        size = self.learned.shape[1]
        uniform = np.full((len(numbers), size), 1 / size)
        return [
            uniform,
            uniform if public is None else public,
            _smoothed(self.learned, numbers, _LEARNED_WEIGHT),
        ]

    def mixed(self, distributions: list[Floats]) -> Floats:
        """Return the mixture of `distributions`."""
        return np.asarray(
            sum(
                w * distribution
                for w, distribution in zip(self.weights, distributions, strict=True)
            )
        )

    def after(self, numbers: Ints, distributions: list[Floats], held: Floats) -> CharacterModel:
        """Return the model after a layer: one step of expectation maximisation for the weights.

        Args:
            numbers: ``(n,) int64``: the contexts.
            distributions: What the model said of them.
            held: ``(n, A) float64``: probability that each child is held.
        """
        per_child = held / np.maximum(self.mixed(distributions), 1e-300)
        shares = np.array(
            [
                w * float((per_child * distribution).sum())
                for w, distribution in zip(self.weights, distributions, strict=True)
            ]
        )
        if shares.sum() <= 0:
            return self
        least = np.where(self.weights > 0, _LEAST_SHARE, 0.0)
        weights = np.maximum(shares / shares.sum(), least)
        learned = self.learned.copy()
        np.add.at(learned, numbers, held)
        return CharacterModel(learned=learned, weights=weights / weights.sum())


def _smoothed(counts: Floats, numbers: Ints, weight: float) -> Floats:
    """Return the distribution after each context, smoothed by shorter and shorter ones."""
    rows, size = counts.shape
    totals = [counts]
    while rows > 1:
        rows //= size + 1
        # The first symbol of a context is the highest digit of its number.
        totals.append(totals[-1].reshape(size + 1, rows, size).sum(axis=0))
    distribution = (totals[-1] + 1) / (totals[-1].sum() + size)
    distribution = np.broadcast_to(distribution, (len(numbers), size))
    for table in reversed(totals[:-1]):
        seen = table[numbers % len(table)]
        distribution = (seen + weight * distribution) / (seen.sum(axis=1, keepdims=True) + weight)
    return np.asarray(distribution)


@dataclass(frozen=True, eq=False)
class PublicPrior:
    """Counts of symbols after contexts of 0, 1, 2, ... symbols.

    Attributes:
        contexts: For each length, ``(r,) int64``, ascending: the contexts that occur. What is
            before a word counts as one more symbol.
        counts: For each, ``(r, A) float32``: whole numbers.
    """

    contexts: tuple[Ints, ...]
    counts: tuple[npt.NDArray[np.float32], ...]

    @classmethod
    def counted(
        cls, words: Iterable[str], alphabet: Alphabet, *, context: int = LONGEST_CONTEXT
    ) -> PublicPrior:
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
            if length and len(different) * size > _LARGEST_PUBLIC_TABLE:
                break
            cells = row * size + symbols
            counts = np.bincount(cells, minlength=max(len(different), 1) * size)
            all_contexts.append(different)
            all_counts.append(counts.reshape(-1, size).astype(np.float32))
        return cls(contexts=tuple(all_contexts), counts=tuple(all_counts))

    def distribution(self, spelled: Codes) -> Floats:
        """Return ``(n, A) float64``: distributions of the symbol after ``(n, length)`` prefixes.

        What a context says is smoothed by shorter and shorter ones.
        """
        size = self.counts[0].shape[1]
        seen = self.counts[0].sum(axis=0, dtype=np.float64)
        distribution = np.broadcast_to((seen + 1) / (seen.sum() + size), (len(spelled), size))
        for length in range(1, len(self.contexts)):
            numbers = contexts(spelled, size, length)
            known = self.contexts[length]
            if not len(known):
                break
            row = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
            # A context that does not occur has no longer one that does.
            occurs = known[row] == numbers
            counts = self.counts[length][row[occurs]]
            distribution = distribution.copy()
            distribution[occurs] = (counts + _PUBLIC_WEIGHT * distribution[occurs]) / (
                counts.sum(axis=1, keepdims=True, dtype=np.float64) + _PUBLIC_WEIGHT
            )
        return np.asarray(distribution)


@functools.lru_cache(maxsize=4)
def public_prior(words: frozenset[str], alphabet: Alphabet) -> PublicPrior:
    """Return `PublicPrior.counted`, counted once."""
    return PublicPrior.counted(words, alphabet)
