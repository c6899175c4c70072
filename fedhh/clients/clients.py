"""Clients held in memory, as compressed sparse rows."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.clients.population import Counts, Ids, Population, Words
from fedhh.questions.clients import ClientBlock
from fedhh.validation import InputError
from fedhh.words.lexicon import Lexicon

_LARGEST_COUNT = 2**31 - 1


class Clients(Population):
    """A population held as compressed sparse rows, in memory."""

    is_held = True

    def __init__(
        self,
        *,
        name: str,
        lexicon: Lexicon,
        offsets: Ids,
        word_ids: Words,
        counts: Counts,
        unit: str = "user",
        exchangeable: bool = False,
        drawn_from: int | None = None,
    ) -> None:
        """Take compressed sparse rows as in `ClientBlock`, over all clients.

        Raises:
            InputError: There is no client.
        """
        if len(offsets) < 2:
            raise InputError(f"Expected at least one client, got an empty population ({name}).")
        self.name = name
        self.unit = unit
        self.exchangeable = exchangeable
        self.drawn_from = drawn_from
        self._lexicon = lexicon
        self._offsets = np.asarray(offsets, dtype=np.int64)
        self._word_ids = np.asarray(word_ids, dtype=np.int32)
        self._counts = np.asarray(counts, dtype=np.int32)

    @classmethod
    def from_rows(
        cls,
        *,
        name: str,
        lexicon: Lexicon,
        clients: Ids,
        word_ids: Ids,
        counts: Ids | None = None,
        num_clients: int,
        unit: str = "user",
    ) -> Clients:
        """Build from rows (client, word, count) in any order; rows of one pair are summed.

        Args:
            name: What a report calls the population.
            lexicon: The distinct words.
            clients: ``(rows,) int64`` in [0, num_clients).
            word_ids: ``(rows,) int64`` in [0, len(lexicon)).
            counts: ``(rows,) int64``, at least 1; None for 1 each.
            num_clients: Number of clients, those without a row included.
            unit: What one client stands for.

        Raises:
            InputError: A client's counts of a word sum to 2^31 or more.
        """
        num_words = max(len(lexicon), 1)
        keys = clients * num_words
        keys += word_ids
        # A file that was written from a population is in order.
        if (keys[1:] < keys[:-1]).any():
            if counts is None:
                keys.sort()
            else:
                order = np.argsort(keys)
                keys, counts = keys[order], counts[order]
        starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]][: len(keys)])
        if counts is None:
            totals = np.diff(np.r_[starts, len(keys)])
        elif len(starts) == len(keys):
            totals = counts
        else:
            totals = np.add.reduceat(counts, starts)
        if len(totals) and totals.max() > _LARGEST_COUNT:
            raise InputError(
                f"Expected a client's counts of a word to sum to at most {_LARGEST_COUNT}, got "
                f"{totals.max()} in {name}."
            )
        pairs = keys if len(starts) == len(keys) else keys[starts]
        holders = pairs // num_words
        sizes = np.bincount(holders, minlength=num_clients)
        return cls(
            name=name,
            lexicon=lexicon,
            offsets=np.r_[0, np.cumsum(sizes)],
            word_ids=(pairs - holders * num_words).astype(np.int32),
            counts=totals.astype(np.int32),
            unit=unit,
        )

    @property
    def num_clients(self) -> int:
        return len(self._offsets) - 1

    @property
    def lexicon(self) -> Lexicon:
        return self._lexicon

    @property
    def items(self) -> ClientBlock:
        """All clients, in order."""
        return ClientBlock(
            clients=np.arange(self.num_clients),
            offsets=self._offsets,
            word_ids=self._word_ids,
            counts=self._counts,
        )

    def fingerprint(self) -> str:
        return self._hash_with(self._offsets, self._word_ids, self._counts)

    def block(self, clients: Ids) -> ClientBlock:
        starts = self._offsets[clients]
        sizes = self._offsets[clients + 1] - starts
        offsets = np.r_[0, np.cumsum(sizes)]
        rows = np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])
        return ClientBlock(
            clients=clients,
            offsets=offsets,
            word_ids=self._word_ids[rows],
            counts=self._counts[rows],
        )

    @property
    def word_counts(self) -> Ids:
        """``(V,) int64``: how often each word was typed by all clients together; not writable."""
        return self._totals[0]

    @property
    def word_clients(self) -> Ids:
        """``(V,) int64``: how many clients hold each word; not writable."""
        return self._totals[1]

    @functools.cached_property
    def _totals(self) -> tuple[Ids, Ids]:
        size = len(self._lexicon)
        # bincount adds in float64, which is exact below 2**53 contributions.
        totals = np.bincount(self._word_ids, weights=self._counts, minlength=size).astype(np.int64)
        holders = np.bincount(self._word_ids, minlength=size)
        for counts in (totals, holders):
            counts.flags.writeable = False
        return totals, holders

    def __getstate__(self) -> dict[str, Any]:
        # Workers answer for clients; only the one who measures needs the totals.
        return {name: value for name, value in self.__dict__.items() if name != "_totals"}

    def keep_words(self, keep: npt.NDArray[np.bool_]) -> Clients:
        """Return the population with only some words; clients stay, even with nothing left.

        Args:
            keep: ``(V,) bool``; kept words are renumbered in order.
        """
        kept_rows = keep[self._word_ids]
        kept_before = np.r_[0, np.cumsum(kept_rows)]
        renumbered = np.cumsum(keep, dtype=np.int64) - 1
        return Clients(
            name=self.name,
            lexicon=Lexicon(words=[self._lexicon.words[i] for i in np.flatnonzero(keep).tolist()]),
            offsets=kept_before[self._offsets],
            word_ids=renumbered[self._word_ids[kept_rows]].astype(np.int32),
            counts=self._counts[kept_rows],
            unit=self.unit,
            exchangeable=self.exchangeable,
            drawn_from=self.drawn_from,
        )

    def sample_clients(self, size: int, *, rng: np.random.Generator) -> Clients:
        """Return a sample of the clients, without replacement, in their order, and their words.

        A smaller sample with the same generator is part of a larger one.

        Args:
            size: How many clients, from 1 to all.
            rng: Source of the draw.

        Raises:
            InputError: There are not so many clients.
        """
        if not 1 <= size <= self.num_clients:
            raise InputError(
                f"Expected 1 <= population.clients <= {self.num_clients:,}, the {self.unit}s of "
                f"{self.name}, got population.clients={size:,}."
            )
        if size == self.num_clients:
            return self
        sample = self._sampled(size, rng)
        return sample.keep_words(sample.word_clients > 0)

    def _sampled(self, size: int, rng: np.random.Generator) -> Clients:
        """Return fewer than all clients, with all words."""
        drawn = self.block(np.sort(rng.permutation(self.num_clients)[:size]))
        return Clients(
            name=f"{self.name}, a random {size:,} of {self.num_clients:,} {self.unit}s",
            lexicon=self._lexicon,
            offsets=drawn.offsets,
            word_ids=drawn.word_ids,
            counts=drawn.counts,
            unit=self.unit,
            exchangeable=self.exchangeable,
            drawn_from=self.num_clients,
        )
