"""How clients answer each kind of question: the functions that the trust boundary runs through.

An answerer is made once per question and worker; it maps the population's distinct words to values,
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
from fedhh.clients.answers.joint import JointAnswerer, JointQuestion
from fedhh.clients.answers.matching import WordMatcher
from fedhh.clients.answers.prefixes import PrefixAnswerer, WordVoteAnswerer
from fedhh.clients.answers.sampling import NoiseFreeQuestion
from fedhh.clients.answers.sums import SecretSharedAnswerer, SecureSumAnswerer
from fedhh.questions.base import PrefixQuestion, Question, WordVoteQuestion
from fedhh.questions.blooms import BloomQuestion, NgramQuestion
from fedhh.questions.plain_words import PlainWordsQuestion
from fedhh.questions.sets import PaddedSampleQuestion, SetSizeQuestion
from fedhh.questions.sketches import BlindPrefixQuestion, FragmentQuestion
from fedhh.questions.sums import SecretSharedQuestion, SecureSumQuestion

ANSWERERS: dict[type[Question], Any] = {
    PrefixQuestion: PrefixAnswerer,
    WordVoteQuestion: WordVoteAnswerer,
    SecureSumQuestion: SecureSumAnswerer,
    SecretSharedQuestion: SecretSharedAnswerer,
    PlainWordsQuestion: PlainWordsAnswerer,
    FragmentQuestion: FragmentAnswerer,
    BlindPrefixQuestion: BlindPrefixAnswerer,
    BloomQuestion: BloomAnswerer,
    NgramQuestion: NgramAnswerer,
    PaddedSampleQuestion: PaddedSampleAnswerer,
    SetSizeQuestion: SetSizeAnswerer,
}
"""Which answerer serves which kind of question; a new kind is one more entry."""


def make_answerer(question: Question, words: WordMatcher, seed: int) -> Answerer:
    """Return the answerer of a question.

    Raises:
        TypeError: No answerer is registered for this kind of question.
    """
    if isinstance(question, JointQuestion):
        return JointAnswerer(question, [make_answerer(q, words, seed) for q in question.questions])
    if isinstance(question, NoiseFreeQuestion):
        counting: Answerer = ANSWERERS[type(question.question)](
            question.question, words, seed, noise_free=True
        )
        return counting
    if type(question) not in ANSWERERS:
        known = ", ".join(kind.__name__ for kind in ANSWERERS)
        raise TypeError(
            f"Clients cannot answer a {type(question).__name__}; register it in "
            f"fedhh.clients.answers.registry.ANSWERERS. Known: {known}."
        )
    answerer: Answerer = ANSWERERS[type(question)](question, words, seed)
    return answerer
