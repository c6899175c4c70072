"""Candidate values of words that no lexicon holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedhh.clients.answers.matching import CodedMatcher
from fedhh.clients.populations.coded_words import coded_words
from fedhh.oracles import OracleSpec
from fedhh.questions.base import PrefixQuestion
from fedhh.questions.cohort import Cohort
from fedhh.words.alphabet import Alphabet
from fedhh.words.trie import PrefixTrie

LOWER = Alphabet.named("lower")
WIDTH = 12


def query_about(words: list[str]) -> PrefixQuestion:
    return PrefixQuestion(
        pass_index=0,
        layer=1,
        cohort=Cohort(start=0, size=10),
        alphabet=LOWER,
        trie=PrefixTrie(alphabet_size=LOWER.size, levels=(np.zeros(0, dtype=np.int64),)),
        finished=LOWER.encode(words, width=WIDTH),
        excluded=np.zeros((0, WIDTH), dtype=np.uint16),
        oracle=OracleSpec(name="ss", epsilon=8.0),
        max_items=1,
        sampler="random",
    )


def test_finished_words_are_found_among_coded_ones_and_no_others():
    rng = np.random.default_rng(3)
    numbers = rng.choice(5_000_000, size=300, replace=False)
    asked = ["brb", *coded_words(numbers[:100]), "afk", *coded_words(numbers[100:200])]
    order = rng.permutation(len(asked))
    asked = [asked[i] for i in order.tolist()]
    held = rng.permutation(np.repeat(numbers, 2))
    expected = [asked.index(word) if word in asked else -1 for word in coded_words(held)]
    question = query_about(asked)
    assert question.num_extensions == 0
    assert CodedMatcher(question).values(held).tolist() == expected
    assert expected.count(-1) == 200

    left_out = replace(question, excluded=LOWER.encode(coded_words(numbers[:1]), width=WIDTH))
    values = CodedMatcher(left_out).values(held)
    assert (values[held == numbers[0]] == -1).all()
    assert (values == -1).sum() == 202


def test_without_coded_words_there_is_nothing_to_find():
    assert CodedMatcher(query_about(["brb"])).values(np.zeros(0, dtype=np.int64)).tolist() == []
    assert CodedMatcher(query_about(["brb"])).values(np.arange(3)).tolist() == [-1] * 3
