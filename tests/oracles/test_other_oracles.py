import math

import numpy as np
import pytest

from fedhh.oracles import (
    BinaryLocalHashing,
    FrequencyOracle,
    GeneralizedRandomizedResponse,
    Identity,
    OptimizedLocalHashing,
    OptimizedUnaryEncoding,
    OracleSpec,
    SubsetSelection,
    SymmetricUnaryEncoding,
    make_oracle,
)
from fedhh.testing import ALPHA, distribution_p_value, follows_distribution, report_distribution
from fedhh.validation import InputError
from tests.every import every
from tests.thinned import thinned


@pytest.mark.parametrize("epsilon", [3.0, 6.0])
def test_randomized_response_is_subset_selection_of_one_value(epsilon):
    response = GeneralizedRandomizedResponse(epsilon=epsilon, domain_size=5)
    selection = SubsetSelection(epsilon=epsilon, domain_size=5)
    assert selection.d == 1
    assert report_distribution(response, 2) == pytest.approx(
        report_distribution(selection, 2), abs=1e-14
    )
    assert response.p == pytest.approx(selection.p, rel=1e-14)
    assert response.q == pytest.approx(selection.q, rel=1e-14)


@pytest.mark.parametrize("n", thinned([5_000_000, 20_000_000]))
def test_randomized_response_keeps_its_coin_exact_when_p_is_tiny(n):
    # p is 1.5e-5 at s = 100,000: a coin of 16 bits would always or never come up.
    oracle = GeneralizedRandomizedResponse(epsilon=0.4, domain_size=100_000)
    tally = oracle.aggregate(values=np.full(n, 7), rng=np.random.default_rng(0))
    expected = n * oracle.p
    assert abs(tally[7] - expected) < 6.2 * math.sqrt(expected)
    assert tally.sum() == n


@pytest.mark.parametrize(("draws", "off"), thinned([(2_000, 0.19), (20_000, 0.06)]))
def test_sampled_tally_of_randomized_response_is_multinomial_in_the_large(draws, off):
    oracle = GeneralizedRandomizedResponse(epsilon=2.0, domain_size=4)
    rng = np.random.default_rng(1)
    counts = np.array([500, 0, 0, 0])
    tallies = np.array([oracle.sample_aggregate(counts, rng=rng) for _ in range(draws)])
    assert (tallies.sum(axis=1) == 500).all()
    distribution = np.array([oracle.p, oracle.q, oracle.q, oracle.q])
    covariance = 500 * (np.diag(distribution) - np.outer(distribution, distribution))
    # 20,000 tallies fix each covariance to about one percent of the product of deviations, and a
    # tenth of them to three.
    deviations = np.sqrt(np.diag(covariance))
    scale = np.outer(deviations, deviations)
    assert (np.abs(np.cov(tallies.T) - covariance) < off * scale).all()


@every(
    "name",
    [
        GeneralizedRandomizedResponse,
        Identity,
        OptimizedUnaryEncoding,
        SubsetSelection,
        SymmetricUnaryEncoding,
    ],
)
@every("counts", [[1, 1, 0], [-1, 2, 0, 2]])
def test_histograms_that_do_not_fit_the_domain_are_refused(name, counts):
    epsilon = math.inf if name is Identity else 1.0
    oracle = name(epsilon=epsilon, domain_size=4)
    with pytest.raises(InputError, match="Expected 4 counts >= 0, one per value"):
        oracle.sample_aggregate(np.array(counts), rng=np.random.default_rng(0))


def test_the_null_mechanism_cannot_claim_a_finite_epsilon():
    with pytest.raises(InputError, match=r"Expected epsilon=inf, got epsilon=3.0"):
        Identity(epsilon=3.0, domain_size=4)


# Local hashing: over seeds, what the suite tests by enumeration for the others.


def relative_cells(oracle, value, size, seed):
    """Each report's cell, counted from the true one."""
    reports = oracle.privatize(np.full(size, value), rng=np.random.default_rng(seed))
    true_cells = oracle._cells(reports.view(np.uint64), np.full(size, value))
    return ((reports[:, 3] - true_cells) % oracle.num_cells).tolist()


@pytest.mark.parametrize("kind", [BinaryLocalHashing, OptimizedLocalHashing])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 4.0])
def test_local_hashing_answers_by_randomized_response_on_cells(kind, epsilon):
    oracle = kind(epsilon=epsilon, domain_size=2**40)
    other = (1 - oracle.p) / (oracle.num_cells - 1)
    distribution = {0: oracle.p} | dict.fromkeys(range(1, oracle.num_cells), other)
    assert math.log(oracle.p / other) == pytest.approx(epsilon, abs=1e-12)
    assert follows_distribution(
        relative_cells(oracle, 2**39 + 12_345, 100_000, seed=3), distribution
    )


@pytest.mark.parametrize("kind", [BinaryLocalHashing, OptimizedLocalHashing])
@pytest.mark.parametrize("wrong", [2.1, 1.9])
def test_local_hashing_with_a_wrong_coin_is_detected(kind, wrong):
    right = kind(epsilon=2.0, domain_size=50)
    off = kind(epsilon=wrong, domain_size=50)
    assert off.num_cells - right.num_cells in (0, 1, -1)
    other = (1 - right.p) / (right.num_cells - 1)
    distribution = {0: right.p} | dict.fromkeys(range(1, right.num_cells), other)
    assert distribution_p_value(relative_cells(off, 7, 100_000, seed=4), distribution) < ALPHA


@pytest.mark.parametrize(
    ("one", "two"), [(0, 1), (3, 2**31 + 3), (5, 2**32 + 5), (2**47, 2**47 + 2**33)], ids=str
)
def test_hashes_of_two_values_are_uniform_and_independent(one, two):
    oracle = OptimizedLocalHashing(epsilon=1.5, domain_size=2**48)
    size, g = 100_000, oracle.num_cells
    words = np.random.default_rng(5).integers(0, 2**64, size=(size, 4), dtype=np.uint64)
    cells = [oracle._cells(words, np.full(size, value)) for value in (one, two)]
    pairs = (cells[0] * g + cells[1]).tolist()
    assert follows_distribution(pairs, dict.fromkeys(range(g * g), 1 / g**2))


@pytest.mark.parametrize("kind", [BinaryLocalHashing, OptimizedLocalHashing])
def test_local_hashing_supports_held_values_with_p_and_others_with_q(kind):
    oracle = kind(epsilon=2.0, domain_size=1_000)
    reports = oracle.privatize(np.full(200_000, 123), rng=np.random.default_rng(6))
    candidates = np.array([123, 0, 124, 999])
    tally = oracle.support(reports=reports, candidates=candidates)
    for support, probability in zip(tally, [oracle.p, oracle.q, oracle.q, oracle.q], strict=True):
        deviation = math.sqrt(200_000 * probability * (1 - probability))
        assert abs(support - 200_000 * probability) < 6.2 * deviation
    estimates = oracle.estimate(tally, 200_000)
    errors = np.sqrt(oracle.variance(np.array([200_000, 0, 0, 0]), 200_000))
    assert (np.abs(estimates - [200_000, 0, 0, 0]) < 6.2 * errors).all()


def test_local_hashing_shows_the_true_cell_in_its_log_probability():
    oracle = OptimizedLocalHashing(epsilon=1.0, domain_size=2**40)
    reports = oracle.privatize(np.arange(1_000), rng=np.random.default_rng(7))
    log_probs = np.array([oracle.log_prob(reports[i : i + 1], i)[0] for i in range(1_000)])
    supports = np.array(
        [oracle.support(reports=each[None], candidates=[i])[0] for i, each in enumerate(reports)]
    )
    assert np.array_equal(log_probs > math.log(0.4), supports == 1)


def test_local_hashing_refuses_more_cells_than_hashes():
    with pytest.raises(InputError, match=r"epsilon <= 21.49 for local hashing, got epsilon=25"):
        OptimizedLocalHashing(epsilon=25, domain_size=4)


def test_local_hashing_over_a_huge_domain_is_asked_about_candidates_only():
    oracle = OptimizedLocalHashing(epsilon=1.0, domain_size=2**48)
    with pytest.raises(InputError, match="look for some candidates in reports"):
        oracle.aggregate(values=np.array([1]), rng=np.random.default_rng(8))


def test_report_sizes_are_those_of_the_stated_encodings():
    assert GeneralizedRandomizedResponse(epsilon=1, domain_size=1024).report_bits == 10
    assert Identity(epsilon=math.inf, domain_size=1024).report_bits == 10
    assert OptimizedUnaryEncoding(epsilon=1, domain_size=1024).report_bits == 1024
    assert OptimizedLocalHashing(epsilon=1, domain_size=1024).report_bits == 128 + 2
    assert BinaryLocalHashing(epsilon=9, domain_size=1024).report_bits == 128 + 1
    assert OptimizedLocalHashing(epsilon=1, domain_size=2**40).report_bits == 192 + 2


@every("name", ["grr", "ss", "oue", "olh", "hcms", "cms", "hr"])
def test_all_probabilities_at_once_are_those_of_each_value(name):
    params = {"num_cells": 4, "num_hashes": 4} if name in {"cms", "hcms"} else {}
    oracle = make_oracle(OracleSpec(name=name, epsilon=1.5, params=params), 4)
    reports = oracle.privatize(np.repeat(np.arange(4), 20), rng=np.random.default_rng(3))
    values = np.array([3, 0, 2])
    found = oracle.log_probs(reports, values)
    assert found == pytest.approx(FrequencyOracle.log_probs(oracle, reports, values), abs=1e-9)


@pytest.mark.slow("::test_all_probabilities_at_once_are_those_of_each_value")
def test_all_probabilities_of_a_long_report():
    params = {"num_cells": 200, "num_hashes": 64}
    oracle = make_oracle(OracleSpec(name="cms", epsilon=4.0, params=params), 500)
    reports = oracle.privatize(np.arange(500), rng=np.random.default_rng(3))
    values = np.arange(0, 500, 7)
    found = oracle.log_probs(reports, values)
    assert found == pytest.approx(FrequencyOracle.log_probs(oracle, reports, values), rel=1e-9)
    assert np.unique(found[:, 0]).size > 1
