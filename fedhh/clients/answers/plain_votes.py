"""Answers to queries for plain votes: one word per client, and no noise."""

from __future__ import annotations

import numpy as np

from fedhh.clients.answers.base import Answerer, BlockCounts, Values
from fedhh.clients.answers.coded_words import CodedMatcher
from fedhh.clients.answers.matching import WordMatcher
from fedhh.clients.populations.population import ClientBlock
from fedhh.queries.base import WordVoteQuery
from fedhh.random import Stream, generator


class WordVoteAnswerer(Answerer):
    """Votes for the prefix of one word: Zhu et al. (2020), Algorithm 1, for several words each."""

    def __init__(self, query: WordVoteQuery, words: WordMatcher, seed: int) -> None:
        self._query = query
        self._seed = seed
        self._word_values = words.prefix_values(query)
        self._coded = CodedMatcher(query)

    def add_block(self, rows: ClientBlock, block: int, tally: Values) -> BlockCounts:
        query = self._query
        rng = generator(self._seed, Stream.SAMPLING, query.pass_index, query.layer, block)
        words = draw_words(rows, rng)
        words = words[words >= 0]
        listed = words < len(self._word_values)
        beyond = rows.coded[words[~listed] - len(self._word_values)]
        values = np.concatenate([self._word_values[words[listed]], self._coded.values(beyond)])
        votes = values[values >= 0]
        tally += np.bincount(votes, minlength=len(tally))
        abstained = len(rows.clients) - len(votes)
        tally[query.dummy] += abstained
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
