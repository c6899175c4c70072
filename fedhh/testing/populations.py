"""A small population to try protocols on."""

from __future__ import annotations

import numpy as np

from fedhh.clients.populations.population import StoredPopulation
from fedhh.words.lexicon import Lexicon

LETTERS = "abcdef"
"""The letters of a small population's words."""


def small_population(
    num_clients: int = 6_000, *, num_words: int = 400, words_per_client: int = 4, seed: int = 5
) -> StoredPopulation:
    """Return clients with words of 1 to 6 of six letters, drawn by a Zipf law.

    Args:
        num_clients: How many clients.
        num_words: How many different words there are.
        words_per_client: Draws per client, each with a count of 1 to 3.
        seed: Of the words and of who holds which.
    """
    rng = np.random.default_rng(seed)
    words: list[str] = []
    while len(words) < num_words:
        word = "".join(rng.choice(list(LETTERS), size=rng.integers(1, 7)))
        if word not in words:
            words.append(word)
    law = 1 / (np.arange(num_words) + 1.0)
    rows = num_clients * words_per_client
    return StoredPopulation.from_rows(
        name="zipf",
        lexicon=Lexicon(words=words),
        clients=np.repeat(np.arange(num_clients), words_per_client),
        word_ids=rng.choice(num_words, size=rows, p=law / law.sum()),
        counts=rng.integers(1, 4, size=rows),
        num_clients=num_clients,
    )
