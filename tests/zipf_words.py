"""The population on which one-round protocols are compared: one six-letter word per client."""

from __future__ import annotations

import string

import numpy as np

from fedhh.clients.clients import Clients
from fedhh.clients.worker import ClientWorker
from fedhh.protocol import DiscoveryProtocol
from fedhh.simulation.engine import rounds
from fedhh.simulation.executor import InProcessExecutor
from fedhh.words.lexicon import Lexicon


def six_letter_words(num_clients: int, *, seed: int, num_words: int = 5000) -> Clients:
    """One word per client, Zipf(1.1) over random words of six lower-case letters."""
    rng = np.random.default_rng(seed)
    letters = np.array(list(string.ascii_lowercase))
    codes = np.unique(rng.integers(26, size=(num_words + 50, 6)), axis=0)
    words = ["".join(row) for row in letters[rng.permutation(codes)[:num_words]]]
    distribution = np.arange(1, num_words + 1) ** -1.1
    return Clients.from_rows(
        name="zipf",
        lexicon=Lexicon(words=words),
        clients=np.arange(num_clients),
        word_ids=rng.choice(num_words, size=num_clients, p=distribution / distribution.sum()),
        counts=np.ones(num_clients, dtype=np.int64),
        num_clients=num_clients,
    )


def final_state(protocol: DiscoveryProtocol, population: Clients, *, seed: int = 0):
    """The state after a run in process."""
    executor = InProcessExecutor(ClientWorker(population, seed=seed))
    *_, last = rounds(protocol, executor)
    return last.state


def recall_of_top(found: list[str], population: Clients, k: int) -> float:
    """Share of the k most frequent words that were found."""
    top = np.argsort(-population.word_counts().typed, kind="stable")[:k]
    return sum(population.lexicon.words[word] in set(found) for word in top) / k


def everybody_holds(words: list[str], num_clients: int = 2_000) -> Clients:
    """Return clients who hold the same words, so that no other is anybody's."""
    return Clients.from_rows(
        name="same",
        lexicon=Lexicon(words=words),
        clients=np.repeat(np.arange(num_clients), len(words)),
        word_ids=np.tile(np.arange(len(words)), num_clients),
        num_clients=num_clients,
    )
