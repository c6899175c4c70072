"""A small question of each kind, about words over six letters."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from fedhh.oracles import OracleSpec
from fedhh.oracles.bloom_filters import BitResponse, BloomFilters, BloomReports
from fedhh.questions.base import PrefixQuestion, Question, WordVoteQuestion
from fedhh.questions.blooms import BloomQuestion, NgramQuestion
from fedhh.questions.cohort import Cohort
from fedhh.questions.noise_shares import DiscreteLaplace
from fedhh.questions.plain_words import PlainWordsQuestion
from fedhh.questions.sets import PaddedSampleQuestion, SetSizeQuestion, singletons
from fedhh.questions.sketches import BlindPrefixQuestion, FragmentQuestion
from fedhh.questions.sums import SecretSharedQuestion, SecureSumQuestion
from fedhh.words.alphabet import Alphabet
from fedhh.words.puzzle import FragmentPuzzle
from fedhh.words.trie import PrefixTrie

ALPHABET = Alphabet(symbols="abcdef")
LONGEST = 6

_SHARED: dict[str, Any] = {
    "pass_index": 0,
    "layer": 1,
    "cohort": Cohort(start=0, size=500),
    "alphabet": ALPHABET,
    "max_items": 3,
}
_ITEMS = {**_SHARED, "sampler": "random"}
_PREFIXES = {
    **_ITEMS,
    "trie": PrefixTrie.all_of_length_one(ALPHABET.size),
    "finished": np.zeros((0, LONGEST + 1), dtype=np.uint16),
    "excluded": np.zeros((0, LONGEST + 1), dtype=np.uint16),
    "oracle": OracleSpec(name="none", epsilon=math.inf),
}
_SKETCH = OracleSpec(name="cms", epsilon=4.0, params={"num_hashes": 8, "num_cells": 64})
_PUZZLE = FragmentPuzzle(
    alphabet_size=ALPHABET.size, length=LONGEST, fragment_length=2, num_puzzles=4, hash_seed=1
)
_SET = {
    **_SHARED,
    "words": ALPHABET.encode(["abc", "abd", "fee", "dada"], width=LONGEST + 1),
    "itemsets": singletons(4),
    "epsilon": 2.0,
    "oracle_name": "oue",
}


def bloom_reports(bits: int, hashes: int, cohorts: int, epsilon: float) -> BloomReports:
    """Return reports of filters of this size."""
    return BloomReports(
        filters=BloomFilters(num_bits=bits, num_hashes=hashes, num_cohorts=cohorts, hash_seed=3),
        response=BitResponse.of_one_report(epsilon, num_hashes=hashes),
    )


QUERIES: dict[type[Question], Question] = {
    each.__class__: each
    for each in (
        PrefixQuestion(**{**_PREFIXES, "oracle": OracleSpec(name="ss", epsilon=2.0)}),
        WordVoteQuestion(**_PREFIXES),
        SecureSumQuestion(**_PREFIXES, noise=DiscreteLaplace(std=4.0), modulus=1 << 20),
        SecretSharedQuestion(**_PREFIXES, noise=DiscreteLaplace(std=4.0)),
        PlainWordsQuestion(**_ITEMS, longest_word=LONGEST, hash_seed=1),
        FragmentQuestion(
            **_ITEMS,
            puzzle=_PUZZLE,
            word_oracle=_SKETCH,
            fragment_oracle=OracleSpec(name="oue", epsilon=2.0),
        ),
        BlindPrefixQuestion(
            **_ITEMS, prefix_length=3, longest_word=LONGEST, oracle=_SKETCH, hash_seed=1
        ),
        BloomQuestion(
            **_ITEMS,
            longest_word=LONGEST,
            reports=bloom_reports(bits=32, hashes=2, cohorts=4, epsilon=2.0),
            name_seed=2,
        ),
        NgramQuestion(
            **_ITEMS,
            puzzle=replace(_PUZZLE, num_puzzles=1),
            words=bloom_reports(bits=32, hashes=2, cohorts=4, epsilon=2.0),
            ngrams=bloom_reports(bits=4, hashes=1, cohorts=3, epsilon=2.0),
        ),
        PaddedSampleQuestion(**_SET, padded_size=3),
        SetSizeQuestion(**_SET),
    )
}
"""By kind."""


def question_of(kind: type[Question], **changes: object) -> Any:
    """Return the question of a kind, with some of its fields changed."""
    return replace(QUERIES[kind], **changes)
