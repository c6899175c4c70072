"""Answers to queries for plain words: each block's histogram of what its clients contribute."""

from __future__ import annotations

import numpy as np

from fedhh.clients.answers.base import Answerer, BlockCounts, Values, WordValues, contributions
from fedhh.clients.answers.matching import WordMatcher
from fedhh.clients.populations.population import ClientBlock
from fedhh.clients.populations.strings import coded_words
from fedhh.queries.plain_words import PlainWordsQuery
from fedhh.words.lexicon import Lexicon
from fedhh.words.trie import Codes


class PlainWordsAnswerer(Answerer):
    """Sends words as they are, for a curator whom these clients trust: Avent et al. (2017)."""

    def __init__(self, query: PlainWordsQuery, words: WordMatcher, seed: int) -> None:
        self._query = query
        self._seed = seed
        codes, keys = self._named(words.lexicon)
        self._word_keys = WordValues.of(keys)
        self._known = _Names(codes, keys)

    def add_block(self, rows: ClientBlock, block: int, tally: Values) -> BlockCounts:
        query = self._query
        codes, coded_keys = self._named(Lexicon(words=coded_words(rows.coded)))
        chosen, sizes = contributions(
            query, rows, block, self._word_keys, seed=self._seed, coded_values=coded_keys
        )
        keys, counts = np.unique(chosen[chosen >= 0], return_counts=True)
        histogram = np.zeros((len(keys), query.longest_word + 1), dtype=np.int64)
        histogram[:, -1] = counts
        for names in (self._known, _Names(codes, coded_keys)):
            names.fill(keys, histogram[:, :-1])
        num_reports = chosen.size if query.pad else int(sizes.sum())
        return BlockCounts(
            num_reports=num_reports,
            num_dummies=num_reports - int(sizes.sum()),
            num_clients_with_items=int(np.count_nonzero(sizes)),
            messages=histogram,
        )

    def _named(self, lexicon: Lexicon) -> tuple[Codes, Values]:
        query = self._query
        codes = query.alphabet.encode(lexicon.words, width=query.longest_word)
        usable = lexicon.reachable(query.alphabet, query.longest_word)
        return codes, np.where(usable, query.names.keys(codes), -1)


class _Names:
    """Words, found by their keys."""

    def __init__(self, codes: Codes, keys: Values) -> None:
        usable = np.flatnonzero(keys >= 0)
        self._keys, first = np.unique(keys[usable], return_index=True)
        self._codes = codes[usable[first]]

    def fill(self, keys: Values, out: Values) -> None:
        """Write the codes of those keys that are known to the rows of ``out``."""
        if len(self._keys):
            places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
            known = self._keys[places] == keys
            out[known] = self._codes[places[known]]
