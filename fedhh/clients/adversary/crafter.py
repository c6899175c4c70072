"""What makes up the answers of fake clients to one question."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal

import numpy as np

from fedhh.clients.answers.base import BlockCounts
from fedhh.clients.answers.matching import Values, WordMatcher
from fedhh.clients.answers.registry import make_answerer
from fedhh.clients.populations.population import ClientBlock
from fedhh.oracles.base import Tally
from fedhh.questions.base import Messages, Question

Goal = Literal["promote", "demote"]

_NOT_THE_FIRST_BLOCK = 1
"""The first block may bring what is no client's, such as the noise of servers."""


class Crafter(ABC):
    """Makes up what fake clients send in answer to one question.

    Fake clients do as they like within what the protocol checks; a kind of question says what that is.
    Each sends as many reports as an honest client that fills up to B. What their reports support
    follows from targets and question alone; the rest is drawn at random.

    Args:
        question: The broadcast.
        words: Finds target words; its lexicon has no others.
    """

    def __init__(self, question: Question, words: WordMatcher) -> None:
        self._question = question
        self._words = words

    @abstractmethod
    def add(
        self,
        targets: Sequence[int],
        num_clients: int,
        *,
        goal: Goal,
        rng: np.random.Generator,
        tally: Tally,
    ) -> BlockCounts:
        """Add what fake clients send to support or oppose words, as strongly as checks allow.

        Where none of the words has a value in the question, reports of local randomizers are random.

        Args:
            targets: Words, as numbers in the lexicon.
            num_clients: Fake clients.
            goal: "promote" supports the words, "demote" opposes them.
            rng: Source of the attacker's coins.
            tally: ``(question.tally_size,) int64``, changed in place.
        """

    @abstractmethod
    def add_random_reports(
        self, num_clients: int, *, rng: np.random.Generator, tally: Tally
    ) -> BlockCounts:
        """Add reports that are uniform over the report space; arguments as for `add`."""

    @abstractmethod
    def add_random_values(
        self, num_clients: int, *, rng: np.random.Generator, tally: Tally
    ) -> BlockCounts:
        """Add what the honest randomizer makes of uniform values; arguments as for `add`."""

    @property
    def _reports_per_client(self) -> int:
        return self._question.max_items

    def _counts(
        self, num_clients: int, *, holders: int | None = None, messages: Messages | None = None
    ) -> BlockCounts:
        """Return what all of some fake clients sent; all seem to hold something unless told."""
        return BlockCounts(
            num_reports=num_clients * self._reports_per_client,
            num_dummies=0,
            num_clients_with_items=num_clients if holders is None else holders,
            messages=messages,
        )


def no_words(num_clients: int) -> ClientBlock:
    """Return clients that hold no words."""
    return holding(np.zeros((num_clients, 0), dtype=np.int64))


def holding(words: Values) -> ClientBlock:
    """Return clients that hold the words of a row each, once: ``(n, k)`` numbers of the lexicon."""
    num_clients, each = words.shape
    return ClientBlock(
        clients=np.arange(num_clients, dtype=np.int64),
        offsets=np.arange(num_clients + 1, dtype=np.int64) * each,
        word_ids=words.ravel().astype(np.int32),
        counts=np.ones(words.size, dtype=np.int32),
    )


def in_turn(words: Values, num_clients: int, each: int) -> Values:
    """Return ``(n, k) int64``: k words for each client, or all there are, words taking turns."""
    taken = min(each, len(words))
    places = np.arange(num_clients * taken).reshape(num_clients, taken)
    return np.asarray(words[places % max(len(words), 1)])


def answer_as_honest(
    question: Question,
    words: WordMatcher,
    rows: ClientBlock,
    *,
    rng: np.random.Generator,
    tally: Tally,
) -> BlockCounts:
    """Add what honest clients with these words send; arguments as for `Crafter.add`."""
    answerer = make_answerer(question, words, int(rng.integers(2**63)))
    return answerer.add_block(rows, _NOT_THE_FIRST_BLOCK, tally)
