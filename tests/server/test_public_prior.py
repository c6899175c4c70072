"""Symbols of public words, counted and smoothed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from fedhh.server.adaptive import public_prior
from fedhh.server.adaptive.public_prior import PublicPrior
from fedhh.words.alphabet import END, Alphabet

AB = Alphabet.named("ab")
A, B = 1, 2
NONE = 3
"""The number that stands for what is before a word, with two letters and the end symbol."""

WORDS = ["aba", "a", "b", "abc"]
"""The last has a symbol that the alphabet lacks, and is left out."""


def table(prior, length):
    """The counts after contexts of a length, by context and symbol."""
    return {
        (int(context), symbol): int(count)
        for context, row in zip(prior.contexts[length], prior.counts[length], strict=True)
        for symbol, count in enumerate(row)
        if count
    }


def test_counts_are_those_by_hand():
    prior = PublicPrior.counted(WORDS, AB, context=3)
    assert table(prior, 0) == {(0, A): 3, (0, B): 2, (0, END): 3}
    assert table(prior, 1) == {
        (NONE, A): 2, (NONE, B): 1, (A, B): 1, (A, END): 2, (B, A): 1, (B, END): 1,
    }  # fmt: skip
    assert table(prior, 3) == {
        (63, A): 2,
        (63, B): 1,
        (16 * NONE + 4 * NONE + A, B): 1,
        (16 * NONE + 4 * NONE + A, END): 1,
        (16 * NONE + 4 * NONE + B, END): 1,
        (16 * NONE + 4 * A + B, A): 1,
        (16 * A + 4 * B + A, END): 1,
    }


def test_a_law_is_smoothed_by_shorter_and_shorter_contexts():
    # Of the eight symbols of "aba", "a" and "b" with their ends, 3 are a, 2 b and 3 ends.
    of_all = np.array([3 + 1, 3 + 1, 2 + 1]) / (8 + 3)
    after_a = (np.array([2, 0, 1]) + 5 * of_all) / (3 + 5)
    after_b = (np.array([1, 1, 0]) + 5 * of_all) / (2 + 5)
    after_ba = (np.array([1, 0, 0]) + 5 * after_a) / (1 + 5)
    after_aba = (np.array([1, 0, 0]) + 5 * after_ba) / (1 + 5)
    for context, spelled, law in (
        (0, [B, A], of_all),
        (1, [B, A], after_a),
        (2, [B, A], after_ba),
        (2, [B, B], after_b),  # never seen: what one symbol says
        (3, [A, B, A], after_aba),
        (3, [B, B, A], after_ba),  # likewise
        (4, [B, A, B, A], after_aba),
    ):
        prior = PublicPrior.counted(WORDS, AB, context=context)
        np.testing.assert_allclose(
            prior.law(np.array([spelled, spelled], dtype=np.uint16)), [law, law], rtol=1e-12
        )


@pytest.mark.parametrize("context", [0, 2, 4])
def test_no_public_word_says_nothing(context):
    law = PublicPrior.counted([], AB, context=context).law(np.array([[A, B, A]], dtype=np.uint16))
    np.testing.assert_allclose(law, 1 / 3)


def test_large_tables_get_shorter_contexts(monkeypatch):
    monkeypatch.setattr(public_prior, "_LARGEST_TABLE", 9)
    prior = PublicPrior.counted(WORDS, AB, context=4)
    assert [len(each) for each in prior.contexts] == [1, 3]
    monkeypatch.setattr(public_prior, "_LARGEST_NUMBER", 3)
    assert len(PublicPrior.counted(WORDS, AB, context=4).contexts) == 1
