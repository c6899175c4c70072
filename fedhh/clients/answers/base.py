"""What answers a query for blocks of clients, and how a client chooses its contributions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedhh.clients.populations.population import ClientBlock
from fedhh.kernels.sampling import choose_contributions
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


def contributions(
    query: Query,
    rows: ClientBlock,
    block: int,
    word_values: Values,
    *,
    seed: int,
    coded_values: Values | None = None,
) -> tuple[Values, Values]:
    """Return each client's sampled values, at most B.

    Args:
        query: The broadcast.
        rows: A block's clients and their items.
        block: Its number.
        word_values: ``(V,) int64``: the value of each word of the lexicon, -1 for none.
        seed: The run's seed.
        coded_values: Those of the block's coded words.

    Returns:
        ``(n, B) int64``, -1 where a client has fewer than B values; and ``(n,) int64``, how many
        it has.

    Raises:
        InputError: The block has coded words, and the caller has no values for them.
    """
    if coded_values is None:
        if len(rows.coded):
            raise InputError(
                f"Clients cannot answer a {type(query).__name__} from a population that is drawn "
                "again when asked; set population.virtual = false, and use fewer clients."
            )
        coded_values = np.zeros(0, dtype=np.int64)
    address = (query.pass_index, query.layer)
    tie_key = generator(seed, Stream.TIE_BREAK, *address).integers(0, 2**64, dtype=np.uint64)
    chosen: Values
    sizes: Values
    chosen, sizes = choose_contributions(
        rows.clients,
        rows.offsets,
        rows.word_ids,
        rows.counts,
        word_values,
        coded_values,
        query.max_items,
        query.sampler == "greedy",
        tie_key,
        kernel_state(generator(seed, Stream.SAMPLING, *address, block)),
    )
    return chosen, sizes
