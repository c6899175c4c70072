"""How clients answer each kind of query: the functions that the trust boundary runs through.

An answerer is made once per query and worker; it maps the population's distinct words to values,
and then turns blocks of clients into tallies of privatized reports.
"""

from __future__ import annotations

from typing import Any

from fedhh.clients.answers.base import Answerer
from fedhh.clients.answers.blind import (
    BlindPrefixAnswerer,
    BloomAnswerer,
    FragmentAnswerer,
    NgramAnswerer,
    PlainWordsAnswerer,
)
from fedhh.clients.answers.held_sets import PaddedSampleAnswerer, SetSizeAnswerer
from fedhh.clients.answers.joint import JointAnswerer, JointQuery
from fedhh.clients.answers.matching import WordMatcher
from fedhh.clients.answers.prefixes import PrefixAnswerer, WordVoteAnswerer
from fedhh.clients.answers.sampling import NoiseFreeQuery
from fedhh.clients.answers.sums import SecretSharedAnswerer, SecureSumAnswerer
from fedhh.queries.base import PrefixQuery, Query, WordVoteQuery
from fedhh.queries.blooms import BloomQuery, NgramQuery
from fedhh.queries.plain_words import PlainWordsQuery
from fedhh.queries.sets import PaddedSampleQuery, SetSizeQuery
from fedhh.queries.sketches import BlindPrefixQuery, FragmentQuery
from fedhh.queries.sums import SecretSharedQuery, SecureSumQuery

ANSWERERS: dict[type[Query], Any] = {
    PrefixQuery: PrefixAnswerer,
    WordVoteQuery: WordVoteAnswerer,
    SecureSumQuery: SecureSumAnswerer,
    SecretSharedQuery: SecretSharedAnswerer,
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
