"""Who stands at which position of a run's random order of clients."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.clients.populations.population import Population
from fedhh.questions.cohort import Cohort
from fedhh.random import KeyedPermutation, Stream, generator

LARGEST_SHUFFLED = 2**24
"""Clients whose random order is a shuffle that is held; of more, a keyed permutation."""

CHUNK = 2**12
"""Clients that are asked together where a population of more is stored in a random order."""


class ClientOrder:
    """The order in which a population's clients are asked in a run of some seed: a random one.

    Of a large population that is stored in a random order, chunks of clients that follow each other
    are permuted, from a random first client on: a cohort is as random a sample as any, and is read
    piece by piece.
    """

    def __init__(self, population: Population, *, seed: int) -> None:
        self._population = population
        self._seed = seed
        self._order: npt.NDArray[np.signedinteger[Any]] = np.zeros(0, dtype=np.int64)
        self._redraw: int | None = None

    def clients(self, cohort: Cohort, block: int) -> npt.NDArray[np.int64]:
        """Return ``(n,) int64``: the numbers of a block's clients, present or not."""
        positions = cohort.block(block)
        if self.is_their_own(cohort):
            return np.arange(positions.start, positions.stop)
        if self._population.num_clients > LARGEST_SHUFFLED:
            rng = generator(self._seed, Stream.COHORT, *_path(cohort))
            if self._population.is_shuffled:
                return self._by_chunks(np.arange(positions.start, positions.stop), rng)
            order = KeyedPermutation.draw(self._population.num_clients, rng=rng)
            return order.at(np.arange(positions.start, positions.stop))
        return self._client_order(cohort)[positions].astype(np.int64)

    def _by_chunks(
        self, positions: npt.NDArray[np.int64], rng: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        """Return the clients at positions; those beyond the last whole chunk come last."""
        num_clients = self._population.num_clients
        whole = num_clients // CHUNK
        start = int(rng.integers(num_clients))
        order = KeyedPermutation.draw(whole, rng=rng)
        chunks = positions // CHUNK
        is_whole = chunks < whole
        chunks[is_whole] = order.at(chunks[is_whole])
        return (chunks * CHUNK + positions % CHUNK + start) % num_clients

    def is_their_own(self, cohort: Cohort) -> bool:
        """Return whether clients are asked by their numbers, which is as good as a random order."""
        return self._population.exchangeable and cohort.redraw is None

    def _client_order(self, cohort: Cohort) -> npt.NDArray[np.signedinteger[Any]]:
        """Return the run's order of clients, or the cohort's own if it is redrawn."""
        if not len(self._order) or self._redraw != cohort.redraw:
            num_clients = self._population.num_clients
            # The last order goes first, and four bytes are enough: at most 64 MiB.
            self._order = np.zeros(0, dtype=np.int64)
            self._order = np.arange(num_clients, dtype=np.min_scalar_type(-num_clients))
            generator(self._seed, Stream.COHORT, *_path(cohort)).shuffle(self._order)
            self._redraw = cohort.redraw
        return self._order


def _path(cohort: Cohort) -> tuple[int, ...]:
    return () if cohort.redraw is None else (cohort.redraw,)
