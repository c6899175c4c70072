"""What answers a question for blocks of clients, and how a client chooses its contributions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fedhh.clients.answers.matching import Values, WordMatcher
from fedhh.clients.answers.sampling import add_noise_free_counts
from fedhh.clients.populations.population import ClientBlock
from fedhh.oracles import FrequencyOracle
from fedhh.questions.base import ItemQuestion, Messages, Question, merge_messages
from fedhh.random import Stream, generator, kernel_state


@dataclass(frozen=True, kw_only=True)
class BlockCounts:
    """What a block's answer was made of.

    Attributes:
        num_reports: Reports, dummies included.
        num_dummies: Reports of the dummy.
        num_clients_with_items: Clients that held at least one value.
        messages: The reports themselves, first axis one per report, if the question asks for them.
        num_lost: Clients that were asked and whose answer does not arrive.
    """

    num_reports: int
    num_dummies: int
    num_clients_with_items: int
    messages: Messages | None = None
    num_lost: int = 0

    @classmethod
    def of(cls, sizes: Values, num_reports: int, messages: Messages | None = None) -> Self:
        """Return the counts of clients that hold ``(n,) int64`` values; the rest are dummies."""
        return cls(
            num_reports=num_reports,
            num_dummies=num_reports - int(sizes.sum()),
            num_clients_with_items=int(np.count_nonzero(sizes)),
            messages=messages,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class WordValues:
    """The values of a lexicon's words in a question.

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


class Answerer(ABC):
    """Answers one question for blocks of clients.

    Args:
        question: The broadcast.
        words: The population's words.
        seed: The run's seed.
        noise_free: Count contributions, see `fedhh.clients.answers.sampling`; make no reports.
    """

    def __init__(
        self, question: Question, words: WordMatcher, seed: int, *, noise_free: bool = False
    ) -> None:
        self._question = question
        self._seed = seed
        self._noise_free = noise_free

    @abstractmethod
    def add_block(self, rows: ClientBlock, block: int, tally: Values) -> BlockCounts:
        """Add the block's privatized reports to the tally; raw items end here.

        Args:
            rows: The block's clients and their items.
            block: The block's number, which addresses its randomness.
            tally: ``(question.tally_size,) int64``, changed in place.
        """

    def merged(self, messages: Sequence[Messages | None]) -> Messages | None:
        """Return several blocks' messages as one array, or None if no block has any.

        Where a question counts equal messages, those of several blocks may become one.
        """
        return merge_messages(messages)

    def _rng(self, stream: Stream, block: int) -> np.random.Generator:
        return generator(self._seed, stream, self._question.pass_index, self._question.layer, block)

    def _add(
        self, oracle: FrequencyOracle, values: Values, rng: np.random.Generator, out: Values
    ) -> None:
        """Add reports of some values to an aggregate, or their noise-free counts."""
        if self._noise_free:
            add_noise_free_counts(oracle, values, rng=rng, out=out)
        else:
            oracle.aggregate(values=values, rng=rng, out=out)


class ItemAnswerer(Answerer):
    """Answers a question to which clients contribute items that they choose by themselves."""

    _question: ItemQuestion

    def choices(
        self,
        rows: ClientBlock,
        block: int,
        word_values: WordValues,
        coded_values: Values,
        *,
        layer: int | None = None,
    ) -> tuple[Any, ...]:
        """Return how clients sample at most B of their values, as the kernels take it.

        `fedhh.kernels.sampling.choose_contributions` returns the values, ``(n, B) int64``, -1 where
        a client has fewer, and ``(n,) int64``, how many it has; `count_contributions` counts them.

        Args:
            rows: A block's clients and their items.
            block: Its number.
            word_values: The value of each word of the lexicon.
            coded_values: Those of the block's coded words.
            layer: Whose randomness decides; the question's if None.
        """
        question = self._question
        path = (question.pass_index, question.layer if layer is None else layer)
        ties = generator(self._seed, Stream.TIE_BREAK, *path)
        return (
            rows.clients,
            rows.offsets,
            rows.word_ids,
            rows.counts,
            word_values.values,
            word_values.live,
            coded_values,
            question.max_items,
            question.sampler == "greedy",
            ties.integers(0, 2**64, dtype=np.uint64),
            kernel_state(generator(self._seed, Stream.SAMPLING, *path, block)),
        )
