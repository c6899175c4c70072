from __future__ import annotations

import string
from dataclasses import replace

import numpy as np
import pytest

import fedhh
from fedhh.server.pem import Pem
from fedhh.server.sfp import Sfp
from fedhh.testing import LETTERS
from fedhh.validation import InputError
from tests.every import every
from tests.thinned import thinned
from tests.zipf_words import everybody_holds, final_state, recall_of_top, six_letter_words

SMALL = Sfp(
    alphabet=LETTERS,
    clients_per_layer=6_000,
    length=6,
    max_items=4,
    num_puzzles=16,
    word_hashes=64,
    word_cells=256,
    fragment_hashes=64,
    fragment_cells=256,
)
# With a great epsilon, and one row of many cells, a sketch holds true counts, but for collisions.
NOISELESS = replace(
    SMALL,
    local_epsilon=120.0,
    word_share=2 / 3,
    fragment_oracle="ss",
    word_hashes=1,
    word_cells=2**14,
    max_items=100,
    pad=False,
    hash_seed=2,
)


def test_defaults_are_apples_deployment():
    protocol = Sfp(clients_per_layer=1)
    assert (protocol.word_cells, protocol.fragment_cells) == (1024, 1024)
    assert (protocol.word_hashes, protocol.fragment_hashes) == (2048, 2048)
    assert (protocol.word_epsilon, protocol.part_epsilon) == (2.0, 6.0)
    assert (protocol.length, protocol.fragment_length, protocol.num_puzzles) == (10, 2, 256)
    assert (protocol.word_oracle, protocol.fragment_oracle) == ("cms", "cms")
    assert protocol.plan.local_epsilon == 8.0
    # Two sketch reports of 1024 + 11 bits, and one of five positions.
    question = protocol.next_question(protocol.initialize())
    assert question.report_bits == 2 * (1024 + 11) + 3


@pytest.mark.slow("::test_estimates_are_within_five_standard_deviations_of_the_truth")
def test_without_noise_words_are_found_with_their_counts(population):
    state = final_state(NOISELESS, population)
    discovered = NOISELESS.discoveries(state)
    ids = population.lexicon.ids(discovered.words)
    assert len(set(discovered.words)) == len(ids)
    # Rarer words may lack a report at one of the three positions.
    assert set(np.flatnonzero(population.word_counts().holders >= 40).tolist()) <= set(ids.tolist())
    assert np.count_nonzero(population.word_counts().holders >= 40) > 60
    # Strings share a cell of 16,384 here and there; every other count is exact.
    held = ids >= 0
    errors = discovered.estimate[held] - population.word_counts().holders[ids[held]]
    assert (np.abs(errors) < 2.5).mean() > 0.95
    assert (np.diff(discovered.estimate) <= 0).all()


def test_a_longer_word_is_found_as_its_beginning():
    protocol = replace(NOISELESS, length=4, clients_per_layer=600, max_items=1)
    found = protocol.discoveries(final_state(protocol, everybody_holds(["abcdef"], 600)))
    assert "abcd" in found.words
    assert max(map(len, found.words)) == 4


@pytest.mark.slow("::test_a_longer_word_is_found_as_its_beginning")
def test_longer_words_are_found_as_their_beginnings(population):
    state = final_state(replace(NOISELESS, length=4), population)
    found = set(NOISELESS.discoveries(state).words)
    held = np.flatnonzero(population.word_counts().holders >= 40)
    expected = {population.lexicon.words[word][:4] for word in held.tolist()}
    assert expected <= found
    # What else there is is rare, or shares a cell with one of them.
    rare = {word[:4] for word in population.lexicon.words} - expected
    assert len(found - expected - rare) < 0.05 * len(found)
    assert max(map(len, found)) == 4


@pytest.mark.parametrize("fragment_oracle", ["cms", "hcms", "ss"])
def test_frequent_words_are_found_under_noise(population, fragment_oracle):
    protocol = replace(
        SMALL, local_epsilon=11.0, word_share=5 / 11, fragment_oracle=fragment_oracle
    )
    found = protocol.discoveries(final_state(protocol, population)).words
    assert recall_of_top(found, population, 6) >= (0.5 if fragment_oracle == "hcms" else 0.8)


def test_estimates_are_within_five_standard_deviations_of_the_truth():
    protocol = replace(
        SMALL, local_epsilon=11.0, word_share=5 / 11, clients_per_layer=20_000, max_items=1
    )
    population = six_letter_words(20_000, seed=1, num_words=40)
    protocol = replace(protocol, alphabet=string.ascii_lowercase)
    discovered = protocol.discoveries(final_state(protocol, population))
    ids = population.lexicon.ids(discovered.words)
    real = ids >= 0
    truth = population.word_counts().holders[ids[real]]
    collisions = (population.word_counts().holders ** 2).sum() / (64 * 256)
    deviation = np.sqrt(discovered.variance[real] + collisions)
    assert np.count_nonzero(real) > 10
    assert (np.abs(discovered.estimate[real] - truth) < 5 * deviation).all()


def test_the_summary_says_what_was_looked_up(population):
    protocol = replace(SMALL, max_strings=10)
    state = final_state(protocol, population)
    (summary,) = state.history
    assert summary.num_reports == 6_000 * 4
    assert summary.num_clients == 6_000
    assert summary.domain_size == 16 * 7**2
    assert summary.num_kept <= summary.num_candidates <= 16 * 10
    assert summary.num_kept == len(state.found.codes)
    assert summary.report_bits == 2 * (256 + 6) + 2


def test_the_words_of_most_reports_are_kept_and_those_above_the_noise(population):
    loose = replace(SMALL, clients_per_layer=2_000, word_z=-40.0, noise_budget=50.0)
    many, few, sure = (
        each.discoveries(final_state(each, population)).words
        for each in (loose, replace(loose, max_words=3), replace(loose, word_z=2.0))
    )
    assert few == many[:3]
    assert sure == many[: len(sure)]
    assert 0 < len(sure) < len(many)


@pytest.mark.slow("::test_the_words_of_most_reports_are_kept_and_those_above_the_noise")
def test_words_are_cut_by_count_and_by_z(population):
    loose = replace(SMALL, word_z=-40.0, noise_budget=50.0)
    many = loose.discoveries(final_state(loose, population))
    few = replace(loose, max_words=3)
    assert few.discoveries(final_state(few, population)).words == many.words[:3]
    strict = replace(loose, word_z=2.0)
    significant = strict.discoveries(final_state(strict, population))
    kept = len(significant)
    assert 0 < kept < len(many)
    assert significant.words == many.words[:kept]
    (summary,) = final_state(loose, population).history
    words = loose.next_question(loose.initialize()).channel.words
    spread = np.sqrt(words.variance(0, summary.num_reports))
    assert many.estimate[kept - 1] >= 1.9 * spread
    assert many.estimate[kept] < 2.1 * spread
    # Few words in few cells: what shares them explains more than the randomizer alone.
    assert summary.noise_std > spread
    assert (many.z[:kept] < many.estimate[:kept] / spread).all()


def test_hash_functions_belong_to_the_hash_seed():
    first = SMALL.next_question(SMALL.initialize())
    again = replace(SMALL).next_question(SMALL.initialize())
    other = replace(SMALL, hash_seed=1).next_question(SMALL.initialize())
    assert first.channel.word_oracle == again.channel.word_oracle
    assert first.channel.puzzle == again.channel.puzzle
    assert first.channel.word_oracle != other.channel.word_oracle
    assert first.channel.fragment_oracle != other.channel.fragment_oracle
    assert first.channel.puzzle != other.channel.puzzle
    assert (
        first.channel.word_oracle.params["hash_seed"]
        != first.channel.fragment_oracle.params["hash_seed"]
    )


def test_settled_protocols_have_the_hash_seed_of_their_run():
    for protocol in (SMALL, Pem(clients_per_layer=600, length=6, alphabet=LETTERS, oracle="flh")):
        free = replace(protocol, hash_seed=None)
        assert [free.settle(num_clients=6_000, seed=seed).hash_seed for seed in (1, 2)] == [1, 2]
        kept = replace(protocol, hash_seed=7).settle(num_clients=6_000, seed=2)
        assert kept.hash_seed == 7


@pytest.mark.slow("::test_settled_protocols_have_the_hash_seed_of_their_run")
@pytest.mark.parametrize(
    "protocol",
    thinned(
        [
            replace(SMALL, hash_seed=None),
            Pem(clients_per_layer=600, length=6, alphabet=LETTERS, oracle="flh", num_hashes=64),
        ]
    ),
    ids=["sfp", "pem"],
)
def test_each_run_draws_its_hash_functions_from_its_seed(population, protocol):
    def first_query(seed, protocol):
        return repr(next(fedhh.rounds(protocol, population, seed=seed)).question)

    drawn = first_query(1, protocol)
    assert drawn == first_query(1, protocol)
    assert drawn != first_query(2, protocol)
    assert drawn == first_query(2, replace(protocol, hash_seed=1))
    result = fedhh.simulate(protocol, population, seed=5)
    assert result.protocol == replace(protocol, hash_seed=5)


@every(
    ("changes", "message"),
    [
        ({"length": 5}, "multiple of fragment_length"),
        ({"word_oracle": "ss"}, "Unknown word_oracle 'ss'"),
        ({"fragment_oracle": "s"}, "did you mean 'ss'"),
        ({"word_share": 0.0}, "0 < word_share < 1"),
        ({"noise_budget": 0.0}, "0 < noise_budget, got"),
        ({"word_share": 1e-300}, "1e-06 <= word_epsilon <= "),
        ({"fragment_oracle": "hcms", "fragment_cells": 1000}, "use 1024"),
        ({"word_z": float("nan")}, "word_z"),
        ({"max_fragments": 0}, "max_fragments >= 1"),
    ],
)
def test_bad_settings_are_refused_before_anything_runs(changes, message):
    with pytest.raises(InputError, match=message):
        replace(SMALL, **changes)


def test_a_population_that_is_too_small_is_refused():
    with pytest.raises(InputError, match="clients_per_layer <= 5,999"):
        SMALL.check_population(5_999)
    SMALL.check_population(6_000)


@pytest.mark.slow("::test_frequent_words_are_found_under_noise")
def test_most_frequent_words_of_a_hundred_thousand_clients_are_found():
    # Apple's parameters in full: five fragment sketches of 2048 x 1024, all 256 x 27^2 fragments.
    population = six_letter_words(100_000, seed=0)
    protocol = Sfp(
        clients_per_layer=100_000, max_items=1, alphabet=string.ascii_lowercase, hash_seed=0
    )
    state = final_state(protocol, population)
    assert recall_of_top(protocol.discoveries(state).words, population, 20) >= 0.9
    # Subset selection makes a stronger puzzle.
    stronger = replace(protocol, fragment_oracle="ss")
    found = stronger.discoveries(final_state(stronger, population)).words
    assert recall_of_top(found, population, 20) >= 0.95
    assert recall_of_top(found, population, 50) >= 0.6
