"""Hadamard response over its placements, and dBitFlip against its paper's estimate.

That reports follow their distributions is the suite's to check (tests/conformance).
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from fedhh.oracles import DBitFlip, HadamardResponse, SubsetSelection, SymmetricUnaryEncoding
from fedhh.validation import InputError
from tests.every import every

COUNTS = np.array([2, 0, 3, 1, 0])


def placed(order: tuple[int, ...]) -> HadamardResponse:
    """Two blocks of four outputs, three values in the one and two in the other."""
    oracle = HadamardResponse(epsilon=2.0, domain_size=5)
    assert (oracle.block_size, oracle.aggregate_size) == (4, 8)
    rows = np.array([1, 2, 3, 5, 6])
    oracle.__dict__["symbols"] = rows[list(order)]
    return oracle


def exact_moments(oracle: HadamardResponse) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of all estimates, by enumeration of one report per value."""
    space = oracle.report_space()
    scores = np.array(
        [oracle.support(reports=report[None], candidates=np.arange(5)) for report in space]
    )
    distribution = np.exp([oracle.log_prob(space, value) for value in range(5)])
    mean, square = distribution @ scores, distribution @ scores**2
    n = int(COUNTS.sum())
    scale = (oracle.held.mean - oracle.other.mean) ** 2
    return oracle.estimate(COUNTS @ mean, n), COUNTS @ (square - mean**2) / scale


def test_over_all_placements_hadamard_response_is_unbiased_with_the_stated_variance():
    variances = []
    for order in itertools.permutations(range(5)):
        oracle = placed(order)
        mean, variance = exact_moments(oracle)
        assert np.allclose(mean, COUNTS, rtol=0, atol=1e-12)
        assert np.allclose(variance, oracle.exact_variance(COUNTS), rtol=1e-12)
        variances.append(variance)
    assert np.allclose(np.mean(variances, axis=0), oracle.variance(COUNTS, 6), rtol=1e-12)
    # No count alone has a variance: where values lie changes it by more than a tenth.
    assert np.min(variances, axis=0)[0] < 0.9 * np.max(variances, axis=0)[0]


@pytest.mark.parametrize("epsilon", [0.3, 0.69])
def test_with_little_privacy_lost_hadamard_response_has_one_block_and_the_noise_of_one_bit(epsilon):
    oracle = HadamardResponse(epsilon=epsilon, domain_size=1_000)
    assert oracle.block_size == oracle.aggregate_size == 1_024
    growth = math.exp(epsilon)
    assert float(oracle.variance(0, 1)) == pytest.approx(((growth + 1) / (growth - 1)) ** 2)


@every("epsilon", [1.0, 2.0, 4.0, 6.0, 8.0, 10.0])
@every("domain_size", [100, 10**4, 10**6])
def test_hadamard_response_is_within_a_constant_of_subset_selection(epsilon, domain_size):
    best = SubsetSelection(epsilon=epsilon, domain_size=domain_size, subset_size="optimal")
    ours = HadamardResponse(epsilon=epsilon, domain_size=domain_size)
    assert 1.4 < float(ours.variance(0, 1) / best.variance(0, 1)) < 3


def test_large_hadamard_tallies_have_the_exact_variance():
    oracle = HadamardResponse(epsilon=3.0, domain_size=3_000)
    counts = np.random.default_rng(1).multinomial(100_000, np.r_[0.5, np.full(2_999, 0.5 / 2_999)])
    values = np.repeat(np.arange(3_000), counts)
    tally = oracle.support(oracle.aggregate(values=values, rng=np.random.default_rng(2)))
    error = oracle.estimate(tally, 100_000) - counts
    z = error / np.sqrt(oracle.exact_variance(counts))
    assert abs(z.mean()) * math.sqrt(3_000) < 8
    assert 0.85 < (z**2).mean() < 1.15
    # Next to the value that half of the clients hold there is more noise than elsewhere.
    same_block = oracle.symbols // oracle.block_size == oracle.symbols[0] // oracle.block_size
    assert 0.7 < (z[same_block] ** 2).mean() < 1.3
    assert (error[same_block] ** 2).mean() > 1.5 * float(oracle.variance(0, 100_000))


@pytest.mark.parametrize("epsilon", [1.0, 4.0, 10.0])
def test_estimates_of_d_bit_flip_are_those_of_the_paper(epsilon):
    oracle = DBitFlip(epsilon=epsilon, domain_size=50, num_bits=8)
    growth = math.exp(epsilon / 2)
    assert float(oracle.variance(0, 1)) == pytest.approx(
        50 / 8 * growth / (growth - 1) ** 2, rel=1e-8
    )
    reports = oracle.privatize(np.full(500, 7), rng=np.random.default_rng(3))
    bits, positions = reports & 1, reports >> 1
    terms = (bits * (growth + 1) - 1) / (growth - 1)
    paper = np.array([50 / 8 * terms[positions == value].sum() for value in range(50)])
    ours = oracle.estimate(oracle.support(reports=reports, candidates=np.arange(50)), 500)
    # Rounded scores differ by a millionth of a report, times s / d and what a bit says.
    assert np.allclose(
        ours, paper, rtol=0, atol=500 * 50 / 8 * 1e-6 / (1 - 2 * oracle.flip_probability)
    )


def test_all_bits_of_d_bit_flip_are_symmetric_unary_encoding():
    oracle = DBitFlip(epsilon=2.0, domain_size=6, num_bits=40)
    unary = SymmetricUnaryEncoding(epsilon=2.0, domain_size=6)
    assert oracle.d == 6
    assert float(oracle.variance(2, 9)) == pytest.approx(float(unary.variance(2, 9)), rel=1e-9)


def test_one_bit_and_domains_too_large_are_refused():
    with pytest.raises(InputError, match="num_bits >= 2, got num_bits=1"):
        DBitFlip(epsilon=1.0, domain_size=6, num_bits=1)
    with pytest.raises(InputError, match="dbitflip"):
        DBitFlip(epsilon=1.0, domain_size=2**40)
    with pytest.raises(InputError, match="hadamard response"):
        HadamardResponse(epsilon=1.0, domain_size=2**40)
    with pytest.raises(InputError, match="placement_seed >= 0"):
        HadamardResponse(epsilon=1.0, domain_size=6, placement_seed=-1)
