"""Contexts and mixtures of distributions by hand, and what a wrong prior loses."""

from __future__ import annotations

import numpy as np
import pytest

from fedhh.server.adaptive import character_model
from fedhh.server.adaptive.character_model import (
    CharacterModel,
    PublicPrior,
    context_length,
    contexts,
)
from fedhh.words.alphabet import END, Alphabet
from fedhh.words.known_words import SCOWL70, named_list

AB = Alphabet.named("ab")
A, B = 1, 2
NONE = 3
"""The number that stands for what is before a word, with two letters and the end symbol."""


def number(*symbols):
    """The number of a context of two symbols."""
    first, second = symbols
    return 4 * first + second


def public_distribution(words, numbers):
    """What public words say after prefixes of two symbols, by number."""
    prefixes = np.stack([numbers // 4, numbers % 4], axis=1).astype(np.uint16)
    return PublicPrior.counted(words, AB, context=2).distribution(prefixes)


def test_the_number_of_a_context_is_that_of_its_last_two_symbols():
    assert context_length(AB.size) == 2
    spelled = np.array([[A, B, A], [B, B, B], [A, A, B]], dtype=np.uint16)
    assert contexts(spelled, AB.size).tolist() == [number(B, A), number(B, B), number(A, B)]
    assert contexts(spelled[:, :1], AB.size).tolist() == [
        number(NONE, A), number(NONE, B), number(NONE, A),
    ]  # fmt: skip
    assert contexts(spelled[:, :0], AB.size).tolist() == [number(NONE, NONE)] * 3


def test_large_alphabets_get_short_contexts():
    assert [context_length(size) for size in (3, 27, 96, 157, 158, 1_999, 2_000, 60_000)] == [
        2, 2, 2, 2, 1, 1, 0, 0,
    ]  # fmt: skip
    spelled = np.array([[5, 9], [9, 5]], dtype=np.uint16)
    assert contexts(spelled, 500).tolist() == [9, 5]
    assert contexts(spelled, 60_000).tolist() == [0, 0]
    assert CharacterModel.new(60_000, has_public=False).learned.shape == (1, 60_000)


def test_what_is_learned_is_counted_where_it_was_seen():
    model = CharacterModel.new(3, has_public=False)
    held = np.array([[0.1, 0.7, 0.2], [0.0, 0.5, 0.5]])
    numbers = np.array([number(A, B), number(A, B)])
    after = model.after(numbers, model.distributions(numbers, None), held)
    expected = np.zeros((16, 3))
    expected[number(A, B)] = [0.1, 1.2, 0.7]
    np.testing.assert_allclose(after.learned, expected)
    assert not model.learned.any()


def test_the_learned_distribution_is_smoothed_by_shorter_contexts_by_hand():
    counts = np.zeros((16, 3))
    counts[number(A, B)] = [0, 8, 2]
    counts[number(B, B)] = [0, 0, 10]
    model = CharacterModel(learned=counts, weights=np.array([0.5, 0.0, 0.5]))
    numbers = np.array([number(A, B), number(NONE, B), number(B, A)])
    learned = model.distributions(numbers, None)[2]
    # 20 symbols in all, and one more of each; then 20 after B, none after A; then 10 after AB.
    anywhere = np.array([1, 9, 13]) / 23
    after_b = (np.array([0, 8, 12]) + 20 * anywhere) / 40
    after_ab = (np.array([0, 8, 2]) + 20 * after_b) / 30
    np.testing.assert_allclose(learned, [after_ab, after_b, anywhere], rtol=1e-12)


@pytest.mark.parametrize(
    ("has_public", "weights"), [(True, [0.1, 0.8, 0.1]), (False, [0.9, 0, 0.1])]
)
def test_without_public_words_these_have_no_weight_and_get_none(has_public, weights):
    model = CharacterModel.new(3, has_public=has_public)
    np.testing.assert_allclose(model.weights, weights)
    numbers = np.arange(16)
    distributions = model.distributions(
        numbers, public_distribution(["ab"], numbers) if has_public else None
    )
    after = model.after(numbers, distributions, np.full((16, 3), 0.3))
    assert after.weights.sum() == pytest.approx(1)
    assert ((after.weights > 0) == (np.array(weights) > 0)).all()
    assert model.after(numbers, distributions, np.zeros((16, 3))) is model


def test_a_step_of_expectation_maximisation_by_hand():
    model = CharacterModel.new(3, has_public=True)
    numbers = np.array([number(NONE, NONE)])
    distributions = model.distributions(numbers, public_distribution(["aba", "a", "b"], numbers))
    mixed = model.mixed(distributions)[0]
    # Nothing is learned yet, so that the third is uniform, too.
    uniform, public, learned = (each[0] for each in distributions)
    np.testing.assert_allclose(learned, uniform)
    np.testing.assert_allclose(mixed, uniform / 5 + public * 4 / 5)
    held = np.array([[0.2, 0.9, 0.4]])
    of_uniform = sum(held[0, s] / 10 * uniform[s] / mixed[s] for s in range(3))
    of_public = sum(held[0, s] * 4 / 5 * public[s] / mixed[s] for s in range(3))
    assert 2 * of_uniform + of_public == pytest.approx(1.5)
    after = model.after(numbers, distributions, held).weights
    np.testing.assert_allclose(after, np.array([of_uniform, of_public, of_uniform]) / 1.5)


def weights_after_layers(words, public, layers=6):
    """The weights after so many layers of which exactly the words' prefixes live."""
    alphabet = Alphabet.named("lower")
    model = CharacterModel.new(alphabet.size, has_public=True)
    codes = alphabet.encode(sorted(words), width=layers + 1)
    for length in range(1, layers + 1):
        alive = codes[(codes[:, :length] != END).all(axis=1)]
        prefixes, which = np.unique(alive[:, :length], axis=0, return_inverse=True)
        held = np.zeros((len(prefixes), alphabet.size))
        held[which.reshape(-1), alive[:, length]] = 1
        numbers = contexts(prefixes, alphabet.size)
        model = model.after(
            numbers, model.distributions(numbers, public.distribution(prefixes)), held
        )
        assert model.weights.sum() == pytest.approx(1)
    return model.weights


@pytest.mark.slow("::test_a_step_of_expectation_maximisation_by_hand")
def test_the_right_public_model_keeps_its_weight_and_a_wrong_one_loses_it():
    rng = np.random.default_rng(0)
    words = [word for word in named_list(SCOWL70).words if word.isalpha() and len(word) > 4]
    some = rng.choice(np.array(sorted(words)), size=2_000, replace=False).tolist()
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    exchanged = dict(zip(letters, rng.permutation(letters), strict=True))
    random = ["".join(rng.choice(letters, size=7)) for _ in some]
    public = PublicPrior.counted(named_list(SCOWL70).words, Alphabet.named("lower"), context=2)
    kept = weights_after_layers(some, public)
    assert kept[1] > 0.8
    other = ["".join(exchanged[c] for c in word) for word in some]
    assert weights_after_layers(other, public)[1] < 0.4
    lost = weights_after_layers(random, public)
    assert lost[1] < 0.1
    # No part is ever ruled out.
    assert lost[1] >= 0.02 / 1.02
    assert kept[0] >= 0.02 / 1.04


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


def test_a_distribution_is_smoothed_by_shorter_and_shorter_contexts():
    # Of the eight symbols of "aba", "a" and "b" with their ends, 3 are a, 2 b and 3 ends.
    of_all = np.array([3 + 1, 3 + 1, 2 + 1]) / (8 + 3)
    after_a = (np.array([2, 0, 1]) + 5 * of_all) / (3 + 5)
    after_b = (np.array([1, 1, 0]) + 5 * of_all) / (2 + 5)
    after_ba = (np.array([1, 0, 0]) + 5 * after_a) / (1 + 5)
    after_aba = (np.array([1, 0, 0]) + 5 * after_ba) / (1 + 5)
    for context, spelled, distribution in (
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
            prior.distribution(np.array([spelled, spelled], dtype=np.uint16)),
            [distribution, distribution],
            rtol=1e-12,
        )


@pytest.mark.parametrize("context", [0, 2, 4])
def test_no_public_word_says_nothing(context):
    distribution = PublicPrior.counted([], AB, context=context).distribution(
        np.array([[A, B, A]], dtype=np.uint16)
    )
    np.testing.assert_allclose(distribution, 1 / 3)


@pytest.mark.parametrize(("length", "counted"), [(24, 25), (25, 25), (26, 25)])
def test_no_more_than_25_symbols_of_a_word_are_counted_its_end_included(length, counted):
    assert PublicPrior.counted(["a" * length], AB, context=0).counts[0].sum() == counted


def test_large_tables_get_shorter_contexts(monkeypatch):
    monkeypatch.setattr(character_model, "_LARGEST_PUBLIC_TABLE", 9)
    prior = PublicPrior.counted(WORDS, AB, context=4)
    assert [len(each) for each in prior.contexts] == [1, 3]
    monkeypatch.setattr(character_model, "_LARGEST_NUMBER", 3)
    assert len(PublicPrior.counted(WORDS, AB, context=4).contexts) == 1
