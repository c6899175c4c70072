"""Fake answers to questions for plain votes and words: what is checked decides what a fake adds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fedhh.clients.adversary.crafted_reports import live_values
from fedhh.clients.adversary.crafter import (
    Crafter,
    Goal,
    answer_as_honest,
    holding,
    in_turn,
)
from fedhh.clients.answers.base import BlockCounts
from fedhh.clients.answers.matching import Values, WordMatcher
from fedhh.oracles.base import Tally
from fedhh.oracles.crafted_reports import random_subsets
from fedhh.plans.noisy_sums import WRAP_CHANCE
from fedhh.questions.base import WordVoteQuestion
from fedhh.questions.plain_words import PlainWordsQuestion
from fedhh.questions.sums import SecretSharedQuestion, SecureSumQuestion


class WordVoteCrafter(Crafter):
    """One plain vote a client, which whoever sums up checks: a target's candidate, in turn.

    Against a word, and for targets without a candidate, it abstains: nothing takes votes away.
    """

    _question: WordVoteQuestion

    def add(
        self,
        targets: Sequence[int],
        num_clients: int,
        *,
        goal: Goal,
        rng: np.random.Generator,
        tally: Tally,
    ) -> BlockCounts:
        values = np.unique(live_values(self._words.prefix_values(self._question), targets))
        if goal == "demote" or not len(values):
            values = np.array([self._question.dummy])
        return self._vote(in_turn(values, num_clients, 1).ravel(), tally)

    def add_random_reports(
        self, num_clients: int, *, rng: np.random.Generator, tally: Tally
    ) -> BlockCounts:
        return self._vote(rng.integers(self._question.domain_size, size=num_clients), tally)

    def add_random_values(
        self, num_clients: int, *, rng: np.random.Generator, tally: Tally
    ) -> BlockCounts:
        return self.add_random_reports(num_clients, rng=rng, tally=tally)

    def _vote(self, votes: Values, tally: Tally) -> BlockCounts:
        tally += np.bincount(votes, minlength=len(tally))
        abstained = int(np.count_nonzero(votes == self._question.dummy))
        return BlockCounts(
            num_reports=len(votes),
            num_dummies=abstained,
            num_clients_with_items=len(votes) - abstained,
        )


class SecureSumCrafter(Crafter):
    """A vector in a secure sum modulo M, of which nothing is checked: any numbers.

    The attacker's clients agree on what they add in all, so that no sum wraps around, but for a
    chance of `WRAP_CHANCE`. With noise below T then, and votes of at most n clients, each target's
    sum has room for M / 2 - 1 - n - T more; a fake's own vote is among the n. To demote a target,
    they subtract M / 2 - T, also from several at a time. So one fake client decides a sum.

    They add no share of the noise: it would help nobody but honest clients.
    """

    _question: SecureSumQuestion

    def __init__(self, question: SecureSumQuestion, words: WordMatcher) -> None:
        super().__init__(question, words)
        self._is_filled = np.zeros(question.num_candidates, dtype=np.bool_)

    @cached_property
    def _noise_at_most(self) -> int:
        """T."""
        sums = max(self._question.num_candidates, 1)
        return self._question.noise.reach(math.log(WRAP_CHANCE / 2 / sums))

    def room(self, goal: Goal) -> int:
        """Return what all fake clients together may add to a sum, or take from it."""
        half = self._question.modulus // 2
        if goal == "demote":
            return max(0, half - self._noise_at_most)
        return max(0, half - 1 - self._question.cohort.size - self._noise_at_most)

    def add(
        self,
        targets: Sequence[int],
        num_clients: int,
        *,
        goal: Goal,
        rng: np.random.Generator,
        tally: Tally,
    ) -> BlockCounts:
        values = np.unique(live_values(self._words.prefix_values(self._question), targets))
        if num_clients:
            fresh = values[~self._is_filled[values]]
            tally[fresh] += self.room(goal) if goal == "promote" else -self.room(goal)
            self._is_filled[fresh] = True
        if goal == "promote":
            tally[values] += num_clients
        return self._counts(num_clients, holders=num_clients if len(values) else 0)

    def add_random_reports(
        self, num_clients: int, *, rng: np.random.Generator, tally: Tally
    ) -> BlockCounts:
        """Add vectors that are uniform modulo M: no sum says anything then."""
        if num_clients:
            # The sum of uniform vectors is uniform. Modulo M, it does not outgrow 64 bits.
            sums = tally[: self._question.num_candidates]
            sums += rng.integers(self._question.modulus, size=len(sums))
            sums %= self._question.modulus
        return self._counts(num_clients, holders=0)

    def add_random_values(
        self, num_clients: int, *, rng: np.random.Generator, tally: Tally
    ) -> BlockCounts:
        """Add votes for B uniform candidates, all different, and shares of the noise."""
        sums = tally[: self._question.num_candidates]
        each = min(self._question.max_items, len(sums))
        votes = random_subsets(len(sums), each, num_clients, rng=rng)
        sums += np.bincount(votes.ravel(), minlength=len(sums))
        if num_clients:
            sums += self._question.noise.draw(self._question.part(num_clients), len(sums), rng=rng)
        return self._counts(num_clients, holders=0)


class SecretSharedCrafter(Crafter):
    """Uploads in two secret shares, which servers check to be one string each: targets, in turn.

    A client uploads B of them, or all if they are fewer, before the first layer. Against a word it
    uploads nothing: no upload takes votes away.
    """

    _question: SecretSharedQuestion

    def add(
        self,
        targets: Sequence[int],
        num_clients: int,
        *,
        goal: Goal,
        rng: np.random.Generator,
        tally: Tally,
    ) -> BlockCounts:
        question = self._question
        usable = self._words.lexicon.reachable(question.alphabet, question.excluded.shape[1] - 1)
        words = usable_targets(usable, targets, goal)
        rows = holding(in_turn(words, num_clients, question.max_items))
        return answer_as_honest(question, self._words, rows, rng=rng, tally=tally)

    def add_random_reports(
        self, num_clients: int, *, rng: np.random.Generator, tally: Tally
    ) -> BlockCounts:
        """Add uploads of strings whose symbols are all uniform, the end among them.

        A candidate of i symbols, the end included, gets each with a chance of A**-i.
        """
        question = self._question
        lengths = np.full(question.num_candidates, question.trie.length + 1)
        lengths[question.num_extensions :] = (question.finished != 0).sum(axis=1) + 1
        chances = float(question.alphabet.size) ** -lengths
        uploads = rng.multinomial(
            num_clients * question.max_items, [*chances, max(0.0, 1 - chances.sum())]
        )
        tally[: question.num_candidates] += uploads[:-1]
        return self._counts(num_clients, holders=0)

    def add_random_values(
        self, num_clients: int, *, rng: np.random.Generator, tally: Tally
    ) -> BlockCounts:
        return self.add_random_reports(num_clients, rng=rng, tally=tally)


class PlainWordsCrafter(Crafter):
    """Plain words for a trusted aggregator, which checks that they are at most B: targets, in turn.

    Where a client's words share its weight, each client sends one target alone: that has the
    largest weight. A client that is to leave words out by chance leaves none out. Against a word it
    sends nothing: no word takes votes away.
    """

    _question: PlainWordsQuestion

    def add(
        self,
        targets: Sequence[int],
        num_clients: int,
        *,
        goal: Goal,
        rng: np.random.Generator,
        tally: Tally,
    ) -> BlockCounts:
        question, lexicon = self._question, self._words.lexicon
        usable = lexicon.reachable(question.alphabet, question.longest_word)
        if question.excluded is not None:
            keys = question.names.keys(lexicon.encoded(question.alphabet, question.longest_word))
            usable = usable & ~np.isin(keys, question.names.keys(question.excluded))
        words = usable_targets(usable, targets, goal)
        each = 1 if question.by_size else question.max_items
        rows = holding(in_turn(words, num_clients, each))
        return answer_as_honest(
            replace(question, inclusion=1.0), self._words, rows, rng=rng, tally=tally
        )

    def add_random_reports(
        self, num_clients: int, *, rng: np.random.Generator, tally: Tally
    ) -> BlockCounts:
        """Add B uniform words of each client."""
        question = self._question
        sent = num_clients * question.max_items
        messages = np.zeros((sent, question.message_size), dtype=np.int64)
        lengths = np.arange(1, question.longest_word + 1)
        # There are so many words of a length, over those of the greatest.
        weights = float(question.alphabet.size - 1) ** (lengths - question.longest_word)
        drawn = rng.choice(lengths, size=sent, p=weights / weights.sum())
        codes = rng.integers(1, question.alphabet.size, size=(sent, question.longest_word))
        inside = np.arange(question.longest_word) < drawn[:, None]
        messages[:, : question.longest_word] = np.where(inside, codes, 0)
        messages[:, -1] = 1
        if question.by_size:
            messages[:, -2] = question.max_items
        return self._counts(num_clients, messages=messages)

    def add_random_values(
        self, num_clients: int, *, rng: np.random.Generator, tally: Tally
    ) -> BlockCounts:
        return self.add_random_reports(num_clients, rng=rng, tally=tally)


def usable_targets(usable: npt.NDArray[np.bool_], targets: Sequence[int], goal: Goal) -> Values:
    """Return the targets that can be sent; none against a word."""
    words = np.unique(np.asarray(targets, dtype=np.int64))
    return words[usable[words]] if goal == "promote" else words[:0]
