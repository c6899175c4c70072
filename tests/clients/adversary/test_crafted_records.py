"""Fake answers to questions for records and Bloom filters: each part of a target has support."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedhh.oracles import OracleSpec
from fedhh.questions.matching import WordMatcher
from fedhh.words.lexicon import Lexicon
from fedhh.words.parts import PrefixParts
from tests import questions_of_each_kind as ask
from tests.questions_of_each_kind import ALPHABET, LONGEST, Fakes

WORDS = ["abc", "acd", "feed", "xyz"]


def crafter_of(question):
    return Fakes(question, WORDS)


def padded(question, words):
    """Return the codes and keys of words as records report them."""
    known = question.names.known(WordMatcher(Lexicon(words=words)), ALPHABET)
    return known.codes, known.values


def add(question, targets, num_clients, *, goal="promote", seed=1):
    tally = np.zeros(question.tally_size, dtype=np.int64)
    rng = np.random.default_rng(seed)
    return crafter_of(question).add(targets, num_clients, goal=goal, rng=rng, tally=tally), tally


@pytest.mark.parametrize("kind", ["puzzle", "prefixes"])
def test_every_fragment_of_every_target_has_its_positions_records(kind):
    changes = {}
    if kind == "prefixes":
        parts = PrefixParts(alphabet_size=ALPHABET.size, length=LONGEST, step=2, hash_seed=1)
        sketch = OracleSpec(name="cms", epsilon=4.0, params={"num_hashes": 8, "num_cells": 64})
        changes = {"puzzle": parts, "fragment_oracle": sketch}
    question = ask.records(**changes)
    codes, keys = padded(question, WORDS)
    pieces = question.channel.puzzle.fragments(codes[:3], keys[:3])
    counts, tally = add(question, [0, 2, 3], 200)
    assert (counts.num_reports, counts.num_clients_with_items) == (600, 200)
    words, fragments, records = question.channel.split(tally)
    assert records.sum() == 600
    share = 1 / len(records)
    assert np.abs(records - 600 * share).max() < 6.2 * math.sqrt(600 * share * (1 - share))
    assert question.channel.words.support(words, keys[[0, 2]]).tolist() == [600, 600]
    for place, (sums, number) in enumerate(zip(fragments, records.tolist(), strict=True)):
        own = np.unique(pieces[[0, 2], place])
        assert question.channel.fragments.support(sums, own).tolist() == [number] * len(own)
    _, against = add(question, [0, 2, 3], 200, goal="demote")
    words, fragments, _ = question.channel.split(against)
    assert question.channel.words.support(words, keys[[0, 2]]).tolist() == [0, 0]
    for place, sums in enumerate(fragments):
        assert not question.channel.fragments.support(sums, pieces[[0, 2], place]).any()


def test_random_records_have_half_of_all_bits_and_honest_ones_fewer():
    question = ask.records(pad=False, fragment_oracle=OracleSpec(name="oue", epsilon=6.0))
    tally = np.zeros(question.tally_size, dtype=np.int64)
    rng = np.random.default_rng(1)
    counts = crafter_of(question).add_random_reports(2000, rng=rng, tally=tally)
    _, fragments, records = question.channel.split(tally)
    assert counts.num_reports == records.sum() == 6000
    oracle = question.channel.fragments
    half = 6000 * oracle.domain_size / 2
    assert abs(fragments.sum() - half) < 6.2 * math.sqrt(half)
    assert half > 12000 * (oracle.p + (oracle.domain_size - 1) * oracle.q)


def test_filters_have_all_bits_of_all_targets_and_as_many_ones_as_honest_ones():
    question = ask.blooms()
    filters, response = question.channel.reports.filters, question.channel.reports.response
    keys = question.names.keys_of(ALPHABET.encode(["abc", "feed"], width=LONGEST))
    cells = filters.cells(keys).reshape(-1)
    expected = math.floor(2 * response.one + 30 * response.zero)
    assert expected > 4
    for goal in ("promote", "demote"):
        _, tally = add(question, [0, 2, 3], 200, goal=goal)
        ones, by_cohort = question.channel.reports.split(tally)
        assert by_cohort.sum() == 600
        assert np.abs(by_cohort - 150).max() < 6.2 * math.sqrt(600 * 3 / 16)
        full = np.repeat(by_cohort, 32)[cells]
        assert ones.ravel()[cells].tolist() == (full if goal == "promote" else 0 * full).tolist()
        assert ones.sum() == 600 * expected
    # The server's estimates of these bits rise by more than the reports' number.
    _, tally = add(question, [0, 2], 200)
    estimates = question.channel.reports.estimate_bits(tally).ravel()[cells]
    assert (estimates > 1.2 * np.repeat(question.channel.reports.split(tally)[1], 32)[cells]).all()


def test_random_filters_have_half_of_all_bits_and_honest_ones_fewer():
    question = ask.blooms()
    random, honest = np.zeros((2, question.tally_size), dtype=np.int64)
    crafter_of(question).add_random_reports(1000, rng=np.random.default_rng(1), tally=random)
    rng = np.random.default_rng(1)
    keys = rng.integers(question.names.num_keys, size=3000)
    question.channel.reports.add_reports(keys, rng=rng, out=honest)
    half = 3000 * 32 / 2
    assert abs(question.channel.reports.split(random)[0].sum() - half) < 6.2 * math.sqrt(half)
    assert question.channel.reports.split(honest)[0].sum() < half - 12 * math.sqrt(half)
    assert question.channel.reports.split(honest)[1].sum() == 3000


def patterns_of(question, words):
    """Return the noise-free patterns of words' n-grams, ``(word, pair, cohort, side)``."""
    codes, keys = padded(question, words)
    texts = question.channel.puzzle.fragments(codes, keys)
    cohorts = np.arange(question.channel.ngrams.filters.num_cohorts)
    found = np.zeros((len(words), len(question.channel.pairs), len(cohorts), 2), dtype=np.int64)
    for word, pair, side in np.ndindex(len(words), len(question.channel.pairs), 2):
        position = question.channel.pairs[pair, side]
        key = question.channel.ngram_keys(position, texts[word, position])
        bits = question.channel.ngrams.filters.filters(cohorts, np.full(len(cohorts), key))
        found[word, pair, :, side] = bits @ (1 << np.arange(bits.shape[1]))
    return found


def test_each_records_ngrams_are_one_targets():
    question = ask.ngrams()
    _, tally = add(question, [0, 2, 3], 300)
    words, tables = question.channel.split(tally)
    own = patterns_of(question, ["abc", "feed"])
    assert tables.sum() == 900
    seen = 0
    for pair, cohort in np.ndindex(tables.shape[:2]):
        mine = {tuple(each) for each in own[:, pair, cohort].tolist()}
        seen += sum(int(tables[pair, cohort, first, second]) for first, second in mine)
    assert seen == 900
    # The whole strings' filters have both targets' bits.
    keys = question.channel.puzzle.names.keys(ALPHABET.encode(["abc", "feed"], width=LONGEST))
    cells = question.channel.words.filters.cells(keys).reshape(-1)
    ones, by_cohort = question.channel.words.split(words)
    assert ones.ravel()[cells].tolist() == np.repeat(by_cohort, 32)[cells].tolist()


def test_against_a_word_no_record_has_a_bit_of_its_ngrams():
    question = ask.ngrams()
    _, tally = add(question, [0], 300, goal="demote")
    _, tables = question.channel.split(tally)
    own = patterns_of(question, ["abc"])[0]
    for pair, cohort, first, second in np.argwhere(tables).tolist():
        assert not first & own[pair, cohort, 0]
        assert not second & own[pair, cohort, 1]
    assert tables.sum() == 900
    assert np.count_nonzero(tables) > 50


def test_random_records_of_ngrams_are_uniform_over_patterns():
    question = ask.ngrams()
    tally = np.zeros(question.tally_size, dtype=np.int64)
    crafter_of(question).add_random_reports(30_000, rng=np.random.default_rng(1), tally=tally)
    _, tables = question.channel.split(tally)
    each = 90_000 / tables.size
    assert each > 30
    spread = ((tables - each) ** 2 / each).sum()
    assert abs(spread - tables.size) < 6.2 * math.sqrt(2 * tables.size)
