"""Answers to queries for words as Bloom filters of the whole and of two n-grams."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedhh.clients.answers.base import Answerer, BlockCounts, Values, WordValues
from fedhh.clients.answers.blind import FragmentTable, chosen_strings, padded_strings
from fedhh.clients.answers.matching import WordMatcher
from fedhh.clients.populations.population import ClientBlock
from fedhh.clients.populations.strings import coded_words
from fedhh.queries.ngrams import NgramQuery
from fedhh.random import Stream, generator
from fedhh.words.trie import Codes


class NgramAnswerer(Answerer):
    """Reports whole strings and pairs of their n-grams: Fanti et al. (2016), section 4."""

    def __init__(self, query: NgramQuery, words: WordMatcher, seed: int) -> None:
        self._query = query
        self._seed = seed
        codes, keys = self._strings(words.lexicon.words)
        self._keys = WordValues.of(keys)
        self._table = FragmentTable(query.puzzle, codes, keys)

    def add_block(self, rows: ClientBlock, block: int, tally: Values) -> BlockCounts:
        query = self._query
        codes, coded_keys = self._strings(coded_words(rows.coded))
        chosen, counts = chosen_strings(query, rows, block, self._keys, coded_keys, seed=self._seed)
        rng = generator(self._seed, Stream.RANDOMIZER, query.pass_index, query.layer, block)
        held = chosen >= 0
        reported = rng.integers(query.puzzle.names.num_keys, size=len(chosen))
        reported[held] = chosen[held]
        pairs = rng.integers(len(query.pairs), size=len(chosen))
        texts = rng.integers(query.puzzle.num_texts, size=(2, len(chosen)))
        positions = np.ascontiguousarray(query.pairs[pairs].T)
        for table in (self._table, FragmentTable(query.puzzle, codes, coded_keys)):
            for side in range(2):
                table.fill(chosen, positions[side], texts[side])

        words, tables = query.split(tally)
        query.words.add_reports(reported, rng=rng, out=words)
        filters = query.ngrams.filters
        cohorts = rng.integers(filters.num_cohorts, size=len(chosen))
        first, second = (
            self._patterns(cohorts, query.ngram_keys(positions[side], texts[side]), rng)
            for side in range(2)
        )
        np.add.at(tables, (pairs, cohorts, first, second), 1)
        return counts

    def _patterns(self, cohorts: Values, keys: Values, rng: np.random.Generator) -> Values:
        """Return ``(n,) int64``: the noisy filters of n-grams, bit i as 2**i."""
        reports = self._query.ngrams
        bits = reports.response.answer(reports.filters.filters(cohorts, keys), rng=rng)
        return np.asarray(bits @ (1 << np.arange(reports.filters.num_bits, dtype=np.int64)))

    def _strings(self, words: Sequence[str]) -> tuple[Codes, Values]:
        return padded_strings(self._query.alphabet, self._query.puzzle, words)
