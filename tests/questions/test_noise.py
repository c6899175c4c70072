"""What chance does to votes: exact tails, and sketches that frequent values weigh on."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from fedhh.oracles import (
    CountMeanSketch,
    FastLocalHashing,
    HadamardCountMeanSketch,
    Identity,
    SubsetSelection,
)
from fedhh.oracles.hashed import SketchOracle
from fedhh.questions.noise import Noise, SketchNoise
from tests.thinned import thinned

ALPHA = 1e-9


def test_z_is_the_normal_quantile_of_the_exact_tail():
    oracle = SubsetSelection(epsilon=8.0, domain_size=39_001)
    # n q is 3.9: 12 votes look like 4.1 deviations, but a Poisson distribution of that mean reaches
    # them once in 1,050 times.
    votes, n = np.array([12]), 11_000
    tail = 1 - sum(math.comb(n, i) * oracle.q**i * (1 - oracle.q) ** (n - i) for i in range(12))
    z = Noise(oracle=oracle, num_reports=n).z(votes)[0]
    assert 0.5 * math.erfc(z / math.sqrt(2)) == pytest.approx(tail, rel=1e-6)
    assert z < 3.5 < (12 - n * oracle.q) / math.sqrt(n * oracle.q)


def test_an_estimate_above_all_reports_has_the_variance_of_all():
    oracle = SubsetSelection(epsilon=2.0, domain_size=20)
    found = Noise(oracle=oracle, num_reports=100).variance(np.array([-5.0, 0, 100, 130]))
    of_none = 100 * oracle.q * (1 - oracle.q) / (oracle.p - oracle.q) ** 2
    of_all = 100 * oracle.p * (1 - oracle.p) / (oracle.p - oracle.q) ** 2
    assert found == pytest.approx([of_none, of_none, of_all, of_all])


def test_z_of_votes_that_noise_cannot_reach_is_finite_only_with_noise():
    oracle = SubsetSelection(epsilon=8.0, domain_size=39_001)
    noise = Noise(oracle=oracle, num_reports=11_000)
    assert 100 < noise.z(np.array([9_000]))[0] < np.inf
    nothing = Noise(oracle=Identity(epsilon=math.inf, domain_size=4), num_reports=10)
    assert nothing.z(np.array([3, 0])).tolist() == [np.inf, -np.inf]


def sketches(**sizes):
    return [
        CountMeanSketch(epsilon=2.0, domain_size=10**6, num_cells=8, **sizes),
        HadamardCountMeanSketch(epsilon=2.0, domain_size=10**6, num_cells=8, **sizes),
        FastLocalHashing(epsilon=2.0, domain_size=10**6, **sizes),
    ]


def named(oracle) -> str:
    return type(oracle).__name__


def zipf_counts(num_reports: int, num_values: int):
    weights = 1 / np.arange(1, num_values + 1)
    return np.round(num_reports * weights / weights.sum()).astype(np.int64)


def sampled(oracle: SketchOracle, counts: np.ndarray, seed: int) -> np.ndarray:
    """The sketch of clients who hold the first values of the domain."""
    held = np.pad(counts, (0, oracle.domain_size - len(counts)))
    return oracle.sample_sketch(held, rng=np.random.default_rng(seed))


@pytest.mark.parametrize("oracle", sketches(num_hashes=5), ids=named)
def test_a_values_support_is_the_sum_of_its_cells(oracle):
    sketch = sampled(oracle, zipf_counts(500, 20), 1)
    cells = oracle.cells(sketch)[0]
    assert cells.shape == (5, oracle.row_size)
    values = np.arange(300)
    rows = np.repeat(np.arange(5), len(values))
    columns = oracle.hashes.cells(rows, np.tile(values, 5))
    sums = cells[rows, columns].reshape(5, len(values)).sum(axis=0)
    assert sums.tolist() == oracle.support(sketch, values).tolist()


@pytest.mark.parametrize("oracle", sketches(num_hashes=4), ids=named)
def test_the_distribution_of_a_sketch_is_that_of_all_its_cells(oracle):
    sketch = sampled(oracle, zipf_counts(300, 20), 2)
    distribution = SketchNoise.of(oracle, sketch)
    # Every way to choose one cell of each row.
    sums = sum(np.ix_(*oracle.cells(sketch)[0].astype(float))).ravel()
    assert distribution.center == pytest.approx(sums.mean(), rel=1e-12)
    assert distribution.variance == pytest.approx(sums.var(), rel=1e-9)
    assert distribution.chances.sum() == pytest.approx(1)
    votes = np.unique(np.ceil(sums)).astype(np.int64)
    tails = np.array([(sums >= vote).mean() for vote in votes])
    # Chernoff: a tail is at most exp(-z**2 / 2); 2 percent for the steps that cells are counted in.
    z = distribution.z(votes)
    assert (tails <= np.exp(-(z**2) / 2) * 1.02).all()
    assert (np.diff(z) >= 0).all()
    assert z[-1] > 1.5


def test_a_sketch_without_reports_has_no_distribution():
    oracle = sketches(num_hashes=4)[0]
    assert SketchNoise.of(oracle, np.zeros(oracle.aggregate_size, dtype=np.int64)) is None


@pytest.mark.parametrize("oracle", sketches(num_hashes=400), ids=named)
def test_without_frequent_values_the_distribution_of_a_sketch_changes_little(oracle):
    sums = oracle.aggregate(values=np.arange(200_000), rng=np.random.default_rng(3))
    alone = Noise(oracle=oracle, num_reports=200_000)
    seen = Noise.of_aggregate(oracle, 200_000, sums)
    spread = math.sqrt(200_000 * oracle.q * (1 - oracle.q))
    votes = (200_000 * oracle.q + spread * np.array([-2.0, 2.0, 4.0, 8.0])).astype(np.int64)
    z, expected = seen.z(votes), alone.z(votes)
    assert z[0] == pytest.approx(expected[0])
    # The center is known only to a deviation over sqrt(m).
    assert (z <= expected).all()
    assert z[1:] == pytest.approx(expected[1:], abs=1.5)
    assert seen.std == pytest.approx(alone.std, rel=0.1)


ROWS = 12
HEAVY = [
    CountMeanSketch(epsilon=6.0, domain_size=10**6, num_cells=256, num_hashes=ROWS),
    # Its reports say less, so that frequent values weigh on fewer rows only.
    HadamardCountMeanSketch(epsilon=6.0, domain_size=10**6, num_cells=256, num_hashes=ROWS // 6),
    FastLocalHashing(epsilon=6.0, domain_size=10**6, num_hashes=ROWS),
]


@pytest.mark.parametrize("oracle", thinned(HEAVY, keep=2), ids=named)
def test_values_that_share_cells_with_frequent_ones_are_not_called_significant(oracle):
    counts = zipf_counts(50_000, 500)
    n = int(counts.sum())
    sums = sampled(oracle, counts, 4)
    nobody = np.arange(1_000, 41_000)
    support = oracle.support(sums, nobody)
    alone = Noise(oracle=oracle, num_reports=n).z(support)
    seen = Noise.of_aggregate(oracle, n, sums).z(support)
    # Chernoff's bound at 3 is 0.011; the bound on the count holds but once in 1e9.
    most = stats.binom.isf(ALPHA, len(nobody), math.exp(-4.5))
    assert (seen >= 3).sum() <= most
    assert (seen >= 5).sum() <= stats.binom.isf(ALPHA, len(nobody), math.exp(-12.5))
    # The negative control: what the randomizer alone would explain.
    assert (alone >= 3).sum() > 2 * most
    frequent = oracle.support(sums, np.arange(3))
    assert Noise.of_aggregate(oracle, n, sums).z(frequent)[0] > 4


@pytest.mark.parametrize("which", thinned(range(3)))
def test_the_variance_that_a_sketch_shows_is_the_exact_one(which):
    counts = zipf_counts(20_000, 300)
    n = int(counts.sum())
    asked = np.array([0, 5, 200])
    exact = HEAVY[which].exact_variance(counts)[asked]
    alone = HEAVY[which].variance(counts[asked], n)
    shown = []
    for seed in range(60):
        oracle = replace(HEAVY[which], hash_seed=seed)
        sums = sampled(oracle, counts, seed)
        shown.append(Noise.of_aggregate(oracle, n, sums).variance(counts[asked].astype(float)))
    assert np.mean(shown, axis=0) == pytest.approx(exact, rel=0.1)
    assert (exact[1:] > 2 * alone[1:]).all()
