"""Populations: who holds which words, how often."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.plugin_returns import ChecksReturns
from fedhh.questions.clients import ClientBlock
from fedhh.simulation.roster import ClientOrder
from fedhh.words.lexicon import Lexicon

Ids = npt.NDArray[np.int64]
Words = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int32]

_CLIENTS_IN_FINGERPRINT = 10_000

CountProgress = Callable[[int, int], None]
"""Called with the number of clients counted so far, from 0, and how many there are to count."""


class Population(ChecksReturns, ABC):
    """Clients with their words, and the truth that a simulator may know about them.

    Attributes:
        name: What a report calls it.
        unit: What one client stands for: a user, a nick, a post. User-level claims are about it.
        exchangeable: Whether clients are independent draws of one distribution, so that asking them
            in their own order is as good as asking them in a random one.
        is_shuffled: Whether clients are stored in a random order, so that those who follow each
            other are a random sample.
        is_held: Whether all clients are in memory, and can be looked at at once.
        drawn_from: Of how many users of a file the clients are a sample; None if they are all.
        num_stubs: So many words at the end of the lexicon are stubs: beginnings of rare words,
            which count as contributions and cannot be found.
    """

    name: str
    unit: str
    exchangeable: bool = False
    is_shuffled: bool = False
    is_held: bool = False
    drawn_from: int | None = None
    num_stubs: int = 0

    @property
    @abstractmethod
    def num_clients(self) -> int:
        """Number of clients, those without an item included."""

    @property
    @abstractmethod
    def lexicon(self) -> Lexicon:
        """The distinct words that clients hold."""

    @abstractmethod
    def block(self, clients: Ids) -> ClientBlock:
        """Return the items of the given clients, in the given order."""

    @property
    @abstractmethod
    def word_counts(self) -> Ids:
        """``(V,) int64``: how often each word was typed by all clients together."""

    @property
    @abstractmethod
    def word_clients(self) -> Ids:
        """``(V,) int64``: how many clients hold each word."""

    def order(self, *, seed: int) -> ClientOrder:
        """Return the order in which a run of a seed asks the clients."""
        return ClientOrder(
            num_clients=self.num_clients,
            seed=seed,
            exchangeable=self.exchangeable,
            is_shuffled=self.is_shuffled,
        )

    def fingerprint(self) -> str:
        """Return a hash of who holds what, by which a run knows its own clients again.

        It covers all words with their counts and holders, and the items of the first clients.
        """
        rows = self.block(np.arange(min(self.num_clients, _CLIENTS_IN_FINGERPRINT)))
        arrays = (self.word_counts, self.word_clients, rows.offsets, rows.word_ids, rows.counts)
        return self._hash_with(*arrays)

    def _hash_with(self, *arrays: npt.NDArray[Any]) -> str:
        digest = hashlib.sha256(repr((self.name, self.num_clients)).encode())
        digest.update("\0".join(self.lexicon.words).encode("utf-8", "surrogatepass"))
        for array in arrays:
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def count(self, progress: CountProgress | None = None) -> None:
        """Make the counts, if that takes a pass over the clients that is still to be done.

        Args:
            progress: Hears how far it is.
        """
        return

    @property
    def counted_clients(self) -> int:
        """On how many clients the counts of words rest; if fewer than all, they are scaled up."""
        return self.num_clients

    @property
    def share_std_error(self) -> float:
        """At most the standard error of a share of all contributions, from counting only some."""
        return 0.0
