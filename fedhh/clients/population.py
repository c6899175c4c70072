"""The interface of populations: who holds which words, and how often."""

from __future__ import annotations

import hashlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.arrays import Ints
from fedhh.questions.clients import ClientBlock
from fedhh.simulation.roster import Arrangement, ClientOrder
from fedhh.words.lexicon import Lexicon

_CLIENTS_IN_FINGERPRINT = 16_384
_COUNTED_AT_ONCE = 8_192

CountProgress = Callable[[int, int], None]
"""Called with the number of clients counted so far, from 0, and how many there are to count."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WordCounts:
    """How often all clients together typed each of V words, and how many of them hold it.

    Attributes:
        typed: ``(V,) int64``: contributions for each word.
        holders: ``(V,) int64``: clients that hold it; nobody holds a stub of the lexicon.
        num_counted: On how many clients this rests; if fewer than all, it is scaled up.
        share_std_error: At most the standard error of a share of all contributions, from counting
            only some.
    """

    typed: Ints
    holders: Ints
    num_counted: int
    share_std_error: float = 0.0


class Population(ABC):
    """Clients with their words, and the truth that a simulator may know about them.

    Attributes:
        name: What a report calls it.
        unit: What one client stands for: a user, a nick, a post. User-level claims are about it.
        arrangement: Which order clients are stored in, see `fedhh.simulation.roster.Arrangement`.
    """

    name: str
    unit: str
    arrangement: Arrangement = "any"
    _word_counts: WordCounts | None = None

    @property
    @abstractmethod
    def num_clients(self) -> int:
        """Number of clients, those without an item included."""

    @property
    @abstractmethod
    def lexicon(self) -> Lexicon:
        """The distinct words that clients hold."""

    @abstractmethod
    def block(self, clients: Ints) -> ClientBlock:
        """Return the items of the given clients, in the given order."""

    def word_counts(self, progress: CountProgress | None = None) -> WordCounts:
        """Return the truth about each word; the first call may take a pass over the clients.

        Args:
            progress: Hears how far that pass is.
        """
        if self._word_counts is None:
            self._word_counts = self._count(progress)
        return self._word_counts

    def _count(self, progress: CountProgress | None) -> WordCounts:
        return count_words(self, progress)

    def fingerprint(self) -> str:
        """Return a hash of who holds what, by which a run knows its own clients again.

        It covers all words, and the items of the first clients.
        """
        rows = self.block(np.arange(min(self.num_clients, _CLIENTS_IN_FINGERPRINT)))
        digest = hashlib.sha256(repr((self.name, self.num_clients)).encode())
        update_digest(digest, self.lexicon, rows.offsets, rows.word_ids, rows.counts)
        return digest.hexdigest()

    def __getstate__(self) -> dict[str, Any]:
        # Workers answer for clients; only the one who measures needs the counts.
        return {**self.__dict__, "_word_counts": None}


def client_order(population: Population, *, seed: int) -> ClientOrder:
    """Return the order in which a run of a seed asks a population's clients."""
    return ClientOrder(
        num_clients=population.num_clients, seed=seed, arrangement=population.arrangement
    )


def update_digest(digest: Any, lexicon: Lexicon, *arrays: npt.NDArray[Any]) -> None:
    """Add words and arrays to a hash."""
    digest.update("\0".join(lexicon.words).encode("utf-8", "surrogatepass"))
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())


def count_words(
    population: Population,
    progress: CountProgress | None = None,
    *,
    num_counted: int | None = None,
    num_threads: int = 1,
) -> WordCounts:
    """Return the counts of words, from one pass over clients.

    Args:
        population: The clients.
        progress: Hears how far the pass is.
        num_counted: Count only so many of the first clients, a random sample; None for all.
        num_threads: How many of them draw blocks: integers add up to the same in any order.
    """
    from fedhh.kernels.ranks import count_rows  # What is counted in memory needs no kernel.

    of, size = population.num_clients, len(population.lexicon)
    counted = min(num_counted or of, of)
    starts = range(0, counted, _COUNTED_AT_ONCE)
    stopped, lock = threading.Event(), threading.Lock()
    num_done = 0
    hear = progress or (lambda done, total: None)
    hear(0, counted)

    def work(thread: int) -> tuple[Ints, int]:
        nonlocal num_done
        totals, squares = np.zeros((size, 2), dtype=np.int64), 0
        for start in starts[thread::num_threads]:
            if stopped.is_set():
                break
            clients = np.arange(start, min(start + _COUNTED_AT_ONCE, counted))
            rows = population.block(clients)
            sums = np.diff(np.r_[0, np.cumsum(rows.counts, dtype=np.int64)][rows.offsets])
            squares += int(np.dot(sums, sums))
            count_rows(rows.word_ids, rows.counts, totals)
            with lock:
                num_done += len(clients)
                hear(num_done, counted)
        return totals, squares

    with ThreadPoolExecutor(num_threads) as pool:
        try:
            parts = list(pool.map(work, range(num_threads)))
        finally:
            # After an interrupt, threads end with the chunk at hand.
            stopped.set()
    totals, squares = parts[0]
    for part in parts[1:]:
        totals += part[0]
        squares += part[1]
    typed, holders = (np.ascontiguousarray(each) for each in totals.T)
    holders[size - population.lexicon.num_stubs :] = 0
    error = 0.0
    if counted < of:
        error = _share_std_error(int(typed.sum()), squares, counted, of)
        typed, holders = (
            np.rint(each * (of / counted)).astype(np.int64) for each in (typed, holders)
        )
    for each in (typed, holders):
        each.flags.writeable = False
    return WordCounts(typed=typed, holders=holders, num_counted=counted, share_std_error=error)


def _share_std_error(contributions: int, squares: int, counted: int, num_clients: int) -> float:
    """Return at most the standard error of a share of all contributions.

    A share is a ratio X / M of sums over clients with 0 <= X_i <= M_i, so that its variance is at
    most E[M^2] / (n E[M]^2) (delta method), times 1 - n / N for n of N clients.
    """
    if not contributions:
        return 0.0
    mean = contributions / counted
    return float(np.sqrt(squares / counted / mean**2 / counted * (1 - counted / num_clients)))
