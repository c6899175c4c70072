"""Contributions that nobody randomizes: plain votes and plain words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedhh.questions.channel import Channel, in_turn
from fedhh.questions.choice import Attack
from fedhh.questions.clients import Coins, Known, Said, Sent, Values
from fedhh.questions.names import StringNames
from fedhh.questions.question import Aggregate, Messages, Question, Tally, merge_messages
from fedhh.questions.reports import Reports
from fedhh.words.trie import Codes


@dataclass(frozen=True, kw_only=True, eq=False)
class PlainVotes(Reports):
    """One plain vote of each client, without a randomizer: whoever sums up is trusted.

    A client with nothing to say abstains, which counts as a vote for the last value.
    """

    @property
    def can_sample(self) -> bool:
        """Nothing of a vote is noise."""
        return False

    def craft(self, attack: Attack) -> Sent:
        """Add one vote a client, which whoever sums up checks: a target's candidate, in turn.

        Against a word, and for targets without a candidate, it abstains: nothing takes votes away.
        """
        if not attack.sign:
            votes = attack.rng.integers(self.num_values, size=attack.num_clients)
        else:
            values, sign = attack.question.choice.wanted(attack)
            values = np.unique(values)
            if sign < 0 or not len(values):
                values = np.array([self.nothing])
            votes = in_turn(values, attack.num_clients, 1).ravel()
        np.add.at(attack.tally, votes, 1)
        return attack.sent()


@dataclass(frozen=True, kw_only=True, eq=False)
class PlainWords(Channel):
    """Words as they are, for a curator whom these clients trust: Avent et al. (2017).

    The answer's messages are histograms, ``(rows, length + 1) int64``: a word's codes, filled up
    with the end symbol, and how many clients contributed it. Several rows may be about one word.
    The tally is empty.

    Attributes:
        num_keys: Strings, by their keys: which of them anybody holds is not known.
        by_size: Whether a row is also about a number of words: before how many clients contributed
            the word stands how many words each of these contributed. Needs ``pad``.
        inclusion: Probability that a client sends a word that it chose, each independently.
    """

    num_keys: int
    by_size: bool = False
    inclusion: float = 1.0

    @property
    def tally_size(self) -> int:
        return 0

    @property
    def domain_size(self) -> int:
        return self.num_keys

    def report_bits(self, question: Question) -> float:
        size = math.log2(question.max_items + 1) if self.by_size else 0.0
        return float(question.names.length * math.log2(question.alphabet.size) + size)

    def message_size(self, names: StringNames) -> int:
        """Return the numbers of a row of the messages."""
        return names.length + 1 + self.by_size

    def table(self, question: Question, known: Known) -> tuple[Values, Codes]:
        """Return the words' keys, ascending, and how each is spelled."""
        assert known.codes is not None
        usable = np.flatnonzero(known.values >= 0)
        keys, first = np.unique(known.values[usable], return_index=True)
        return keys, known.codes[usable[first]]

    def add(self, question: Question, said: Said, table: Any, coins: Coins, tally: Tally) -> Sent:
        keys, rng = said.contributions(question.pad), coins.randomizer
        most = question.max_items
        sent = keys >= 0
        sizes = sent.reshape(-1, most).sum(axis=1) if self.by_size else np.zeros(0)
        if self.inclusion < 1:
            sent &= rng.random(len(keys)) < self.inclusion
        words, which = np.unique(keys[sent], return_inverse=True)
        groups = which.ravel()
        if self.by_size:
            groups = groups * (most + 1) + np.repeat(sizes, most)[sent]
        kinds, counts = np.unique(groups, return_counts=True)
        rows = np.zeros((len(kinds), self.message_size(question.names)), dtype=np.int64)
        rows[:, -1] = counts
        if self.by_size:
            kinds, rows[:, -2] = np.divmod(kinds, most + 1)
        known, codes = table
        rows[:, : question.names.length] = codes[np.searchsorted(known, words[kinds])]
        return Sent.of(said, len(keys), rows)

    def merged(self, question: Question, messages: Sequence[Messages | None]) -> Messages | None:
        together = merge_messages(messages)
        return None if together is None else self.one_row_each(question.names, together)

    def rows(self, question: Question, aggregate: Aggregate) -> Messages:
        """Return the answers' messages, see `one_row_each`.

        Raises:
            ValueError: They are not there, or of another length.
        """
        size, messages = self.message_size(question.names), aggregate.messages
        if messages is None or messages.shape[1:] != (size,):
            got = None if messages is None else messages.shape[1:]
            raise ValueError(f"Expected messages of {size} numbers, got {got}.")
        return self.one_row_each(question.names, messages)

    def one_row_each(self, names: StringNames, messages: Messages) -> Messages:
        """Return messages with one row for each word, and each number of words where rows say it.

        Args:
            names: Of the words.
            messages: ``(rows, message_size) int64``, in any order.

        Returns:
            Rows by the keys of words, then by the number of words.
        """
        keys = names.keys_of(messages[:, : names.length].astype(np.uint16))
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

    def craft(self, attack: Attack) -> Sent:
        """Add targets, in turn, at most B of each client, which is all that the aggregator checks.

        A client that is to leave words out by chance leaves none out. Against a word it sends
        nothing: no word takes votes away. At random, it sends B uniform words.
        """
        if not attack.sign:
            return self._send_random(attack)
        kept = replace(attack.question, channel=replace(self, inclusion=1.0))
        return super().craft(replace(attack, question=kept))

    def targets_of_a_fake(self, question: Question) -> int:
        # Where a client's words share its weight, one target alone has the largest weight.
        return 1 if self.by_size else question.max_items

    def _send_random(self, attack: Attack) -> Sent:
        names, symbols = attack.question.names, attack.question.alphabet.size
        rng, sent = attack.rng, attack.count
        messages = np.zeros((sent, self.message_size(names)), dtype=np.int64)
        lengths = np.arange(1, names.length + 1)
        # There are so many words of a length, over those of the greatest.
        weights = float(symbols - 1) ** (lengths - names.length)
        drawn = rng.choice(lengths, size=sent, p=weights / weights.sum())
        codes = rng.integers(1, symbols, size=(sent, names.length))
        inside = np.arange(names.length) < drawn[:, None]
        messages[:, : names.length] = np.where(inside, codes, 0)
        messages[:, -1] = 1
        if self.by_size:
            messages[:, -2] = attack.each
        return attack.sent(messages=messages)
