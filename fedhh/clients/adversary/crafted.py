"""What fake clients send in answer to each kind of query, so as to support or oppose words.

A crafter is made once per query. What it makes up obeys what the protocol checks of a client's
answer, and nothing else:

* reports of local randomizers: that they are of the report space;
* a plain vote: that it is one;
* a secure sum: nothing;
* secret shares: that an upload is one string;
* plain words for a trusted aggregator: that they are at most B.
"""

from __future__ import annotations

from typing import Any

from fedhh.clients.adversary.crafted_records import BloomCrafter, FragmentCrafter, NgramCrafter
from fedhh.clients.adversary.crafted_reports import (
    BlindPrefixCrafter,
    PaddedSampleCrafter,
    PrefixCrafter,
    SetSizeCrafter,
)
from fedhh.clients.adversary.crafted_votes import (
    PlainWordsCrafter,
    SecretSharedCrafter,
    SecureSumCrafter,
    WordVoteCrafter,
)
from fedhh.clients.adversary.crafter import Crafter, Goal
from fedhh.clients.answers.matching import WordMatcher
from fedhh.queries.base import PrefixQuery, Query, WordVoteQuery
from fedhh.queries.blooms import BloomQuery, NgramQuery
from fedhh.queries.plain_words import PlainWordsQuery
from fedhh.queries.sets import PaddedSampleQuery, SetSizeQuery
from fedhh.queries.sketches import BlindPrefixQuery, FragmentQuery
from fedhh.queries.sums import SecretSharedQuery, SecureSumQuery

__all__ = ["CRAFTERS", "Crafter", "Goal", "make_crafter"]

CRAFTERS: dict[type[Query], Any] = {
    PrefixQuery: PrefixCrafter,
    WordVoteQuery: WordVoteCrafter,
    SecureSumQuery: SecureSumCrafter,
    SecretSharedQuery: SecretSharedCrafter,
    PlainWordsQuery: PlainWordsCrafter,
    FragmentQuery: FragmentCrafter,
    BlindPrefixQuery: BlindPrefixCrafter,
    BloomQuery: BloomCrafter,
    NgramQuery: NgramCrafter,
    PaddedSampleQuery: PaddedSampleCrafter,
    SetSizeQuery: SetSizeCrafter,
}
"""Which crafter serves which kind of query; a new kind is one more entry."""


def make_crafter(query: Query, words: WordMatcher) -> Crafter:
    """Return the crafter of a query.

    Args:
        query: The broadcast.
        words: Finds the target words; only these are in its lexicon.

    Raises:
        TypeError: No crafter is registered for this kind of query.
    """
    if type(query) not in CRAFTERS:
        known = ", ".join(kind.__name__ for kind in CRAFTERS)
        raise TypeError(
            f"Fake clients have no answer to a {type(query).__name__}; register it in "
            f"fedhh.clients.adversary.crafted.CRAFTERS. Known: {known}."
        )
    crafter: Crafter = CRAFTERS[type(query)](query, words)
    return crafter
