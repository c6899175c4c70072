from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from fedhh.oracles.bloom import BitResponse
from fedhh.server.ngram_association import (
    BitChannel,
    cliques,
    edges,
    frequent_ngrams,
    joint_shares,
)
from tests import questions_of_each_kind as ask

CHANNEL = BitChannel(num_bits=3, response=BitResponse.of_one_report(3.0, num_hashes=1))
# Two candidates here and three there, in four cohorts of three bits.
HERE = np.array([[0, 1, 2, 0], [1, 1, 0, 2]])
THERE = np.array([[2, 0, 1, 1], [0, 0, 2, 1], [1, 2, 0, 0]])
SHARES = np.array([[0.3, 0.0, 0.05, 0.05], [0.0, 0.25, 0.0, 0.05], [0.05, 0.0, 0.1, 0.15]])


def test_chances_of_patterns_are_products_over_bits():
    response = CHANNEL.response
    chances = CHANNEL.chances()
    for own, pattern in itertools.product(range(3), range(8)):
        expected = 1.0
        for bit in range(3):
            one = response.one if bit == own else response.zero
            expected *= one if pattern >> bit & 1 else 1 - one
        assert math.isclose(chances[own, pattern], expected)
    assert np.allclose(chances.sum(axis=1), 1)


def test_the_unit_is_the_variance_of_an_indicator_over_hashes_and_coins():
    # An n-gram's bit, and that of the record's own, are both uniform among three.
    distribution = CHANNEL.chances().mean(axis=0)
    for bit in range(3):
        has_bit = (np.arange(8) >> bit & 1).astype(float)
        assert math.isclose(distribution @ has_bit, CHANNEL.spread)
        estimate = (has_bit - CHANNEL.spread) / (CHANNEL.response.one - CHANNEL.spread)
        assert math.isclose(distribution @ estimate**2, CHANNEL.unit)


def test_ones_count_reports_with_each_bit():
    counts = np.arange(16).reshape(2, 8)
    expected = [[sum(row[x] for x in range(8) if x >> bit & 1) for bit in range(3)]
                for row in counts]  # fmt: skip
    assert CHANNEL.ones(counts).tolist() == expected


def likelihoods(cohort: int) -> np.ndarray:
    """``(a + 1, b + 1, 8, 8)``: chance of both patterns for each pair of n-grams, and others."""
    chances = CHANNEL.chances()

    def of(bits: np.ndarray) -> np.ndarray:
        return np.vstack([chances[bits[:, cohort]], chances.mean(axis=0)])

    return of(HERE)[:, None, :, None] * of(THERE)[None, :, None, :]


def test_an_iteration_is_the_mean_posterior():
    rng = np.random.default_rng(0)
    counts = rng.integers(5, size=(4, 8, 8))
    counts[2] = 0
    shares = np.full((3, 4), 1 / 12)
    for iterations in (1, 2):
        total = np.zeros((3, 4))
        for cohort, first, second in itertools.product(range(4), range(8), range(8)):
            joint = shares * likelihoods(cohort)[:, :, first, second]
            total += counts[cohort, first, second] * joint / joint.sum()
        shares = total / counts.sum()
        got = joint_shares(counts, HERE, THERE, CHANNEL, iterations=iterations)
        assert np.allclose(got, shares)
        assert math.isclose(got.sum(), 1)


def test_the_shares_of_a_mixture_come_back_from_its_own_frequencies():
    mixture = np.array(
        [np.einsum("ab,abxy->xy", SHARES, likelihoods(cohort)) for cohort in range(4)]
    )
    counts = np.rint(mixture * 1e9).astype(np.int64)
    got = joint_shares(counts, HERE, THERE, CHANNEL, iterations=4_000)
    assert np.abs(got - SHARES).max() < 0.01
    # That is not what the margins alone would say.
    independent = np.outer(SHARES.sum(axis=1), SHARES.sum(axis=0))
    assert np.abs(got - independent).max() > 0.1
    # Nor what another channel would see.
    wrong = BitChannel(num_bits=3, response=BitResponse.of_one_report(5.0, num_hashes=1))
    other = joint_shares(counts, HERE, THERE, wrong, iterations=4_000)
    assert np.abs(other - SHARES).max() > 0.02


def test_edges_exceed_the_noise_of_a_pair_that_nobody_holds():
    num_records = 10_000
    deviation = math.sqrt(num_records) * CHANNEL.unit
    # Of four candidates one of noise may stay: the threshold is the upper quarter's.
    least = 0.6745 * deviation / num_records
    shares = np.array([[least * 1.01, least * 0.99, 0.5], [0.9, 0.0, 0.5], [0.5, 0.5, 0.5]])
    got = edges(shares, num_records, CHANNEL, noise_kept=1.0)
    assert got.tolist() == [[True, False], [True, False]]
    # However many may stay, none without a count.
    assert not edges(shares, num_records, CHANNEL, noise_kept=4.0)[1, 1]
    assert edges(shares[:1], num_records, CHANNEL, noise_kept=1.0).shape == (0, 2)


def test_about_as_many_ngrams_of_noise_are_kept_as_stated():
    rng = np.random.default_rng(1)
    kept = []
    for _ in range(40):
        bits = rng.integers(4, size=(2_000, 32))
        held = np.zeros((32, 4), dtype=np.int64)
        held[np.arange(32), bits[0]] += 60
        ones = rng.binomial(200, 0.4, size=(32, 4)) + held
        found = frequent_ngrams(ones, bits, noise_kept=10.0, most=1_000)
        assert found[0] == 0
        kept.append(len(found) - 1)
    # What is frequent skews the votes, so that a few more than of a normal distribution are kept.
    assert 8 < np.mean(kept) < 18
    assert len(frequent_ngrams(ones, bits, noise_kept=10.0, most=3)) == 3


def test_cliques_are_all_choices_of_which_any_two_are_joined():
    rng = np.random.default_rng(2)
    numbers = [3, 4, 2, 3]
    linked = {
        (i, j): rng.random((numbers[i], numbers[j])) < 0.7
        for i, j in itertools.combinations(range(4), 2)
    }
    expected = [
        choice
        for choice in itertools.product(*map(range, numbers))
        if all(linked[i, j][choice[i], choice[j]] for i, j in itertools.combinations(range(4), 2))
    ]
    got = cliques(numbers, linked, most=1_000)
    assert [tuple(row) for row in got.tolist()] == expected
    assert 0 < len(expected) < 72
    assert len(cliques(numbers, linked, most=2)) <= 2
    linked |= {(0, j): np.zeros((0, numbers[j]), dtype=np.bool_) for j in (1, 2, 3)}
    assert cliques([0, *numbers[1:]], linked, most=9).shape == (0, 4)


@pytest.mark.parametrize("num_positions", [2, 3, 5])
def test_pairs_of_positions_are_in_order(num_positions):
    puzzle = replace(ask.PUZZLE, length=num_positions * ask.PUZZLE.fragment_length, num_puzzles=1)
    pairs = list(map(tuple, ask.ngrams(puzzle=puzzle).channel.pairs.tolist()))
    assert len(set(pairs)) == len(pairs) == num_positions * (num_positions - 1) // 2
    assert all(0 <= a < b < num_positions for a, b in pairs)
