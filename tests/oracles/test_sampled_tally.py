"""Tallies without reports against the joint distribution of tallies of reports."""

from __future__ import annotations

import math
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from fedhh.kernels.subset_tally import left_size
from fedhh.oracles import (
    CountMeanSketch,
    GeneralizedRandomizedResponse,
    OptimizedLocalHashing,
    SubsetSelection,
    subset_selection,
)
from fedhh.oracles.families import sum_of_bits
from fedhh.oracles.subset_selection import sample_subset_tally
from fedhh.random import kernel_state
from fedhh.simulation.fidelity import is_less_work
from fedhh.testing.oracle_distributions import tally_distribution
from fedhh.testing.statistics import ALPHA, distribution_p_value
from fedhh.validation import InputError
from tests.every import every
from tests.thinned import thinned

DRAWS = 5_000


def subset_oracle(domain_size, subset_size, odds):
    """Return Subset Selection with e**epsilon = odds and a given d, whatever its own rule says."""
    oracle = SubsetSelection(epsilon=math.log(odds), domain_size=domain_size)
    oracle.__dict__["d"] = subset_size
    return oracle


def joint_draws(oracle, counts, seed=0, draws=DRAWS):
    rng = np.random.default_rng(seed)
    return np.array([oracle.sample_aggregate(counts, rng=rng) for _ in range(draws)])


CASES = [
    (5, 2, 3.0, (1, 0, 2, 0, 1)),
    (4, 3, 3.0, (2, 1, 0, 0)),
    (6, 3, 8.0, (0, 2, 0, 0, 0, 1)),
    (7, 4, 4.0, (0, 0, 0, 0, 1, 0, 1)),
    (3, 1, 3.0, (2, 1, 3)),
    (2, 1, 4.0, (3, 2)),
]


@pytest.mark.parametrize("parts", [1, 4])
def test_few_tallies_without_reports_have_the_joint_distribution(monkeypatch, parts):
    monkeypatch.setattr(subset_selection, "_WORTH_PARTS", 2 if parts > 1 else 10**9)
    monkeypatch.setattr(subset_selection, "_MOST_PARTS", parts)
    in_turn = nullcontext(SimpleNamespace(map=map))
    monkeypatch.setattr(subset_selection, "ThreadPoolExecutor", lambda threads: in_turn)
    oracle, counts = subset_oracle(4, 3, 3.0), np.array([2, 1, 0, 0])
    distribution = tally_distribution(oracle, [0, 0, 1])
    drawn = joint_draws(oracle, counts, draws=600)
    assert distribution_p_value(drawn, distribution) > ALPHA
    swapped = joint_draws(oracle, np.roll(counts, 1), draws=600)
    assert distribution_p_value(swapped, distribution) < ALPHA
    more_private = joint_draws(subset_oracle(4, 3, 1.1), counts, draws=600)
    assert distribution_p_value(more_private, distribution) < ALPHA


@pytest.mark.slow("::test_few_tallies_without_reports_have_the_joint_distribution")
@pytest.mark.parametrize(("domain_size", "subset_size", "odds", "counts"), CASES)
def test_tallies_without_reports_have_the_joint_distribution(
    domain_size, subset_size, odds, counts
):
    oracle = subset_oracle(domain_size, subset_size, odds)
    counts = np.array(counts)
    distribution = tally_distribution(oracle, np.repeat(np.arange(domain_size), counts).tolist())
    if (domain_size, subset_size) == (5, 2):
        assert len([tally for tally, chance in distribution.items() if chance > 0]) == 320
    drawn = joint_draws(oracle, counts)
    assert distribution_p_value(drawn, distribution) > ALPHA
    # A little more or less privacy shows, and so does a client with another value.
    for by in (0.4, 2.5):
        other = subset_oracle(domain_size, subset_size, 1 + (odds - 1) * by)
        assert distribution_p_value(joint_draws(other, counts, seed=1), distribution) < ALPHA
    assert (
        distribution_p_value(joint_draws(oracle, np.roll(counts, 1), seed=2), distribution) < ALPHA
    )


@pytest.mark.slow("::test_few_tallies_without_reports_have_the_joint_distribution")
@pytest.mark.parametrize(("domain_size", "subset_size", "odds", "counts"), [CASES[0], CASES[3]])
def test_tallies_drawn_in_parts_have_the_joint_distribution(
    domain_size, subset_size, odds, counts, monkeypatch
):
    # Ranges of two values, and one of a single one, are left over.
    monkeypatch.setattr(subset_selection, "_WORTH_PARTS", 2)
    monkeypatch.setattr(subset_selection, "_MOST_PARTS", 4)
    # Threads take longer to start than tiny tallies to draw.
    in_turn = nullcontext(SimpleNamespace(map=map))
    monkeypatch.setattr(subset_selection, "ThreadPoolExecutor", lambda threads: in_turn)
    oracle = subset_oracle(domain_size, subset_size, odds)
    counts = np.array(counts)
    distribution = tally_distribution(oracle, np.repeat(np.arange(domain_size), counts).tolist())
    assert distribution_p_value(joint_draws(oracle, counts), distribution) > ALPHA
    assert (
        distribution_p_value(joint_draws(oracle, np.roll(counts, 1), seed=2), distribution) < ALPHA
    )
    # Parts that share a stream are not independent of each other.
    monkeypatch.setattr(
        subset_selection, "kernel_state", lambda rng: kernel_state(np.random.default_rng(rng.one))
    )
    shared = [
        sample_subset_tally(
            counts, subset_size=subset_size, epsilon=math.log(odds), rng=SimpleNamespace(one=seed)
        )
        for seed in range(DRAWS)
    ]
    assert distribution_p_value(np.array(shared), distribution) < ALPHA


@pytest.mark.parametrize("subset_size", thinned([40, 1, 60_000]))
def test_parts_follow_from_the_domain_alone(subset_size, monkeypatch):
    counts = np.arange(2**16 + 1) % 7
    tallies = []
    for cores in (1, 3):
        monkeypatch.setattr(subset_selection, "num_cores", lambda cores=cores: cores)
        rng = np.random.default_rng(0)
        tallies.append(sample_subset_tally(counts, subset_size=subset_size, epsilon=3.0, rng=rng))
    assert np.array_equal(*tallies)
    assert tallies[0].sum() == counts.sum() * subset_size


def test_values_that_are_drawn_apart_do_not_have_the_joint_distribution():
    oracle = subset_oracle(5, 2, 3.0)
    counts = np.array([1, 0, 2, 0, 1])
    distribution = tally_distribution(oracle, [0, 2, 2, 4])
    rng = np.random.default_rng(0)
    # Each value's own distribution is right, and the sum is made right: only the dependence is not.
    drawn = rng.binomial(counts, oracle.p, (4 * DRAWS, 5)) + rng.binomial(
        4 - counts, oracle.q, (4 * DRAWS, 5)
    )
    drawn = drawn[drawn.sum(axis=1) == 8]
    assert len(drawn) > DRAWS / 4
    assert distribution_p_value(drawn, distribution) < ALPHA


@pytest.mark.parametrize("draws", thinned([200, 1_500]))
def test_a_large_tally_has_its_means_variances_and_covariances(draws):
    oracle = SubsetSelection(epsilon=3.0, domain_size=301)
    counts = np.random.default_rng(0).multinomial(20_000, np.r_[0.5, np.full(300, 0.5 / 300)])
    n = int(counts.sum())
    rng = np.random.default_rng(1)
    tallies = np.array([oracle.sample_aggregate(counts, rng=rng) for _ in range(draws)])
    assert (tallies.sum(axis=1) == n * oracle.d).all()
    mean = counts * oracle.p + (n - counts) * oracle.q
    variance = oracle.variance(counts, n) * (oracle.p - oracle.q) ** 2
    z = (tallies - mean) / np.sqrt(variance)
    assert abs(z.mean(axis=0)).max() * np.sqrt(len(z)) < 6
    assert abs(z.var(axis=0) - 1).max() * np.sqrt(len(z) / 2) < 6
    # Neighbours in the tree, and values far from each other, depend alike. Given the client's
    # value, the d - x others are a uniform subset, x telling whether the value is among them.
    s, d, p, q = oracle.domain_size, oracle.d, oracle.p, oracle.q
    pair = (p * (d - 1) * (d - 2) + (1 - p) * d * (d - 1)) / ((s - 1) * (s - 2)) - q * q
    own = p * (d - 1) / (s - 1) - p * q
    for i, j in ((1, 2), (0, 300), (255, 256), (100, 200), (0, 1)):
        held = counts[i] + counts[j]
        expected = held * own + (n - held) * pair
        products = (tallies[:, i] - mean[i]) * (tallies[:, j] - mean[j])
        assert abs(products.mean() - expected) < 6 * products.std() / np.sqrt(len(products))
    # The control: as many independent binomials vary more in sum, by far.
    assert tallies.sum(axis=1).var() < 1e-6 * variance.sum()


@pytest.mark.parametrize("subset_size", [1, 2, 40, 1_000, 2_000])
def test_ten_billion_reports_have_every_value_s_own_distribution(subset_size):
    oracle = subset_oracle(2_001, subset_size, 3.0)
    rng = np.random.default_rng(subset_size)
    counts = rng.multinomial(10**10, np.full(2_001, 1 / 2_001))
    tally = oracle.sample_aggregate(counts, rng=rng)
    assert tally.sum() == 10**10 * subset_size
    mean = counts * oracle.p + (10**10 - counts) * oracle.q
    z = (tally - mean) / (np.sqrt(oracle.variance(counts, 10**10)) * (oracle.p - oracle.q))
    # 2,000 almost independent standard normals, their sum fixed.
    assert 1e-9 < stats.chi2(2_000).cdf((z**2).sum()) < 1 - 1e-9
    assert abs(z).max() < 7


def test_the_same_seed_gives_the_same_tally_and_others_another():
    counts = np.arange(1_000)
    first, second, other = (
        sample_subset_tally(counts, subset_size=5, epsilon=2.0, rng=np.random.default_rng(seed))
        for seed in (0, 0, 1)
    )
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_what_is_less_work_is_a_matter_of_sizes():
    def sampled(oracle, num_reports):
        return is_less_work(
            num_reports, report_draws=oracle.report_draws, tally_size=oracle.aggregate_size
        )

    gboard = SubsetSelection(epsilon=10.0, domain_size=1_000_001)
    assert sampled(gboard, 6 * 10**7)
    assert not sampled(gboard, 10**5)
    assert not sampled(GeneralizedRandomizedResponse(epsilon=8.0, domain_size=2**16), 10**4)
    sketch = CountMeanSketch(epsilon=4.0, domain_size=2**40)
    assert sampled(sketch, 10**6)
    assert not sampled(sketch, 10**4)
    assert not sampled(OptimizedLocalHashing(epsilon=4.0, domain_size=9), 10**9)


@pytest.mark.parametrize(
    ("reports", "hits", "flip"),
    [
        (9, 0, 0.3),
        (9, 9, 0.3),
        (500, 3, 0.02),
        (500, 60, 0.12),
        (10**6, 5, 0.4),
        (10**6, 10**5, 0.4),
    ],
)
def test_ones_of_a_cell_have_their_distribution(reports, hits, flip):
    held, rng = np.full(40_000, hits), np.random.default_rng(0)
    ones = sum_of_bits(held, reports, one=1 - flip, zero=flip, rng=rng)
    own = np.arange(hits + 1)
    others = np.arange(reports - hits + 1)
    if reports <= 500:
        distribution = np.convolve(
            stats.binom.pmf(own, hits, 1 - flip), stats.binom.pmf(others, reports - hits, flip)
        )
        outcomes = dict(enumerate(distribution.tolist()))
        assert distribution_p_value(ones.ravel(), outcomes) > ALPHA
        shifted = dict(
            enumerate(
                np.r_[0.5 * distribution[:1], (distribution[1:] + distribution[:-1]) / 2].tolist()
            )
        )
        assert distribution_p_value(ones.ravel(), shifted) < ALPHA
        return
    mean = hits * (1 - flip) + (reports - hits) * flip
    z = (ones - mean) / np.sqrt(reports * flip * (1 - flip))
    assert stats.kstest(z.ravel() + 0.0, "norm").pvalue > ALPHA
    assert stats.kstest(z.ravel() + 0.05, "norm").pvalue < ALPHA


@every(("size", "left"), [(2, 1), (3, 2), (4, 2), (5, 4), (8, 4), (9, 8), (100, 64)])
def test_the_left_half_of_a_range_is_the_largest_power_of_two_below_it(size, left):
    assert left_size.py_func(size) == left


def test_a_domain_of_as_many_values_as_kernels_number_is_the_largest():
    assert SubsetSelection(epsilon=8.0, domain_size=2**32 - 1).d >= 1
    with pytest.raises(InputError, match="domain_size <= 4294967295"):
        SubsetSelection(epsilon=8.0, domain_size=2**32)
