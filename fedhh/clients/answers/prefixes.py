"""Votes for prefixes: B randomized ones of each client, or one plain vote."""

from __future__ import annotations

import numpy as np

from fedhh.clients.answers.base import BlockCounts, ItemAnswerer, WordValues
from fedhh.clients.answers.matching import CodedMatcher, Values, WordMatcher
from fedhh.clients.populations.population import ClientBlock
from fedhh.kernels.sampling import choose_contributions, count_contributions
from fedhh.oracles import make_oracle
from fedhh.oracles.base import add_support
from fedhh.questions.base import PrefixQuestion
from fedhh.random import Stream


class PrefixAnswerer(ItemAnswerer):
    """Votes for prefixes: Gboard paper, Algorithm 2, lines 10-18."""

    _question: PrefixQuestion

    def __init__(
        self, question: PrefixQuestion, words: WordMatcher, seed: int, *, noise_free: bool = False
    ) -> None:
        super().__init__(question, words, seed, noise_free=noise_free)
        self._oracle = make_oracle(question.oracle, question.domain_size)
        self._votes = question.client_votes
        self._word_values = WordValues.of(words.prefix_values(question))
        self._coded = CodedMatcher(question)

    def add_block(self, rows: ClientBlock, block: int, tally: Values) -> BlockCounts:
        question = self._question
        coded = self._coded.values(rows.coded)
        choices = self.choices(rows, block, self._word_values, coded)
        if self._noise_free:
            sampled, holders = map(int, count_contributions(*choices, tally))
            dummies = len(rows.clients) * question.max_items - sampled if question.pad else 0
            tally[question.dummy] += dummies
            return BlockCounts(
                num_reports=sampled + dummies,
                num_dummies=dummies,
                num_clients_with_items=holders,
            )
        chosen, sizes = choose_contributions(*choices)
        if question.pad:
            chosen[chosen < 0] = question.dummy
        if self._votes is not None:
            self._votes.add(chosen, rng=self._rng(Stream.RANDOMIZER, block), out=tally)
            return BlockCounts.of(sizes, chosen.size)
        values = chosen[chosen >= 0]
        add_support(self._oracle, values, rng=self._rng(Stream.RANDOMIZER, block), out=tally)
        return BlockCounts.of(sizes, len(values))


class WordVoteAnswerer(PrefixAnswerer):
    """Votes for the prefix of one word: Zhu et al. (2020), Algorithm 1, for several words each."""

    def add_block(self, rows: ClientBlock, block: int, tally: Values) -> BlockCounts:
        words = draw_words(rows, self._rng(Stream.SAMPLING, block))
        words = words[words >= 0]
        lexicon = self._word_values.values
        listed = words < len(lexicon)
        beyond = rows.coded[words[~listed] - len(lexicon)]
        values = np.concatenate([lexicon[words[listed]], self._coded.values(beyond)])
        votes = values[values >= 0]
        tally += np.bincount(votes, minlength=len(tally))
        abstained = len(rows.clients) - len(votes)
        tally[self._question.dummy] += abstained
        return BlockCounts(
            num_reports=len(rows.clients),
            num_dummies=abstained,
            num_clients_with_items=len(votes),
        )


def draw_words(rows: ClientBlock, rng: np.random.Generator) -> Values:
    """Return ``(n,) int64``: one word of each client, drawn by its counts; -1 if it has none."""
    totals = np.concatenate([[0], np.cumsum(rows.counts, dtype=np.int64)])
    first, last = totals[rows.offsets[:-1]], totals[rows.offsets[1:]]
    words = np.full(len(rows.clients), -1, dtype=np.int64)
    holders = np.flatnonzero(last > first)
    typed = rng.integers(first[holders], last[holders])
    # Occurrence number t belongs to the row whose counts reach beyond it.
    words[holders] = rows.word_ids[np.searchsorted(totals, typed, side="right") - 1]
    return words
