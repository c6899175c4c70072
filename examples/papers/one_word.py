"""Clients who hold one English word each: what stands in for the tweets of Zhu et al. (2020).

Their clients are the users of Sentiment140, each with the word that it types most, of three letters
or more. That file is not part of fedhh. Here every client's word is drawn from the 100,000 most
frequent of wordfreq's English list that have only letters, three or more.
"""

from __future__ import annotations

import string

import numpy as np

from fedhh.clients.clients import Clients, Table
from fedhh.clients.wordfreq_tail import ranked_words
from fedhh.random import Stream, generator
from fedhh.words.lexicon import Lexicon

FEWEST_LETTERS, VOCABULARY = 3, 100_000


class OneWord(Clients):
    """The same clients for every seed: only the protocols' coins differ."""

    def __init__(self, num_clients: int, *, seed: int) -> None:
        listed = [
            (word, frequency)
            for word, frequency in zip(*ranked_words(), strict=True)
            if len(word) >= FEWEST_LETTERS and set(word) <= set(string.ascii_lowercase)
        ][:VOCABULARY]
        weights = np.array([frequency for _, frequency in listed])
        counts = generator(0, Stream.POPULATION).multinomial(num_clients, weights / weights.sum())
        held = np.flatnonzero(counts)
        order = held[np.argsort(-counts[held], kind="stable")]
        table = Table(
            Lexicon(words=[listed[i][0] for i in order.tolist()]),
            np.arange(num_clients + 1),
            np.repeat(np.arange(len(order)), counts[order]),
            np.ones(num_clients, dtype=np.int64),
        )
        super().__init__(table, name=f"one English word each, {num_clients:,} clients")
