"""A question for plain words: for a curator whom those clients trust that it asks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedhh.hashing import StringKeys
from fedhh.questions.base import SEED_BITS, ItemQuestion, Messages
from fedhh.words.trie import Codes


@dataclass(frozen=True, kw_only=True, eq=False)
class PlainWordsQuestion(ItemQuestion):
    """Asks each client for up to B of its words, as they are.

    Nothing is randomized: it is for clients who trust whoever counts. The answer's messages are
    histograms, ``(rows, longest_word + 1) int64``: a word's codes, filled up with the end symbol,
    and how many clients contributed it. Several rows may be about one word. A word longer than
    ``longest_word``, or with a foreign symbol, takes no part. The tally is empty.

    Attributes:
        longest_word: Symbols of the longest word that takes part.
        hash_seed: Seed of the names of words, by which a client chooses among equals.
        excluded: ``(x, longest_word) uint16``: codes of words that clients leave out; None for
            none.
        by_size: Whether a row is also about a number of words: before how many clients contributed
            the word stands how many words each of these contributed. Needs ``pad``.
        inclusion: Probability that a client sends a word that it chose, each independently.
    """

    longest_word: int
    hash_seed: int
    excluded: Codes | None = None
    by_size: bool = False
    inclusion: float = 1.0

    def __post_init__(self) -> None:
        if self.by_size and not self.pad:
            raise ValueError("Expected pad=True with by_size=True, got pad=False.")

    @cached_property
    def names(self) -> StringKeys:
        """Names of words."""
        return StringKeys.draw(
            alphabet_size=self.alphabet.size, length=self.longest_word, seed=self.hash_seed
        )

    @property
    def num_candidates(self) -> int:
        """All strings, by their names: which of them anybody holds is not known."""
        return self.names.num_keys

    @property
    def domain_size(self) -> int:
        return self.num_candidates

    @property
    def download_bits(self) -> float:
        words = 0 if self.excluded is None else len(self.excluded)
        return SEED_BITS + words * self.longest_word * math.log2(self.alphabet.size)

    @property
    def report_bits(self) -> float:
        size = math.log2(self.max_items + 1) if self.by_size else 0.0
        return self.longest_word * math.log2(self.alphabet.size) + size

    @property
    def message_size(self) -> int:
        """Numbers of a row of the messages."""
        return self.longest_word + 1 + self.by_size

    def merged(self, messages: Messages) -> Messages:
        """Return messages with one row for each word, and each number of words where rows say it.

        Args:
            messages: ``(rows, message_size) int64``, in any order.

        Returns:
            Rows by the names of words, then by the number of words.
        """
        keys = self.names.keys(messages[:, : self.longest_word].astype(np.uint16))
        if self.by_size:
            order = np.lexsort((messages[:, -2], keys))
            differs = (np.diff(keys[order]) != 0) | (np.diff(messages[order, -2]) != 0)
        else:
            order = np.argsort(keys, kind="stable")
            differs = np.diff(keys[order]) != 0
        first = np.flatnonzero(np.concatenate([np.ones(min(len(keys), 1), dtype=bool), differs]))
        rows = messages[order[first]]
        if len(rows):
            rows[:, -1] = np.add.reduceat(messages[order, -1], first)
        return rows

    @property
    def tally_size(self) -> int:
        return 0
