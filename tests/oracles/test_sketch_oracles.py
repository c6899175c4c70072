"""What the sketching oracles have in common."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from fedhh.hashing import HashFamily
from fedhh.oracles import (
    BassilySmith,
    CountMeanSketch,
    FastLocalHashing,
    GeneralizedRandomizedResponse,
    HadamardCountMeanSketch,
    Hashtogram,
)
from fedhh.oracles.bits import PackedUnaryEncoding
from fedhh.oracles.hadamard import HadamardSign
from fedhh.oracles.hashed import SketchOracle
from fedhh.testing import ALPHA, distribution_p_value
from fedhh.testing.oracle_distributions import aggregate_distribution
from fedhh.validation import InputError
from tests.thinned import thinned

PRIME = 2**61 - 1

MEDIUM = [
    CountMeanSketch(epsilon=2.0, domain_size=8, num_hashes=8, num_cells=16),
    HadamardCountMeanSketch(epsilon=2.0, domain_size=8, num_hashes=4, num_cells=8),
    Hashtogram(epsilon=2.0, domain_size=8, num_hashes=4, num_cells=8),
    FastLocalHashing(epsilon=2.0, domain_size=8, num_hashes=8),
    BassilySmith(epsilon=2.0, domain_size=8, num_hashes=16),
]
COUNTS = np.array([300, 250, 200, 100, 80, 50, 15, 5])


def name(oracle: object) -> str:
    return type(oracle).__name__


each_medium = pytest.mark.parametrize("oracle", MEDIUM, ids=name)


def cell(oracle: SketchOracle, row: int, value: int) -> int:
    return int(oracle.hashes.cells(np.array([row]), np.array([value]))[0])


CELLS = [
    GeneralizedRandomizedResponse(epsilon=1.0, domain_size=4),
    PackedUnaryEncoding(epsilon=1.0, domain_size=4),
    HadamardSign(epsilon=1.0, domain_size=4),
    HadamardSign(epsilon=1.0, domain_size=4, signed=True),
]


@pytest.mark.parametrize("inner", CELLS, ids=str)
def test_what_randomizes_cells_says_the_same_of_all_cells_and_of_one_beside_each_report(inner):
    space = inner.report_space()
    supports = np.array([inner.support(reports=report[None]) for report in space])
    logs = np.stack([inner.log_prob(space, cell) for cell in range(4)], axis=1)
    for cell in range(4):
        beside = np.full(len(space), cell)
        assert inner.log_prob(space, beside).tolist() == logs[:, cell].tolist()
    mixed = np.arange(len(space)) % 4
    assert inner.log_prob(space, mixed).tolist() == logs[np.arange(len(space)), mixed].tolist()
    # A report supports the cells that make it likelier, and no other.
    ahead = np.isclose(logs, logs.max(axis=1, keepdims=True))
    assert ((supports == 1) == ahead)[np.ptp(logs, axis=1) > 0].all()
    if isinstance(inner, PackedUnaryEncoding):
        return
    # Scores are the transpose of the support, up to what is the same for all reports.
    loads = np.array([[3, 0, 1, 2], [0, 5, 0, 1]])
    apart = inner.scores(loads) - loads @ supports.T * (2 if isinstance(inner, HadamardSign) else 1)
    assert np.ptp(apart, axis=1).tolist() == [0, 0]


@pytest.mark.parametrize("inner", CELLS[2:], ids=str)
def test_sums_of_signs_without_reports_have_the_distribution_of_those_of_reports(inner):
    rng, held = np.random.default_rng(5), np.array([1, 0, 1, 0])
    drawn = np.array([inner.sample_aggregate(held, rng=rng) for _ in range(4_000)])
    exact = aggregate_distribution(inner, [0, 2])
    assert distribution_p_value(drawn, exact) > ALPHA
    wrong = aggregate_distribution(replace(inner, epsilon=2.0), [0, 2])
    assert distribution_p_value(drawn, wrong) < ALPHA


# That reports follow their distribution is the suite's to check (tests/conformance).
SMALLEST = [
    CountMeanSketch(epsilon=1.5, domain_size=3, num_hashes=2, num_cells=2, hash_seed=1),
    HadamardCountMeanSketch(epsilon=1.5, domain_size=3, num_hashes=2, num_cells=2, hash_seed=1),
    Hashtogram(epsilon=1.5, domain_size=3, num_hashes=2, num_cells=2, hash_seed=1),
    FastLocalHashing(epsilon=1.08, domain_size=3, num_hashes=2, hash_seed=2),
    BassilySmith(epsilon=1.5, domain_size=3, num_hashes=3, hash_seed=1),
]


def sketch_p_value(oracle: SketchOracle, claimed: SketchOracle, *, from_histogram: bool) -> float:
    """Drawn sketches of two clients against the exact distribution."""
    rng = np.random.default_rng(8)
    if from_histogram:
        draw = lambda: oracle.sample_sketch(np.array([1, 0, 1]), rng=rng)  # noqa: E731
    else:
        draw = lambda: oracle.aggregate(values=np.array([0, 2]), rng=rng)  # noqa: E731
    # Few as they are, they show the wrong epsilons below.
    num = 9_000 if isinstance(oracle, FastLocalHashing) else 3_000
    return distribution_p_value(
        np.array([draw() for _ in range(num)]), aggregate_distribution(claimed, [0, 2])
    )


each_smallest = pytest.mark.parametrize("oracle", SMALLEST, ids=name)


@pytest.mark.parametrize("from_histogram", [False, True])
@pytest.mark.parametrize("oracle", thinned(SMALLEST), ids=name)
def test_a_sketch_drawn_without_storing_reports_has_the_distribution_of_a_sketch_of_reports(
    oracle, from_histogram
):
    assert sketch_p_value(oracle, oracle, from_histogram=from_histogram) > ALPHA


@each_smallest
@pytest.mark.parametrize(("from_histogram", "change"), thinned([(False, 0.8), (True, -0.8)]))
def test_the_test_of_sketches_notices_a_wrong_epsilon(oracle, from_histogram, change):
    # Less for local hashing, which keeps its number of cells then.
    if isinstance(oracle, FastLocalHashing):
        change *= 0.2
    wrong = replace(oracle, epsilon=oracle.epsilon + change)
    assert sketch_p_value(wrong, oracle, from_histogram=from_histogram) < ALPHA


def supports(oracle: SketchOracle, report: list[int], value: int) -> bool:
    """The definition, for one report and one value."""
    own = cell(oracle, report[0], value)
    if isinstance(oracle, CountMeanSketch):
        return bool(report[1 + own // 64] >> (own % 64) & 1)
    if isinstance(oracle, HadamardCountMeanSketch):
        return report[2] == (-1) ** (own & report[1]).bit_count()
    if isinstance(oracle, Hashtogram):
        return report[2] == (-1) ** ((own // 2 & report[1]).bit_count() + own)
    return report[1] == own


@each_medium
def test_a_tally_counts_the_reports_that_support_each_candidate(oracle):
    rng = np.random.default_rng(9)
    reports = oracle.privatize(rng.integers(8, size=120), rng=rng)
    expected = [sum(supports(oracle, r, v) for r in reports.tolist()) for v in range(8)]
    assert oracle.support(reports=reports, candidates=np.arange(8)).tolist() == expected
    assert oracle.support(reports=reports, candidates=np.array([5, 2])).tolist() == [
        expected[5],
        expected[2],
    ]
    sketch = oracle.aggregate(reports)
    assert oracle.support(sketch, np.arange(8)).tolist() == expected
    assert oracle.support(np.stack([sketch, 0 * sketch]))[0].tolist() == expected


@each_medium
def test_fused_tallies_add_to_what_is_there(oracle):
    values = np.arange(8)
    sketch = oracle.aggregate(values=values, rng=np.random.default_rng(3))
    more = np.full(oracle.aggregate_size, 7)
    oracle.aggregate(values=values, rng=np.random.default_rng(3), out=more)
    assert (more == sketch + 7).all()


def all_hash_families(num_cells: int, num_hashes: int) -> list[HashFamily]:
    """Every way to send the values 0, 1, 2 to cells, as polynomials that do it."""

    def polynomial(c0: int, c1: int, c2: int) -> list[int]:
        half = pow(2, -1, PRIME)
        square = (c2 - 2 * c1 + c0) * half % PRIME
        return [c0, (c1 - c0 - square) % PRIME, square]

    functions = [polynomial(*cells) for cells in itertools.product(range(num_cells), repeat=3)]
    return [
        HashFamily(coefficients=np.array(rows, dtype=np.uint64), num_cells=num_cells)
        for rows in itertools.product(functions, repeat=num_hashes)
    ]


EXACT = [
    (CountMeanSketch(epsilon=1.2, domain_size=3, num_hashes=2, num_cells=2), 2),
    (CountMeanSketch(epsilon=1.2, domain_size=3, num_hashes=1, num_cells=4), 4),
    (HadamardCountMeanSketch(epsilon=1.2, domain_size=3, num_hashes=2, num_cells=2), 2),
    (HadamardCountMeanSketch(epsilon=1.2, domain_size=3, num_hashes=1, num_cells=4), 4),
    (Hashtogram(epsilon=1.2, domain_size=3, num_hashes=2, num_cells=1), 2),
    (Hashtogram(epsilon=1.2, domain_size=3, num_hashes=1, num_cells=2), 4),
    (FastLocalHashing(epsilon=0.3, domain_size=3, num_hashes=2), 2),
    (FastLocalHashing(epsilon=1.2, domain_size=3, num_hashes=1), 4),
    (BassilySmith(epsilon=1.2, domain_size=3, num_hashes=2), 2),
]


@pytest.mark.parametrize(("oracle", "num_cells"), EXACT, ids=name)
def test_over_all_hash_functions_estimates_are_unbiased_with_the_exact_variance(oracle, num_cells):
    # Exact: every assignment of three values to cells is equally likely, and given one, a count
    # is a sum of independent supports whose chances follow from the distribution of reports.
    counts = np.array([7, 4, 1])
    num_reports = int(counts.sum())
    space = oracle.report_space()
    means, variances = [], []
    assert oracle.row_size == num_cells
    for family in all_hash_families(num_cells, oracle.num_hashes):
        oracle.__dict__["hashes"] = family
        supported = np.array(
            [oracle.support(reports=report[None], candidates=np.arange(3)) for report in space]
        )
        distribution = np.exp([oracle.log_prob(space, value) for value in range(3)])
        chances = distribution @ supported
        means.append(oracle.estimate(counts @ chances, num_reports))
        variances.append(counts @ (chances * (1 - chances)))
    del oracle.__dict__["hashes"]
    assert np.allclose(np.mean(means, axis=0), counts, rtol=1e-12)
    total = np.mean(variances, axis=0) / (oracle.p - oracle.q) ** 2 + np.var(means, axis=0)
    assert np.allclose(total, oracle.exact_variance(counts), rtol=1e-10)


@pytest.mark.slow("::test_over_all_hash_functions_estimates_are_unbiased_with_the_exact_variance")
@each_medium
def test_drawn_hash_functions_give_the_exact_variance_within_five_percent(oracle):
    runs = 2000
    estimates = np.empty((runs, 8))
    rng = np.random.default_rng(10)
    for run in range(runs):
        drawn = replace(oracle, hash_seed=run)
        tally = drawn.support(drawn.sample_sketch(COUNTS, rng=rng))
        estimates[run] = drawn.estimate(tally, 1000)
    variance = oracle.exact_variance(COUNTS)
    bias = np.abs(estimates.mean(axis=0) - COUNTS) / np.sqrt(variance / runs)
    assert bias.max() < 5
    # Items share most of the noise's distribution; their mean ratio is steadier than any single
    # one.
    ratio = ((estimates - COUNTS) ** 2).mean(axis=0) / variance
    assert abs(ratio.mean() - 1) < 0.05
    assert np.abs(ratio - 1).max() < 0.1


@each_medium
def test_collisions_add_to_the_variance_only_where_clients_hold_equal_values(oracle):
    alone = np.ones(8, dtype=np.int64)
    assert np.allclose(oracle.exact_variance(alone), oracle.variance(1, 8), rtol=1e-12)
    assert (oracle.exact_variance(COUNTS) > oracle.variance(COUNTS, 1000)).all()


@each_medium
def test_hash_functions_are_shared_by_equal_parameters_and_differ_by_seed(oracle):
    assert (replace(oracle).hashes.coefficients == oracle.hashes.coefficients).all()
    other = replace(oracle, hash_seed=1)
    assert (other.hashes.coefficients != oracle.hashes.coefficients).any()


@each_medium
def test_bad_arguments_are_refused_in_one_line(oracle):
    with pytest.raises(InputError, match="num_hashes >= 1, got num_hashes=0"):
        replace(oracle, num_hashes=0)
    with pytest.raises(InputError, match="lower num_hashes"):
        replace(oracle, num_hashes=2**30)
    with pytest.raises(InputError, match="Expected 8 counts >= 0"):
        oracle.sample_sketch(np.append(COUNTS, 1), rng=np.random.default_rng(0))
    with pytest.raises(InputError, match="with minimum -1"):
        oracle.sample_sketch(-COUNTS // COUNTS.max(), rng=np.random.default_rng(0))
    large = replace(oracle, domain_size=2**60)
    with pytest.raises(InputError, match="ask about candidates"):
        large.support(np.zeros((1, oracle.aggregate_size), dtype=np.int64))


@each_medium
def test_values_may_be_keys_of_sixty_one_bits(oracle):
    large = replace(oracle, domain_size=PRIME, epsilon=6.0, num_hashes=64)
    held = np.array([PRIME - 1, 2**60, 12345])
    values = np.repeat(held, [6000, 3000, 1000])
    sketch = large.aggregate(values=values, rng=np.random.default_rng(11))
    estimates = large.estimate(large.support(sketch, np.r_[held, 77]), 10_000)
    deviations = np.sqrt(large.exact_variance(np.array([6000, 3000, 1000, 0])))
    assert (np.abs(estimates - [6000, 3000, 1000, 0]) < 5 * deviations).all()
