"""Populations that are not held in memory: clients are drawn again whenever they are asked.

Ranks up to `LEXICON_RANKS` have their words in the lexicon, which is the same for every
population; a word beyond it reaches its block as the number that it codes. So memory depends on the
lexicon and on the block, and not on how many clients there are.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from fedhh.clients.populations.named_words import NAMED_RANKS
from fedhh.clients.populations.population import (
    ClientCounter,
    CountProgress,
    Ids,
    Population,
    RareWords,
)
from fedhh.clients.populations.synthetic import PopulationModel, RankDrawer, WordList, model_of
from fedhh.kernels.coded import count_words, part_ranks
from fedhh.questions.answer import Counted
from fedhh.questions.clients import ClientBlock
from fedhh.system.machine import num_cores
from fedhh.validation import InputError, require_at_least
from fedhh.words.known_words import KnownWords
from fedhh.words.lexicon import Lexicon

LEXICON_RANKS = NAMED_RANKS + 100**3
"""Ranks of the lexicon: all named words, and all coded ones of three syllables.

A word beyond is held by about one client in 400,000 of the preset with the heaviest tail.
"""

COUNTED_WHOLE = 20_000_000
"""Populations up to this size are counted whole."""

COUNTED_CLIENTS = 1_000_000
"""Of larger populations, so many clients are counted.

That leaves a share of all contributions a standard error of at most 0.4 points in every preset.
"""

MAX_CLIENTS = 2**40

_CLIENTS_AT_ONCE = 8_192
_SAMPLED_CLIENTS = 16_384
_LARGEST_INT32 = 2**31 - 1

_LexiconKey = tuple[KnownWords | None, WordList | None, int]
_lexicons: WeakValueDictionary[_LexiconKey, Lexicon] = WeakValueDictionary()
"""Those in use: a million words take a second to make, and are the same for every seed and size."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Census:
    """What one pass over some clients counted.

    Attributes:
        num_clients: How many were counted.
        words: ``(V, 2) int64``: contributions for each word of the lexicon, and its holders.
        beyond: Contributions for other words.
        sample: Other words of the first clients, as numbers of coded words, ...
        sample_counts: ... and how often they were typed.
        squares: Sum over clients of their squared number of contributions.
    """

    num_clients: int
    words: Ids
    beyond: int
    sample: Ids
    sample_counts: Ids
    squares: int

    @property
    def contributions(self) -> int:
        """All contributions of the clients counted."""
        return int(self.words[:, 0].sum()) + self.beyond


class VirtualPopulation(Population):
    """A synthetic population that draws its clients when asked.

    It answers as `synthetic_population` with the same preset and seed does, to the last bit: a
    client's stream depends on the seed and on its number alone.
    """

    exchangeable = True

    def __init__(
        self,
        preset: str | PopulationModel,
        num_clients: int,
        *,
        seed: int,
        counted_clients: int | None = None,
    ) -> None:
        """Describe the population; nothing is drawn yet.

        Args:
            preset: chat, keyboard60d, tweet, post, or a model of your own.
            num_clients: How many clients, at most 2^40.
            seed: The run's seed.
            counted_clients: Count words on at most so many clients; None: on all, or on
                `COUNTED_CLIENTS` of more than `COUNTED_WHOLE`. If that is not all, the counts are
                scaled up, and `share_std_error` says how far off shares may be.

        Raises:
            InputError: The preset is unknown, or a number is out of its range.
        """
        model = model_of(preset)
        require_at_least(1, num_clients=num_clients)
        if counted_clients is None:
            counted_clients = num_clients if num_clients <= COUNTED_WHOLE else COUNTED_CLIENTS
        require_at_least(1, counted_clients=counted_clients)
        if num_clients > MAX_CLIENTS:
            raise InputError(f"Expected num_clients <= 2^40, got num_clients={num_clients}.")
        self.name = f"{model.name}, {num_clients:,} clients, seed {seed}"
        self.unit = model.unit
        self._num_clients = num_clients
        self._counted = min(counted_clients, num_clients)
        self._drawer = RankDrawer(model=model, seed=seed)
        listed = model.word_list
        self._lexicon_ranks = LEXICON_RANKS if listed is None else len(listed.words)
        self._lexicon: Lexicon | None = None
        self._census: Census | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Workers draw clients; only the one who measures needs the counts.
        return {**self.__dict__, "_census": None}

    @property
    def num_clients(self) -> int:
        return self._num_clients

    @property
    def counted_clients(self) -> int:
        """On how many clients, the first ones, the counts of words rest."""
        return self._counted

    @property
    def lexicon(self) -> Lexicon:
        """The words of the ranks up to `LEXICON_RANKS`, or the listed ones; not all are held."""
        if self._lexicon is None:
            model = self._drawer.model
            made_of = (model.known, model.word_list, self._lexicon_ranks)
            lexicon = _lexicons.get(made_of)
            if lexicon is None:
                ranks = np.arange(1, self._lexicon_ranks + 1)
                lexicon = _lexicons[made_of] = Lexicon(words=model.strings(ranks))
            self._lexicon = lexicon
        return self._lexicon

    def block(self, clients: Ids) -> ClientBlock:
        rows = self._drawer.draw(clients)
        word_ids, beyond = part_ranks(rows.ranks, self._lexicon_ranks)
        return ClientBlock(
            clients=clients,
            offsets=rows.offsets,
            word_ids=word_ids,
            counts=rows.counts,
            coded=beyond - (NAMED_RANKS + 1),
        )

    @property
    def census(self) -> Census:
        """The counts of all clients, or of the first `counted_clients`; made once."""
        self.count()
        assert self._census is not None
        return self._census

    @property
    def is_counted(self) -> bool:
        return self._census is not None

    def count(
        self, progress: CountProgress | None = None, *, counted: Counted | None = None
    ) -> None:
        if self._census is None:
            self._census = self._take_census(progress or (lambda counted, of: None), counted)

    def counter(self) -> ClientCounter:
        return _Counter(self._lexicon_ranks, self._counted)

    def fingerprint(self) -> str:
        rows = self._first_clients()
        return self._hash_with(rows.offsets, rows.word_ids, rows.counts, rows.coded)

    @property
    def word_counts(self) -> Ids:
        return self._scaled(self.census.words[:, 0])

    @property
    def word_clients(self) -> Ids:
        return self._scaled(self.census.words[:, 1])

    @property
    def rare_words(self) -> RareWords:
        return RareWords(
            contributions=int(self._scaled(np.array([self.census.beyond]))[0]),
            sample=self.census.sample,
            sample_counts=self.census.sample_counts,
        )

    @property
    def share_std_error(self) -> float:
        """At most the standard error of a share of all contributions; 0 if all are counted.

        A share is a ratio X / M of sums over clients with 0 <= X_i <= M_i, so that its variance
        is at most E[M^2] / (n E[M]^2) (delta method), times 1 - n / N for n of N clients.
        """
        n, census = self._counted, self.census
        if n == self._num_clients or not census.contributions:
            return 0.0
        mean = census.contributions / n
        return float(np.sqrt(census.squares / n / mean**2 / n * (1 - n / self._num_clients)))

    def _first_clients(self) -> ClientBlock:
        return self.block(np.arange(min(_SAMPLED_CLIENTS, self._counted)))

    def _scaled(self, counts: Ids) -> Ids:
        if self._counted == self._num_clients:
            return counts
        scaled: Ids = np.rint(counts * (self._num_clients / self._counted)).astype(np.int64)
        return scaled

    def _take_census(self, progress: CountProgress, done: Counted | None) -> Census:
        """Draw the clients once, on all cores: integers add up to the same in any order."""
        missing = _missing(done.clients if done else (), self._counted)
        if missing is None:
            done, missing = None, [(0, self._counted)]
        blocks = [
            np.arange(start, min(start + _CLIENTS_AT_ONCE, stop))
            for first, stop in missing
            for start in range(first, stop, _CLIENTS_AT_ONCE)
        ]
        num_missing = sum(len(block) for block in blocks)
        num_threads = min(num_cores(), len(blocks))
        stopped = threading.Event()
        lock = threading.Lock()
        num_done = 0
        if num_missing:
            progress(0, num_missing)

        def work(thread: int) -> Counted:
            nonlocal num_done
            counter = self.counter()
            for clients in blocks[thread::num_threads]:
                if stopped.is_set():
                    break
                counter.add(self.block(clients))
                with lock:
                    num_done += len(clients)
                    progress(num_done, num_missing)
            return counter.counted

        parts = [] if done is None else [done]
        if blocks:
            with ThreadPoolExecutor(num_threads) as pool:
                try:
                    parts += pool.map(work, range(num_threads))
                finally:
                    # After an interrupt, threads end with the chunk at hand.
                    stopped.set()
        counted = reduce(Counted.merge, parts)
        sample = self._first_clients()
        return Census(
            num_clients=self._counted,
            words=counted.words.astype(np.int64),
            beyond=counted.contributions - int(counted.words[:, 0].sum()),
            sample=sample.coded,
            sample_counts=sample.counts[sample.word_ids >= self._lexicon_ranks].astype(np.int64),
            squares=counted.squares,
        )


class _Counter(ClientCounter):
    """Counts those of the clients that a census is about."""

    def __init__(self, num_words: int, num_clients: int) -> None:
        self._num_clients = num_clients
        self._clients: list[tuple[int, int]] = []
        self._words: npt.NDArray[np.signedinteger[Any]] = np.zeros((num_words, 2), dtype=np.int32)
        self._contributions = self._squares = 0

    def add(self, rows: ClientBlock) -> None:
        """Count the clients of a block whose numbers are below the census' own."""
        first = int(rows.clients[0])
        size = min(len(rows.clients), self._num_clients - first)
        if size <= 0:
            return
        here = slice(int(rows.offsets[size]))
        sums = np.diff(
            np.r_[0, np.cumsum(rows.counts[here], dtype=np.int64)][rows.offsets[: size + 1]]
        )
        self._clients.append((first, first + size))
        self._contributions += int(sums.sum())
        # Half the memory is twice as much of it in the cache.
        if self._contributions > _LARGEST_INT32 and self._words.dtype == np.int32:
            self._words = self._words.astype(np.int64)
        count_words(rows.word_ids[here], rows.counts[here], self._words)
        self._squares += int(np.dot(sums, sums))

    @property
    def counted(self) -> Counted:
        return Counted(
            clients=tuple(self._clients),
            words=self._words,
            contributions=self._contributions,
            squares=self._squares,
        )


def _missing(ranges: Sequence[tuple[int, int]], num_clients: int) -> list[tuple[int, int]] | None:
    gaps, end = [], 0
    for first, stop in [*sorted(ranges), (num_clients, num_clients)]:
        if first < end:
            return None
        if first > end:
            gaps.append((end, first))
        end = stop
    return gaps
