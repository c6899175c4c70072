"""Histogram encodings on their grid: sums of entries that are sent as an end, and the noise."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from fedhh.oracles import (
    SummedHistogramEncoding,
    SymmetricUnaryEncoding,
    ThresholdHistogramEncoding,
)
from fedhh.testing import follows_distribution
from fedhh.validation import InputError
from tests.every import every


def sum_of_capped(number: int, cap: int, ratio: float) -> dict[int, float]:
    """The distribution of the sum of so many min(X, cap), P(X >= x) = ratio**x, by convolution."""
    one = [(1 - ratio) * ratio**x for x in range(cap)] + [ratio**cap]
    distribution = np.ones(1)
    for _ in range(number):
        distribution = np.convolve(distribution, one)
    return dict(enumerate(distribution.tolist()))


@pytest.mark.parametrize("cap", [0, 1, 8, 11])
def test_sums_of_capped_geometric_numbers_have_their_distribution(cap):
    oracle = SummedHistogramEncoding(epsilon=1.6, domain_size=4, steps=5)
    ratio = math.exp(oracle.log_ratio)
    rng = np.random.default_rng(cap)
    sums = oracle._sums_of_capped(np.full(50_000, 3), cap, rng).tolist()
    assert follows_distribution(sums, sum_of_capped(3, cap, ratio))
    if cap:
        assert not follows_distribution(sums, sum_of_capped(3, cap, 0.96 * ratio))
        assert not follows_distribution(sums, sum_of_capped(3, cap + 1, ratio))


def test_a_tally_of_a_fine_grid_has_its_means_and_variances():
    oracle = SummedHistogramEncoding(epsilon=1.0, domain_size=4_000)
    counts = np.arange(4_000)
    n = int(counts.sum())
    estimates = oracle.estimate(oracle.sample_aggregate(counts, rng=np.random.default_rng(0)), n)
    z = (estimates - counts) / np.sqrt(oracle.variance(counts, n))
    assert abs(z.mean()) * math.sqrt(4_000) < 6
    assert abs(z.var() - 1) * math.sqrt(4_000 / 2) < 6
    # A little less noise than stated would show.
    more = replace(oracle, epsilon=1.1)
    z = (more.estimate(more.sample_aggregate(counts, rng=np.random.default_rng(0)), n) - counts) / (
        np.sqrt(oracle.variance(counts, n))
    )
    assert abs(z.var() - 1) * math.sqrt(4_000 / 2) > 6


@pytest.mark.parametrize("epsilon", [0.5, 4.0, 10.0])
def test_the_grid_costs_no_accuracy_against_laplace_noise(epsilon):
    oracle = SummedHistogramEncoding(epsilon=epsilon, domain_size=100)
    below = 1 - float(oracle.variance(0, 1)) * epsilon**2 / 8
    assert below == pytest.approx((epsilon / oracle.steps) ** 2 / 48, rel=1e-3)


def test_without_a_grid_histogram_encoding_is_symmetric_unary_encoding():
    unary = SymmetricUnaryEncoding(epsilon=3.0, domain_size=4)
    settings = {"epsilon": 3.0, "domain_size": 4, "steps": 1, "reach": 0.0}
    summed = SummedHistogramEncoding(**settings)
    assert np.allclose(
        summed.log_prob(summed.report_space(), 2), unary.log_prob(unary.report_space(), 2)
    )
    assert summed.other.mean == pytest.approx(unary.q, abs=1e-15)
    assert float(summed.variance(0, 1)) == pytest.approx(float(unary.variance(0, 1)), rel=1e-12)
    thresholded = ThresholdHistogramEncoding(**settings)
    assert (thresholded.p, thresholded.q) == pytest.approx((unary.p, unary.q), rel=1e-12)


# Wang et al. (2017): the best thresholds, from the field's table.
@every(("epsilon", "theta"), [(0.5, 0.56), (1, 0.62), (2, 0.71), (4, 0.82), (8, 0.90), (10, 0.92)])
def test_thresholds_are_the_best_ones(epsilon, theta):
    oracle = ThresholdHistogramEncoding(epsilon=epsilon, domain_size=100)
    assert (oracle.threshold - 0.5) / oracle.steps == pytest.approx(theta, abs=0.005)


def test_a_client_that_compares_entries_itself_reveals_less_than_epsilon():
    oracle = ThresholdHistogramEncoding(epsilon=4.0, domain_size=100)
    p, q = oracle.p, oracle.q
    assert math.log(p * (1 - q) / (q * (1 - p))) < 0.8 * oracle.epsilon


def test_grids_that_make_no_sense_are_refused():
    with pytest.raises(InputError, match="steps >= 1, got steps=0"):
        SummedHistogramEncoding(epsilon=1.0, domain_size=4, steps=0)
    with pytest.raises(InputError, match="reach"):
        SummedHistogramEncoding(epsilon=1.0, domain_size=4, reach=-1.0)
    with pytest.raises(InputError, match="lower steps or reach"):
        SummedHistogramEncoding(epsilon=1e-6, domain_size=4, steps=2**20)
