from __future__ import annotations

import math

import numpy as np
import pytest

from fedhh.oracles import CountMeanSketch, FastLocalHashing, HadamardCountMeanSketch
from fedhh.validation import InputError
from tests.every import every

EIGHT = (300, 250, 200, 100, 80, 50, 15, 5)
FOUR = (1000, 500, 100, 0)

# Independently computed reference: counts, item, epsilon, k, m, and the variances of the item's
# estimate: cms exact, cms published, hcms exact, hcms published.
VARIANCES = [
    (EIGHT, 0, 2.0, 8, 16, 2102.1052894097547, 2199.966400520866, 2625.071267588335,
     3042.9323786994464),
    (EIGHT, 7, 2.0, 8, 16, 2869.1052894097547, 2999.7441782986434, 3706.737934255002,
     3842.710156477224),
    (EIGHT, 0, 4.0, 4, 8, 4656.0711546012435, 5364.999726029815, 5318.936675706868,
     6370.722389992582),
    (EIGHT, 7, 4.0, 4, 8, 7901.071154601244, 9037.448705621651, 8901.079532849726,
     10043.17136958442),
    (FOUR, 0, 4.0, 65536, 1024, 290.7815466658202, 291.76060537621413, 723.0497340806866,
     1725.0063098976298),
    (FOUR, 3, 4.0, 65536, 1024, 291.773964583976, 291.7755356839266, 1725.0196691053918,
     1725.021240205342),
    (FOUR, 0, 2.0, 65536, 256, 1487.0224189945886, 1490.9686904575624, 1772.3241421616467,
     2780.1919822520717),
    (FOUR, 3, 2.0, 65536, 256, 1491.0037661721315, 1491.0287635063899, 2780.22705796664,
     2780.252055300899),
]  # fmt: skip


def published_variance(oracle, true_counts: np.ndarray) -> np.ndarray:
    """Apple (2017), Theorems 4.2 and 4.4, for every value of a histogram.

    With the others' counts f*: ``(m/(m-1))**2 [noise n + sum f*^2 / (k m)]``. The paper prints it
    as an equality.
    """
    kept, m = oracle.p, oracle.num_cells
    noise = 1 / (2 * kept - 1) ** 2
    if isinstance(oracle, CountMeanSketch):
        noise = kept * (1 - kept) * noise + 1 / m
    counts = np.asarray(true_counts, dtype=np.float64)
    squares = counts**2
    collisions = (squares.sum() - squares) / (oracle.num_hashes * m)
    return (m / (m - 1)) ** 2 * (noise * counts.sum() + collisions)


@every("row", VARIANCES)
def test_variances_are_those_of_an_independent_reference(row):
    counts, item, epsilon, k, m, *expected = row
    sizes = {"epsilon": epsilon, "domain_size": len(counts), "num_hashes": k, "num_cells": m}
    cms, hcms = CountMeanSketch(**sizes), HadamardCountMeanSketch(**sizes)
    histogram = np.array(counts)
    got = [
        variances[item]
        for oracle in (cms, hcms)
        for variances in (
            oracle.exact_variance(histogram),
            published_variance(oracle, histogram),
        )
    ]
    assert np.allclose(got, expected, rtol=1e-12)
    assert got[0] < got[1]
    assert got[2] < got[3]


@pytest.mark.parametrize("kind", [CountMeanSketch, HadamardCountMeanSketch])
def test_the_estimate_is_the_papers_from_the_papers_matrix(kind):
    oracle = kind(epsilon=2.0, domain_size=8, num_hashes=4, num_cells=8)
    rng = np.random.default_rng(0)
    values = rng.integers(8, size=500)
    reports = oracle.privatize(values, rng=rng)
    m, k, n = 8, 4, 500
    matrix = np.zeros((k, m))
    # Algorithms 3 and 7, report by report, in floating point.
    if kind is CountMeanSketch:
        scale = (math.exp(1.0) + 1) / (math.exp(1.0) - 1)
        for row, bits in reports.tolist():
            vector = np.array([1 if bits >> i & 1 else -1 for i in range(m)])
            matrix[row] += k * (scale / 2 * vector + 1 / 2)
    else:
        scale = (math.exp(2.0) + 1) / (math.exp(2.0) - 1)
        for row, coefficient, sign in reports.tolist():
            matrix[row] += [
                k * scale * sign * (-1) ** (coefficient & cell).bit_count() for cell in range(m)
            ]
    sketch = oracle.aggregate(reports)
    for value in range(8):
        cells = oracle.hashes.cells(np.arange(k), np.full(k, value))
        expected = m / (m - 1) * (matrix[np.arange(k), cells].sum() / k - n / m)
        support = oracle.support(sketch, np.array([value]))
        assert math.isclose(oracle.estimate(support, n)[0], expected, rel_tol=1e-9)


# Independently computed reference: Apple's figure 4b, the deviation of the item of rank 10.
FIGURE = [(16, 2048, 63_210), (256, 256, 42_583), (1024, 2048, 12_074), (4096, 65536, 9_620)]


def zipf_histogram() -> np.ndarray:
    weights = 1 / np.arange(1, 100_001)
    return 1e8 * weights / weights.sum()


def deviation(counts: np.ndarray, value: int, *, cells: int, hashes: int) -> float:
    """By Theorem 4.2 of Apple (2017), an upper bound."""
    oracle = CountMeanSketch(
        epsilon=2.0, domain_size=len(counts), num_cells=cells, num_hashes=hashes
    )
    return math.sqrt(published_variance(oracle, counts)[value])


@pytest.mark.parametrize(("m", "k", "expected"), FIGURE)
def test_the_deviation_by_size_is_the_papers_figure(m, k, expected):
    counts = zipf_histogram()
    assert round(deviation(counts, 9, cells=m, hashes=k)) == expected
    assert deviation(counts, 9, cells=m, hashes=2 * k) < expected


def test_no_sketch_size_goes_below_the_floor():
    floor = math.sqrt(10**8 * math.e) / (math.e - 1)
    assert round(floor) == 9_595
    assert floor < deviation(zipf_histogram(), 9, cells=2**19, hashes=2**10) < 1.002 * floor


@pytest.mark.slow("::test_the_deviation_by_size_is_the_papers_figure")
def test_simulated_errors_lie_on_the_surface():
    # One run at the figure's population and one of its sizes. The rarer items have all but the
    # same error distribution, and there are thousands of them.
    counts = np.round(zipf_histogram()).astype(np.int64)
    oracle = CountMeanSketch(epsilon=2.0, domain_size=len(counts), num_hashes=256, num_cells=256)
    num_reports = int(counts.sum())
    sketch = oracle.sample_sketch(counts, rng=np.random.default_rng(2))
    rare = np.arange(1000, len(counts), 25)
    errors = oracle.estimate(oracle.support(sketch, rare), num_reports) - counts[rare]
    expected = np.sqrt(oracle.exact_variance(counts)[rare].mean())
    assert abs(np.sqrt((errors**2).mean()) / expected - 1) < 0.05
    published = deviation(counts, 1000, cells=256, hashes=256)
    assert abs(np.sqrt((errors**2).mean()) / published - 1) < 0.05


def test_report_sizes_are_those_of_the_papers_deployments():
    assert CountMeanSketch(epsilon=4, domain_size=2600, num_hashes=65536).report_bits == 1040
    hadamard = HadamardCountMeanSketch(
        epsilon=4, domain_size=250_000, num_hashes=1024, num_cells=32768
    )
    assert hadamard.report_bits == 26
    hashing = FastLocalHashing(epsilon=math.log(7), domain_size=10, num_hashes=1024)
    assert hashing.report_bits == 13


def test_local_hashing_refuses_an_epsilon_that_needs_too_many_cells():
    with pytest.raises(InputError, match=r"epsilon <= 20, got epsilon=30\.0"):
        FastLocalHashing(epsilon=30.0, domain_size=8)


def test_one_cell_is_refused():
    with pytest.raises(InputError, match="num_cells >= 2, got num_cells=1"):
        CountMeanSketch(epsilon=1, domain_size=8, num_cells=1)
