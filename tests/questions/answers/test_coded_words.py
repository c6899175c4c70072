"""Candidate values of words that no lexicon holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedhh.questions.coded import CodedMatcher
from fedhh.questions.names import TrieNames
from fedhh.words.alphabet import Alphabet
from fedhh.words.coded_words import coded_words
from fedhh.words.trie import PrefixTrie

LOWER = Alphabet.named("lower")
WIDTH = 12


def names_of(words: list[str]) -> TrieNames:
    return TrieNames(
        trie=PrefixTrie(alphabet_size=LOWER.size, levels=(np.zeros(0, dtype=np.int64),)),
        finished=LOWER.encode(words, width=WIDTH),
        excluded=np.zeros((0, WIDTH), dtype=np.uint16),
    )


def values(names: TrieNames, numbers: np.ndarray) -> np.ndarray:
    return CodedMatcher(names, LOWER).values(numbers)


def test_finished_words_are_found_among_coded_ones_and_no_others():
    rng = np.random.default_rng(3)
    numbers = rng.choice(5_000_000, size=300, replace=False)
    asked = ["brb", *coded_words(numbers[:100]), "afk", *coded_words(numbers[100:200])]
    order = rng.permutation(len(asked))
    asked = [asked[i] for i in order.tolist()]
    held = rng.permutation(np.repeat(numbers, 2))
    expected = [asked.index(word) if word in asked else -1 for word in coded_words(held)]
    names = names_of(asked)
    assert names.num_extensions == 0
    assert values(names, held).tolist() == expected
    assert expected.count(-1) == 200

    left_out = replace(names, excluded=LOWER.encode(coded_words(numbers[:1]), width=WIDTH))
    found = values(left_out, held)
    assert (found[held == numbers[0]] == -1).all()
    assert (found == -1).sum() == 202


def test_without_coded_words_there_is_nothing_to_find():
    assert values(names_of(["brb"]), np.zeros(0, dtype=np.int64)).tolist() == []
    assert values(names_of(["brb"]), np.arange(3)).tolist() == [-1] * 3
