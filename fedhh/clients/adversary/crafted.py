"""What fake clients send in answer to each kind of question, so as to support or oppose words.

A crafter is made once per question. What it makes up obeys what the protocol checks of a client's
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
from fedhh.questions.base import PrefixQuestion, Question, WordVoteQuestion
from fedhh.questions.blooms import BloomQuestion, NgramQuestion
from fedhh.questions.plain_words import PlainWordsQuestion
from fedhh.questions.sets import PaddedSampleQuestion, SetSizeQuestion
from fedhh.questions.sketches import BlindPrefixQuestion, FragmentQuestion
from fedhh.questions.sums import SecretSharedQuestion, SecureSumQuestion

__all__ = ["CRAFTERS", "Crafter", "Goal", "make_crafter"]

CRAFTERS: dict[type[Question], Any] = {
    PrefixQuestion: PrefixCrafter,
    WordVoteQuestion: WordVoteCrafter,
    SecureSumQuestion: SecureSumCrafter,
    SecretSharedQuestion: SecretSharedCrafter,
    PlainWordsQuestion: PlainWordsCrafter,
    FragmentQuestion: FragmentCrafter,
    BlindPrefixQuestion: BlindPrefixCrafter,
    BloomQuestion: BloomCrafter,
    NgramQuestion: NgramCrafter,
    PaddedSampleQuestion: PaddedSampleCrafter,
    SetSizeQuestion: SetSizeCrafter,
}
"""Which crafter serves which kind of question; a new kind is one more entry."""


def make_crafter(question: Question, words: WordMatcher) -> Crafter:
    """Return the crafter of a question.

    Args:
        question: The broadcast.
        words: Finds the target words; only these are in its lexicon.

    Raises:
        TypeError: No crafter is registered for this kind of question.
    """
    if type(question) not in CRAFTERS:
        known = ", ".join(kind.__name__ for kind in CRAFTERS)
        raise TypeError(
            f"Fake clients have no answer to a {type(question).__name__}; register it in "
            f"fedhh.clients.adversary.crafted.CRAFTERS. Known: {known}."
        )
    crafter: Crafter = CRAFTERS[type(question)](question, words)
    return crafter
