"""What questions are answered from: clients with their words, what these say, and whose coins."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from fedhh.arrays import Ints, SmallInts
from fedhh.questions.matching import WordMatcher
from fedhh.questions.question import Messages
from fedhh.random import Stream, generator
from fedhh.words.trie import Codes

Values = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class ClientBlock:
    """Some clients and their items, as compressed sparse rows.

    Attributes:
        clients: ``(n,) int64`` client numbers.
        offsets: ``(n + 1,) int64``; client i's items are ``offsets[i] : offsets[i + 1]``.
        word_ids: ``(items,) int32`` into the population's lexicon, distinct within a client.
        counts: ``(items,) int32``, at least 1: how often the client typed the word.
    """

    clients: Ints
    offsets: Ints
    word_ids: SmallInts
    counts: SmallInts

    @classmethod
    def holding(cls, words: Values) -> Self:
        """Return clients that hold the words of a row each, once: ``(n, k)`` word ids."""
        num_clients, each = words.shape
        return cls(
            clients=np.arange(num_clients, dtype=np.int64),
            offsets=np.arange(num_clients + 1, dtype=np.int64) * each,
            word_ids=words.ravel().astype(np.int32),
            counts=np.ones(words.size, dtype=np.int32),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Known:
    """The values that some distinct words have in a question.

    Attributes:
        words: The words, V of them.
        values: ``(V,) int64``, -1 for none.
        codes: ``(V, width) uint16``: the string that each is reported as; None where no string is.
    """

    words: WordMatcher
    values: Values
    codes: Codes | None = None

    @cached_property
    def live(self) -> npt.NDArray[np.uint8]:
        """``(ceil(V / 8),) uint8``: whether each word has a value, lowest bit first; not empty."""
        live = np.packbits(self.values >= 0, bitorder="little")
        return live if len(live) else np.zeros(1, dtype=np.uint8)

    def of(self, words: Values) -> Values:
        """Return the values that some of the words have."""
        values = self.values[words]
        return np.asarray(values[values >= 0])


@dataclass(frozen=True, kw_only=True, eq=False)
class Held:
    """A block of clients, and the values that their words have in a question.

    Attributes:
        rows: The clients.
        known: The population's words.
    """

    rows: ClientBlock
    known: Known


@dataclass(frozen=True, kw_only=True, eq=False)
class Said:
    """What the clients of a block say, before any randomizer.

    Attributes:
        values: ``(n, k) int64``: of each client, -1 where it has nothing to say.
        sizes: ``(n,) int64``: how many of a client's values say something.
        holders: Clients that held at least one value.
    """

    values: Values
    sizes: Values
    holders: int

    def contributions(self, pad: bool) -> Values:
        """Return ``(n,) int64``: what is sent; padded, -1 for each with nothing to say."""
        return self.values.ravel() if pad else np.asarray(self.values[self.values >= 0])


@dataclass(frozen=True, kw_only=True)
class Sent:
    """What was sent by some clients.

    Attributes:
        num_clients: Clients whose answer arrives.
        num_reports: Reports, dummies included.
        num_dummies: Reports that say nothing.
        num_clients_with_items: Clients that held at least one value.
        messages: The reports themselves, first axis one per report, if the question asks for them.
    """

    num_clients: int
    num_reports: int
    num_dummies: int
    num_clients_with_items: int
    messages: Messages | None = None

    @classmethod
    def of(cls, said: Said, num_reports: int, messages: Messages | None = None) -> Self:
        """Return so many reports of what clients say; the rest are dummies."""
        return cls(
            num_clients=len(said.sizes),
            num_reports=num_reports,
            num_dummies=num_reports - int(said.sizes.sum()),
            num_clients_with_items=said.holders,
            messages=messages,
        )


@dataclass(frozen=True, kw_only=True)
class Coins:
    """The randomness of a block of clients in a round, addressed by what it is for.

    Attributes:
        seed: Of the run.
        pass_index: Which pass, from 0.
        layer: Which round of it.
        block: Which block.
    """

    seed: int
    pass_index: int
    layer: int
    block: int

    def rng(self, stream: Stream) -> np.random.Generator:
        """Return the block's own generator."""
        return generator(self.seed, stream, self.pass_index, self.layer, self.block)

    @property
    def randomizer(self) -> np.random.Generator:
        """The block's generator for what is reported."""
        return self.rng(Stream.RANDOMIZER)

    def of_round(self, stream: Stream) -> np.random.Generator:
        """Return the generator that all blocks of the round share."""
        return generator(self.seed, stream, self.pass_index, self.layer)

    def at(self, layer: int | None) -> Coins:
        """Return the block's coins in another layer; the same ones if None."""
        return self if layer is None else replace(self, layer=layer)
