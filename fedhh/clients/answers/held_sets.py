"""Answers about the set of candidates that a client holds: one report each.

Source: Wang, Li, Jha (2018), "Locally differentially private frequent itemset mining", IEEE S&P.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from fedhh.clients.answers.base import Answerer, BlockCounts
from fedhh.clients.answers.matching import Values, WordMatcher
from fedhh.clients.populations.coded_words import coded_words
from fedhh.clients.populations.population import ClientBlock
from fedhh.questions.sets import HeldSetQuestion, PaddedSampleQuestion, SetSizeQuestion
from fedhh.random import Stream
from fedhh.words.rows import match_rows


class HeldSetAnswerer(Answerer):
    """Finds the candidates that clients hold, and reports one value about them."""

    _question: HeldSetQuestion

    def __init__(
        self, question: HeldSetQuestion, words: WordMatcher, seed: int, *, noise_free: bool = False
    ) -> None:
        super().__init__(question, words, seed, noise_free=noise_free)
        width = question.words.shape[1]
        self._places = match_rows(words.lexicon.encoded(question.alphabet, width), question.words)

    def add_block(self, rows: ClientBlock, block: int, tally: Values) -> BlockCounts:
        question = self._question
        owners, candidates = self._held(rows)
        sizes = np.bincount(owners, minlength=len(rows.clients))
        values = self._values(candidates, sizes, self._rng(Stream.SAMPLING, block))
        self._add(question.randomizer, values, self._rng(Stream.RANDOMIZER, block), tally)
        return BlockCounts(
            num_reports=len(values),
            num_dummies=self._num_dummies(values),
            num_clients_with_items=int(np.count_nonzero(sizes)),
        )

    @abstractmethod
    def _values(self, candidates: Values, sizes: Values, rng: np.random.Generator) -> Values:
        """Return the value that each client reports.

        Args:
            candidates: Those of all clients, one client after the other.
            sizes: ``(n,) int64``: how many each client has.
            rng: Source of the clients' choices.
        """

    @abstractmethod
    def _num_dummies(self, values: Values) -> int:
        """Return how many of these values say nothing."""

    def _held(self, rows: ClientBlock) -> tuple[Values, Values]:
        """Return pairs (client, candidate) as ``(h,) int64`` each, by client."""
        question = self._question
        coded = question.alphabet.encode(coded_words(rows.coded), width=question.words.shape[1])
        places = np.concatenate([self._places, match_rows(coded, question.words)])[rows.word_ids]
        owners = np.repeat(np.arange(len(rows.clients)), np.diff(rows.offsets))
        held = places >= 0
        if question.itemsets.shape[1] == 1:
            candidate_of = np.full(len(question.words), -1, dtype=np.int64)
            candidate_of[question.itemsets[:, 0]] = np.arange(question.num_candidates)
            candidates = np.where(held, candidate_of[places], -1)
            return owners[candidates >= 0], candidates[candidates >= 0]
        has = np.zeros((len(rows.clients), len(question.words) + 1), dtype=np.bool_)
        has[owners[held], places[held]] = True
        # The last column stands for no word, which everybody has.
        has[:, -1] = True
        whole = np.logical_and.reduce(has[:, question.itemsets], axis=2)
        pairs = np.nonzero(whole)
        return pairs[0], pairs[1]


class PaddedSampleAnswerer(HeldSetAnswerer):
    """Pads a client's candidates to L with dummies, and reports one that is drawn uniformly."""

    _question: PaddedSampleQuestion

    def _values(self, candidates: Values, sizes: Values, rng: np.random.Generator) -> Values:
        drawn = rng.integers(np.maximum(sizes, self._question.padded_size))
        starts = np.cumsum(sizes) - sizes
        # Behind a client's h candidates come its dummies, the first L - h of them.
        values = self._question.num_candidates + drawn - sizes
        real = drawn < sizes
        values[real] = candidates[(starts + drawn)[real]]
        return np.asarray(values, dtype=np.int64)

    def _num_dummies(self, values: Values) -> int:
        return int(np.count_nonzero(values >= self._question.num_candidates))


class SetSizeAnswerer(HeldSetAnswerer):
    """Reports how many candidates a client holds."""

    _question: SetSizeQuestion

    def _values(self, candidates: Values, sizes: Values, rng: np.random.Generator) -> Values:
        return np.minimum(sizes, self._question.largest_size)

    def _num_dummies(self, values: Values) -> int:
        return 0
