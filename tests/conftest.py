"""Populations that several tests share."""

from __future__ import annotations

import numpy as np
import pytest

from fedhh.clients.population import StoredPopulation
from fedhh.lexicon import Lexicon

LETTERS = "abcdef"


def zipf_population(
    num_clients: int, *, num_words: int = 400, words_per_client: int = 4, seed: int = 5
) -> StoredPopulation:
    """Clients with words of 1 to 6 of six letters, drawn by a Zipf law."""
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


@pytest.fixture(scope="session")
def population() -> StoredPopulation:
    return zipf_population(6_000)
