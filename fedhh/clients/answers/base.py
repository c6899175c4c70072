"""What answers a query for blocks of clients, and how a client chooses its contributions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fedhh.clients.populations.population import ClientBlock
from fedhh.kernels.sampling import choose_contributions, count_contributions
from fedhh.queries.base import Messages, Query
from fedhh.random import Stream, generator, kernel_state
from fedhh.validation import InputError

Values = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class BlockCounts:
    """What a block's answer was made of.

    Attributes:
        num_reports: Reports, dummies included.
        num_dummies: Reports of the dummy.
        num_clients_with_items: Clients that held at least one value.
        messages: The reports themselves, first axis one per report, if the query asks for them.
    """

    num_reports: int
    num_dummies: int
    num_clients_with_items: int
    messages: Messages | None = None


class Answerer(ABC):
    """Answers one query for blocks of clients."""

    @abstractmethod
    def add_block(self, rows: ClientBlock, block: int, tally: Values) -> BlockCounts:
        """Add the block's privatized reports to the tally; raw items end here.

        Args:
            rows: The block's clients and their items.
            block: The block's number, which addresses its randomness.
            tally: ``(query.tally_size,) int64``, changed in place.
        """


@dataclass(frozen=True, kw_only=True, eq=False)
class WordValues:
    """The values of a lexicon's words in a query.

    Attributes:
        values: ``(V,) int64``, -1 for none.
        live: ``(ceil(V / 8),) uint8``: a bit for each word, lowest first: whether it has one.
    """

    values: Values
    live: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, values: Values) -> Self:
        """Return these values with their bits; there is one byte at least."""
        live = np.packbits(values >= 0, bitorder="little")
        return cls(values=values, live=live if len(live) else np.zeros(1, dtype=np.uint8))


def contributions(
    query: Query,
    rows: ClientBlock,
    block: int,
    word_values: WordValues,
    *,
    seed: int,
    coded_values: Values | None = None,
) -> tuple[Values, Values]:
    """Return each client's sampled values, at most B.

    Args:
        query: The broadcast.
        rows: A block's clients and their items.
        block: Its number.
        word_values: The value of each word of the lexicon.
        seed: The run's seed.
        coded_values: Those of the block's coded words.

    Returns:
        ``(n, B) int64``, -1 where a client has fewer than B values; and ``(n,) int64``, how many
        it has.

    Raises:
        InputError: The block has coded words, and the caller has no values for them.
    """
    chosen: Values
    sizes: Values
    chosen, sizes = choose_contributions(
        *_choices(query, rows, block, word_values, seed=seed, coded_values=coded_values)
    )
    return chosen, sizes


def add_contributions(
    query: Query,
    rows: ClientBlock,
    block: int,
    word_values: WordValues,
    tally: Values,
    *,
    seed: int,
    coded_values: Values | None = None,
) -> tuple[int, int]:
    """Count the values that `contributions` would return, without keeping them.

    Args:
        query: As there, like all that follow.
        rows: ...
        block: ...
        word_values: ...
        tally: ``(query.tally_size,) int64``, changed in place.
        seed: ...
        coded_values: ...

    Returns:
        The number of values, and of clients that have any.

    Raises:
        InputError: As there.
    """
    sampled, holders = count_contributions(
        *_choices(query, rows, block, word_values, seed=seed, coded_values=coded_values), tally
    )
    return int(sampled), int(holders)


def _choices(
    query: Query,
    rows: ClientBlock,
    block: int,
    word_values: WordValues,
    *,
    seed: int,
    coded_values: Values | None,
) -> tuple[Any, ...]:
    if coded_values is None:
        if len(rows.coded):
            raise InputError(
                f"Clients cannot answer a {type(query).__name__} from a population that is drawn "
                "again when asked; set population.virtual = false, and use fewer clients."
            )
        coded_values = np.zeros(0, dtype=np.int64)
    address = (query.pass_index, query.layer)
    tie_key = generator(seed, Stream.TIE_BREAK, *address).integers(0, 2**64, dtype=np.uint64)
    return (
        rows.clients,
        rows.offsets,
        rows.word_ids,
        rows.counts,
        word_values.values,
        word_values.live,
        coded_values,
        query.max_items,
        query.sampler == "greedy",
        tie_key,
        kernel_state(generator(seed, Stream.SAMPLING, *address, block)),
    )
