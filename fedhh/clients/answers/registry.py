"""How clients answer each kind of query: the functions that the trust boundary runs through.

An answerer is made once per query and worker; it maps the population's distinct words to values,
and then turns blocks of clients into tallies of privatized reports.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedhh.clients.answers.base import (
    Answerer,
    BlockCounts,
    Values,
    WordValues,
    add_contributions,
    contributions,
)
from fedhh.clients.answers.blind import BlindPrefixAnswerer, BloomAnswerer, FragmentAnswerer
from fedhh.clients.answers.coded_words import CodedMatcher
from fedhh.clients.answers.held_sets import PaddedSampleAnswerer, SetSizeAnswerer
from fedhh.clients.answers.joint import JointAnswerer, JointQuery
from fedhh.clients.answers.matching import WordMatcher
from fedhh.clients.answers.ngrams import NgramAnswerer
from fedhh.clients.answers.plain_votes import WordVoteAnswerer
from fedhh.clients.answers.plain_words import PlainWordsAnswerer
from fedhh.clients.answers.sampling import NoiseFreeQuery
from fedhh.clients.populations.population import ClientBlock
from fedhh.oracles import make_oracle
from fedhh.oracles.base import add_support
from fedhh.queries.base import PrefixQuery, Query, WordVoteQuery
from fedhh.queries.blooms import BloomQuery
from fedhh.queries.ngrams import NgramQuery
from fedhh.queries.plain_words import PlainWordsQuery
from fedhh.queries.sets import PaddedSampleQuery, SetSizeQuery
from fedhh.queries.sketches import BlindPrefixQuery, FragmentQuery
from fedhh.random import Stream, generator


class PrefixAnswerer(Answerer):
    """Votes for prefixes: Gboard paper, Algorithm 2, lines 10-18."""

    def __init__(
        self, query: PrefixQuery, words: WordMatcher, seed: int, *, noise_free: bool = False
    ) -> None:
        """Find every distinct word's candidate value, once.

        Args:
            query: The broadcast.
            words: The population's words.
            seed: The run's seed.
            noise_free: Count contributions, see `fedhh.clients.answers.sampling`; make no reports.
        """
        self._query = query
        self._seed = seed
        self._noise_free = noise_free
        self._oracle = make_oracle(query.oracle, query.domain_size)
        self._word_values = WordValues.of(words.prefix_values(query))
        self._coded = CodedMatcher(query)

    def add_block(self, rows: ClientBlock, block: int, tally: Values) -> BlockCounts:
        query = self._query
        coded = self._coded.values(rows.coded)
        if self._noise_free:
            sampled, holders = add_contributions(
                query, rows, block, self._word_values, tally, seed=self._seed, coded_values=coded
            )
            dummies = len(rows.clients) * query.max_items - sampled if query.pad else 0
            tally[query.dummy] += dummies
            return BlockCounts(
                num_reports=sampled + dummies,
                num_dummies=dummies,
                num_clients_with_items=holders,
            )
        chosen, sizes = contributions(
            query, rows, block, self._word_values, seed=self._seed, coded_values=coded
        )
        if query.pad:
            chosen[chosen < 0] = query.dummy
            values = chosen.ravel()
        else:
            values = chosen[chosen >= 0]
        rng = generator(self._seed, Stream.RANDOMIZER, query.pass_index, query.layer, block)
        add_support(self._oracle, values, rng=rng, out=tally)
        return BlockCounts(
            num_reports=len(values),
            num_dummies=int(len(values) - sizes.sum()),
            num_clients_with_items=int(np.count_nonzero(sizes)),
        )


ANSWERERS: dict[type[Query], Any] = {
    PrefixQuery: PrefixAnswerer,
    WordVoteQuery: WordVoteAnswerer,
    PlainWordsQuery: PlainWordsAnswerer,
    FragmentQuery: FragmentAnswerer,
    BlindPrefixQuery: BlindPrefixAnswerer,
    BloomQuery: BloomAnswerer,
    NgramQuery: NgramAnswerer,
    PaddedSampleQuery: PaddedSampleAnswerer,
    SetSizeQuery: SetSizeAnswerer,
}
"""Which answerer serves which kind of query; a new kind is one more entry."""


def make_answerer(query: Query, words: WordMatcher, seed: int) -> Answerer:
    """Return the answerer of a query.

    Raises:
        TypeError: No answerer is registered for this kind of query.
    """
    if isinstance(query, JointQuery):
        return JointAnswerer(query, [make_answerer(q, words, seed) for q in query.queries])
    if isinstance(query, NoiseFreeQuery):
        counting: Answerer = ANSWERERS[type(query.query)](query.query, words, seed, noise_free=True)
        return counting
    if type(query) not in ANSWERERS:
        known = ", ".join(kind.__name__ for kind in ANSWERERS)
        raise TypeError(
            f"Clients cannot answer a {type(query).__name__}; register it in "
            f"fedhh.clients.answers.registry.ANSWERERS. Known: {known}."
        )
    answerer: Answerer = ANSWERERS[type(query)](query, words, seed)
    return answerer
