"""A population that sings: each client holds a few words of one refrain."""

from __future__ import annotations

import numpy as np

from fedhh.clients.clients import Clients, Table
from fedhh.words.lexicon import Lexicon

REFRAIN = "fa la la la tra la la fa la li lo la"


class Refrain(Clients):
    """Clients hold ``per_client`` words, drawn from the refrain as often as it has them."""

    def __init__(self, num_clients: int, *, seed: int, per_client: int = 3) -> None:
        """Draw the words of all clients; the seed is the run's."""
        words, distribution = np.unique(REFRAIN.split(), return_counts=True)
        rng = np.random.default_rng([seed, num_clients])
        drawn = rng.choice(
            len(words), size=(num_clients, per_client), p=distribution / distribution.sum()
        )
        counts = np.array([np.bincount(row, minlength=len(words)) for row in drawn])
        table = Table(
            Lexicon(words=words.tolist()),
            np.concatenate([[0], np.cumsum((counts > 0).sum(axis=1))]),
            np.nonzero(counts)[1],
            counts[counts > 0],
        )
        super().__init__(table, name=f"{num_clients:,} singers")
