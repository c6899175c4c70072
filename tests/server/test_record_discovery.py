"""TreeHist and Bitstogram: a record of two reports, and two ways to find candidates."""

from __future__ import annotations

import itertools
import math
import string
from dataclasses import replace

import numpy as np
import pytest

from fedhh.questions.question import Aggregate
from fedhh.server.bitstogram import Bitstogram, likeliest_strings
from fedhh.server.treehist import TreeHist
from fedhh.testing import LETTERS
from fedhh.validation import InputError
from fedhh.words.puzzle import FragmentPuzzle
from tests.every import every
from tests.thinned import thinned
from tests.zipf_words import final_state, recall_of_top, six_letter_words

SIZES = {"alphabet": LETTERS, "length": 6, "clients_per_layer": 6_000}
TREE = TreeHist(**SIZES, step=1)
BITS = Bitstogram(**SIZES, buckets=64)
BOTH = pytest.mark.parametrize("protocol", [TREE, BITS], ids=["treehist", "bitstogram"])

# With a great epsilon, and one row of many cells, a sketch holds true counts, but for collisions.
EXACT = {
    "local_epsilon": 120.0,
    "num_hashes": 1,
    "num_cells": 2**14,
    "max_items": 100,
    "pad": False,
    "hash_seed": 2,
    # The few cells that are full look like noise of one row; so many are let through.
    "noise_words": 1e9,
}


@pytest.mark.slow("::test_frequent_words_are_found_under_noise_and_counted_within_it")
def test_without_noise_treehist_finds_words_with_their_counts(population):
    protocol = replace(TREE, **EXACT, oracle="cms", noise_prefixes=1e9)
    state = final_state(protocol, population)
    found = protocol.discoveries(state)
    ids = population.lexicon.ids(found.words)
    assert set(np.flatnonzero(population.word_counts().holders >= 40).tolist()) <= set(ids.tolist())
    counted = found.estimate > 10
    assert (ids[counted] >= 0).mean() > 0.75
    held = counted & (ids >= 0)
    errors = found.estimate[held] - population.word_counts().holders[ids[held]]
    assert (np.abs(errors) < 2.5).mean() > 0.95
    assert (np.diff(found.estimate) <= 0).all()


def test_without_noise_bitstogram_finds_words_that_are_alone_in_their_bucket(population):
    protocol = replace(BITS, **EXACT, buckets=1024, word_oracle="cms", fragment_oracle="ss")
    found = protocol.discoveries(final_state(protocol, population))
    held = population.lexicon.ids(found.words)
    assert (held >= 0).mean() > 0.9
    frequent = np.flatnonzero(population.word_counts().holders >= 40)
    puzzle = protocol.question().channel.puzzle
    codes = protocol.symbols.encode(population.lexicon.words, width=6)
    bucket = puzzle.puzzles(puzzle.names.keys(codes))
    counts = population.word_counts().holders.astype(float)
    alone = [
        word
        for word in frequent.tolist()
        if counts[word] > 2 * (counts[bucket == bucket[word]].sum() - counts[word])
    ]
    assert len(alone) > 0.8 * len(frequent)
    assert set(alone) <= set(held.tolist())


@pytest.mark.parametrize(
    "protocol", thinned([BITS, replace(TREE, noise_prefixes=1e9)]), ids=["bitstogram", "treehist"]
)
def test_the_threshold_is_that_of_the_last_word_kept_or_above_all(protocol, monkeypatch):
    question = protocol.next_question(protocol.initialize())
    answers = Aggregate(
        tally=np.random.default_rng(0).integers(50, 90, question.tally_size),
        num_reports=500,
        num_clients=500,
    )
    supports = []

    def summary_of(keep):
        def credible(self, noise, support):
            supports.append(support)
            return keep(support)

        monkeypatch.setattr(type(protocol), "credible", credible)
        (summary,) = protocol.finish_round(protocol.initialize(), question, answers).history
        return summary

    everything = summary_of(lambda support: np.argsort(-support))
    assert everything.threshold == supports[0].min()
    assert np.isnan(everything.threshold_z)
    nothing = summary_of(lambda support: np.arange(0))
    assert nothing.threshold == supports[0].max() + 1
    assert not np.isnan(nothing.threshold_z)


@pytest.mark.slow("::test_without_noise_bitstogram_finds_words_that_are_alone_in_their_bucket")
def test_few_buckets_hide_words_behind_more_frequent_ones(population):
    protocol = replace(BITS, **EXACT, word_oracle="cms", fragment_oracle="ss", buckets=4)
    found = protocol.discoveries(final_state(protocol, population))
    assert 0 < len(found) <= 4


@pytest.mark.parametrize("fragment_length", [1, 2, 4])
def test_each_bucket_has_the_likeliest_of_all_well_formed_strings(fragment_length):
    puzzle = FragmentPuzzle(
        alphabet_size=3, length=4, fragment_length=fragment_length, num_puzzles=5, hash_seed=0
    )
    strings = [
        codes
        for codes in itertools.product(range(3), repeat=4)
        if codes[0] and all(a or not b for a, b in itertools.pairwise(codes))
    ]
    texts = puzzle.texts(np.array(strings, dtype=np.uint16))
    rng = np.random.default_rng(fragment_length)
    for _ in range(20):
        counts = rng.normal(size=(puzzle.num_positions, puzzle.num_fragments))
        got = likeliest_strings(puzzle, counts)
        for number in range(5):
            values = number * puzzle.num_texts + texts
            totals = sum(counts[i][values[:, i]] for i in range(puzzle.num_positions))
            assert tuple(got[number].tolist()) == strings[int(np.argmax(totals))]


@BOTH
def test_frequent_words_are_found_under_noise_and_counted_within_it(protocol, population):
    protocol = replace(protocol, max_items=4, local_epsilon=8.0)
    found = protocol.discoveries(final_state(protocol, population))
    assert recall_of_top(found.words, population, 3) == 1.0
    ids = population.lexicon.ids(found.words)
    assert np.count_nonzero(ids < 0) <= 5
    held = ids >= 0
    # Nearly all clients fit into four items.
    truth = population.word_counts().holders[ids[held]]
    error = np.abs(found.estimate[held] - truth)
    assert (error < 0.1 * truth + 5 * np.sqrt(found.variance[held])).all()


@pytest.mark.slow("::test_frequent_words_are_found_under_noise_and_counted_within_it")
def test_a_hundred_thousand_clients_find_their_most_frequent_words():
    population = six_letter_words(100_000, seed=0)
    letters = {"alphabet": string.ascii_lowercase, "max_items": 1, "length": 6}
    for protocol, least in (
        (TreeHist(**letters), 0.5),
        (Bitstogram(**letters), 0.3),
        (Bitstogram(**letters, fragment_oracle="ss", word_oracle="cms"), 0.8),
    ):
        settled = protocol.settle(num_clients=100_000, seed=0)
        words = settled.discoveries(final_state(settled, population)).words
        assert recall_of_top(words, population, 10) >= least


def test_buckets_are_the_square_root_of_the_contributions():
    protocol = replace(BITS, buckets="auto", clients_per_layer="auto", max_items=4)
    assert protocol.settle(num_clients=100_000, seed=1).buckets == 1024
    assert protocol.settle(num_clients=10_000, seed=1).buckets == 256
    assert replace(protocol, buckets=7).settle(num_clients=10_000, seed=1).buckets == 7


@BOTH
def test_both_reports_share_the_budget(protocol):
    question = protocol.question()
    assert (question.channel.word_oracle.epsilon, question.channel.fragment_oracle.epsilon) == (
        4.0,
        4.0,
    )
    other = replace(protocol, word_share=0.25).plan
    assert [spec.epsilon for spec in other.randomizers] == [2.0, 6.0]
    assert math.isclose(other.local_epsilon, 8.0)
    assert (
        question.channel.word_oracle.params["hash_seed"]
        != question.channel.fragment_oracle.params["hash_seed"]
    )


@every(
    ("protocol", "changes", "message"),
    [
        (TREE, {"step": 6, "max_prefixes": 9}, "step < length"),
        (TREE, {"step": 5, "max_prefixes": 10_000}, "lower step or max_prefixes"),
        (TREE, {"oracle": "ss"}, "Unknown oracle 'ss'"),
        (TREE, {"num_cells": 1000}, "use 1024"),
        (TREE, {"noise_prefixes": 0.0}, "0 < noise_prefixes"),
        (TREE, {"word_share": 1e-300}, "1e-06 <= word_epsilon"),
        (TREE, {"word_share": 1 - 1e-16}, "1e-06 <= part_epsilon"),
        (BITS, {"fragment_length": 4}, "multiple of fragment_length"),
        (BITS, {"buckets": 2**24}, "lower num_puzzles or fragment_length"),
        (BITS, {"word_oracle": "ss"}, "Unknown word_oracle 'ss'"),
        (BITS, {"noise_words": -1.0}, "0 < noise_words"),
    ],
)
def test_bad_settings_are_refused_before_anything_runs(protocol, changes, message):
    with pytest.raises(InputError, match=message):
        replace(protocol, **changes)
