"""A table of clients: compressed sparse rows, in memory or mapped from a prepared directory."""

from __future__ import annotations

import hashlib
from collections import Counter
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from fedhh.arrays import Bools, Ints, SmallInts
from fedhh.clients.population import (
    CountProgress,
    Population,
    WordCounts,
    count_words,
    update_digest,
)
from fedhh.questions.clients import ClientBlock
from fedhh.simulation.roster import Arrangement
from fedhh.validation import InputError
from fedhh.words.lexicon import Lexicon

_LARGEST_COUNT = 2**31 - 1


class Table:
    """Rows of clients in memory.

    Attributes:
        lexicon: The distinct words.
        offsets: ``(num_clients + 1,) int64``; client i's rows are ``offsets[i] : offsets[i + 1]``.
        word_ids: ``(rows,) int32``, distinct within a client.
        counts: ``(rows,) int32``, at least 1.
        is_mapped: Whether it lies on disk.
    """

    is_mapped = False

    def __init__(
        self, lexicon: Lexicon, offsets: Ints, word_ids: SmallInts, counts: SmallInts
    ) -> None:
        self.lexicon = lexicon
        self.offsets = np.asarray(offsets, dtype=np.int64)
        self.word_ids = np.asarray(word_ids, dtype=np.int32)
        self.counts = np.asarray(counts, dtype=np.int32)

    @cached_property
    def digest(self) -> str:
        """A hash of all that it holds."""
        digest = hashlib.sha256()
        update_digest(digest, self.lexicon, self.offsets, self.word_ids, self.counts)
        return digest.hexdigest()

    def totals(self) -> tuple[Ints, Ints]:
        """Return of each word, ``(V,) int64``, how often it was typed and how many hold it."""
        size = len(self.lexicon)
        # Sums of float64 are exact below 2**53 contributions.
        typed = np.bincount(self.word_ids, weights=self.counts, minlength=size)
        return typed.astype(np.int64), np.bincount(self.word_ids, minlength=size)

    def rows(self, places: Ints) -> tuple[Ints, SmallInts, SmallInts]:
        """Return the offsets, word ids and counts of clients at some places."""
        starts, ends = self.offsets[places], self.offsets[places + 1]
        sizes = ends - starts
        offsets = np.r_[0, np.cumsum(sizes)]
        if (starts[1:] == ends[:-1]).all():
            # Clients that follow each other are read where they lie.
            rows: Any = slice(int(starts[0]), int(ends[-1])) if len(starts) else slice(0, 0)
        else:
            rows = np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])
        return offsets, self.word_ids[rows], self.counts[rows]


@dataclass(frozen=True, kw_only=True)
class Removed:
    """What a list of known words took from a population.

    Attributes:
        known: Name of the list.
        tokens: Typed words, each as often as it was typed.
        words: Distinct words.
    """

    known: str
    tokens: int
    words: int


@dataclass(kw_only=True, eq=False)
class Texts:
    """What of the texts that clients were read from is a word, and what is none.

    Attributes:
        number: How many texts there were; 0 for counted words.
        empty: Texts without a word.
        kept: Words, each as often as it was typed.
        dropped: How often what is no word was dropped, see `fedhh.clients.reading.tokens.tokenize`.
    """

    number: int = 0
    empty: int = 0
    kept: int = 0
    dropped: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __reduce__(self) -> tuple[Any, ...]:
        # Only who reads a file looks at them: whoever answers needs none.
        return Texts, ()

    @property
    def reasons(self) -> Counter[str]:
        """How often something was dropped, by the reason."""
        reasons: Counter[str] = Counter()
        for (reason, _), times in self.dropped.items():
            reasons[reason] += times
        return reasons

    def add(self, more: Texts) -> None:
        """Add what other texts are."""
        self.number += more.number
        self.empty += more.empty
        self.kept += more.kept
        self.dropped.update(more.dropped)


class Clients(Population):
    """Clients who follow each other in a table, and some of its words.

    Attributes:
        table: What this is a view of.
        drawn_from: Of how many users of a file the clients are a sample; None if they are all.
        removed: The known words that were left out; None if no list was asked.
        texts: What the texts of the whole file were, if it had some.
    """

    drawn_from: int | None = None
    removed: Removed | None = None
    texts: Texts = Texts()
    _first = 0
    _kept: Bools | None = None

    def __init__(
        self, table: Table, *, name: str, unit: str = "user", arrangement: Arrangement = "any"
    ) -> None:
        """Take all clients of a table.

        Raises:
            InputError: There is no client.
        """
        self.table, self._size = table, len(table.offsets) - 1
        if self._size < 1:
            raise InputError(f"Expected at least one client, got an empty population ({name}).")
        self.name, self.unit, self.arrangement = name, unit, arrangement

    @classmethod
    def from_rows(
        cls,
        *,
        name: str,
        lexicon: Lexicon,
        clients: Ints,
        word_ids: Ints,
        counts: Ints | None = None,
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
        keys = clients * num_words + word_ids
        pairs, places = np.unique(keys, return_inverse=True)
        totals = np.bincount(places, weights=counts, minlength=len(pairs)).astype(np.int64)
        if totals.max(initial=0) > _LARGEST_COUNT:
            raise InputError(
                f"Expected a client's counts of a word to sum to at most {_LARGEST_COUNT}, got "
                f"{totals.max()} in {name}."
            )
        sizes = np.bincount(pairs // num_words, minlength=num_clients)
        return cls(
            Table(
                lexicon,
                np.r_[0, np.cumsum(sizes)],
                (pairs % num_words).astype(np.int32),
                totals.astype(np.int32),
            ),
            name=name,
            unit=unit,
        )

    def __getstate__(self) -> dict[str, Any]:
        # Whoever answers makes them of what it maps.
        left_out = ("lexicon", "_number")
        return {k: v for k, v in super().__getstate__().items() if k not in left_out}

    @property
    def num_clients(self) -> int:
        return self._size

    @cached_property
    def lexicon(self) -> Lexicon:
        """The distinct words."""
        whole = self.table.lexicon
        return whole if self._kept is None else whole.only(self._kept)

    @cached_property
    def _number(self) -> SmallInts:
        """Of each word of the table the number among the kept ones, or -1."""
        assert self._kept is not None
        return np.where(self._kept, np.cumsum(self._kept) - 1, -1).astype(np.int32)

    @property
    def items(self) -> ClientBlock:
        """All clients, in order."""
        return self.block(np.arange(self.num_clients))

    def block(self, clients: Ints) -> ClientBlock:
        places = clients
        if self._first:
            places = (self._first + clients) % (len(self.table.offsets) - 1)
        offsets, word_ids, counts = self.table.rows(places)
        if self._kept is not None:
            word_ids = self._number[word_ids]
            is_kept = word_ids >= 0
            offsets = np.r_[0, np.cumsum(is_kept)][offsets]
            word_ids, counts = word_ids[is_kept], counts[is_kept]
        return ClientBlock(clients=clients, offsets=offsets, word_ids=word_ids, counts=counts)

    def _count(self, progress: CountProgress | None) -> WordCounts:
        if self._size < len(self.table.offsets) - 1:
            return count_words(self, progress)
        typed, holders = self.table.totals()
        if self._kept is not None:
            typed, holders = typed[self._kept], holders[self._kept]
        return WordCounts(typed=typed, holders=holders, num_counted=self._size)

    def fingerprint(self) -> str:
        view = repr((self.name, self.table.digest, self._first, self._size)).encode()
        kept = b"" if self._kept is None else np.packbits(self._kept).tobytes()
        return hashlib.sha256(view + kept).hexdigest()

    def keep_words(self, keep: Bools) -> Clients:
        """Return the clients with only some words; clients stay, even with nothing left.

        Args:
            keep: ``(V,) bool``; kept words are renumbered in order.
        """
        kept = keep
        if self._kept is not None:
            kept = self._kept.copy()
            kept[self._kept] = keep
        return self._view(_kept=kept)

    def sample_clients(self, size: int, *, rng: np.random.Generator) -> Clients:
        """Return a sample of the clients, without replacement, in their order, and their words.

        It is clients that follow each other from a random place on, the first after the last: a
        random sample, unless somebody gave the order in which they are stored. A smaller sample
        with the same generator is part of a larger one.

        Args:
            size: How many clients, from 1 to all.
            rng: Source of the draw.

        Raises:
            InputError: There are not so many clients, or their order may not be a random one.
        """
        if not 1 <= size <= self.num_clients:
            raise InputError(
                f"Expected 1 <= population.clients <= {self.num_clients:,}, the {self.unit}s of "
                f"{self.name}, got population.clients={size:,}."
            )
        if size == self.num_clients:
            return self
        if self.arrangement == "any":
            raise InputError(
                f"Expected clients in a random order to draw a sample of, got the arrangement "
                f"{self.arrangement!r} of {self.name}; shuffle them, and say so."
            )
        sample = self._view(
            # What begins a sample is one of them all, too.
            _first=self._first if self.drawn_from else int(rng.integers(self.num_clients)),
            _size=size,
            name=f"{self.name}, a random {size:,} of {self.num_clients:,} {self.unit}s",
            drawn_from=self.num_clients,
        )
        return sample.keep_words(sample.word_counts().holders > 0)

    def _view(self, **changes: Any) -> Clients:
        """Return a view of the same table; of one in memory, with its rows copied.

        The first client of the table follows its last. Otherwise than copied, every block would pay
        again for the rows that are left out.
        """
        view = copy(self)
        view.__dict__.update(changes)
        if not self.table.is_mapped:
            items = view.items
            view.table = Table(
                view.lexicon, items.offsets, items.word_ids.copy(), items.counts.copy()
            )
            view._first, view._kept = 0, None
        return view
