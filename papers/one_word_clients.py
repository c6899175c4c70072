"""Clients who hold one English word each: what stands in for the tweets of Zhu et al. (2020).

Their clients are the users of Sentiment140, each with the word that it types most, of three letters
or more. That file is not part of fedhh. Here every client's word is drawn from wordfreq's English
list: real words with real prefixes and real frequencies, but not of tweets, and drawn once where
theirs are the most frequent of several.
"""

from __future__ import annotations

import string
from bisect import bisect_left

import numpy as np
import numpy.typing as npt

from fedhh.clients.populations.population import StoredPopulation
from fedhh.clients.populations.wordfreq_tail import ranked_words
from fedhh.random import Stream, generator
from fedhh.words.lexicon import Lexicon

FEWEST_LETTERS = 3
VOCABULARY = 100_000
LETTERS = string.ascii_lowercase
_LAST = chr(0x10FFFF)
"""Sorts behind every letter."""
_DRAW = 0
"""Seed of the clients, the same for every run: only the protocols' coins differ."""


def one_word_population(num_clients: int) -> StoredPopulation:
    """Return clients with a word each, the lexicon in the order of their true counts.

    The words are the most frequent `VOCABULARY` words of wordfreq's English list that have only
    letters, three or more; a client's is drawn in proportion to its frequency.
    """
    listed = [
        (word, frequency)
        for word, frequency in zip(*ranked_words(), strict=True)
        if len(word) >= FEWEST_LETTERS and set(word) <= set(LETTERS)
    ][:VOCABULARY]
    weights = np.array([frequency for _, frequency in listed])
    rng = generator(_DRAW, Stream.POPULATION)
    counts = rng.multinomial(num_clients, weights / weights.sum())
    held = np.flatnonzero(counts)
    order = held[np.argsort(-counts[held], kind="stable")]
    return StoredPopulation.from_rows(
        name=f"one English word each, {num_clients:,} clients",
        lexicon=Lexicon(words=[listed[i][0] for i in order.tolist()]),
        clients=np.arange(num_clients),
        word_ids=np.repeat(np.arange(len(order)), counts[order]),
        num_clients=num_clients,
    )


class PrefixHolders:
    """Counts the clients whose word begins in some way."""

    def __init__(self, population: StoredPopulation) -> None:
        """Sort the words once."""
        order = sorted(range(len(population.lexicon)), key=population.lexicon.words.__getitem__)
        self._words = [population.lexicon.words[i] for i in order]
        self._before = np.r_[0, np.cumsum(population.word_clients[order])]

    def of(self, word: str) -> npt.NDArray[np.int64]:
        """Return ``(len(word) + 1,) int64``: by each prefix of a word, then by the word itself."""
        ranges = [
            (bisect_left(self._words, word[:n]), bisect_left(self._words, f"{word[:n]}{_LAST}"))
            for n in range(1, len(word) + 1)
        ]
        itself = bisect_left(self._words, word)
        ranges.append((itself, itself + (self._words[itself] == word)))
        return np.array([self._before[end] - self._before[start] for start, end in ranges])
