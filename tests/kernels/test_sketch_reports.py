"""Reports of mean sketches one by one: bits, sums, and what they say of a few values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from fedhh.kernels.prng import lane_states
from fedhh.kernels.sketch_reports import add_noisy_rows, noisy_vectors
from fedhh.oracles import CountMeanSketch, HadamardCountMeanSketch
from fedhh.random import kernel_state
from fedhh.testing import ALPHA, follows_distribution

ORACLES = [
    CountMeanSketch(epsilon=2.0, domain_size=50, num_hashes=7, num_cells=70),
    HadamardCountMeanSketch(epsilon=2.0, domain_size=50, num_hashes=7, num_cells=64),
]


@pytest.mark.parametrize("flip", [0.5, 0.3, 0.01])
def test_every_vector_has_its_probability(flip):
    n, cells = 60_000, 4
    rng = np.random.default_rng(1)
    own = np.full(n, 2, dtype=np.int64)
    bits = noisy_vectors(own, cells, np.uint64(round(flip * 2.0**64)), kernel_state(rng))
    found = bits[:, 0].astype(np.int64)

    def distribution(p):
        flips = [(vector ^ 0b0100).bit_count() for vector in range(16)]
        return {vector: p**f * (1 - p) ** (4 - f) for vector, f in enumerate(flips)}

    assert follows_distribution(found, distribution(flip))
    assert not follows_distribution(found, distribution(flip * 0.8))


def test_coins_far_apart_are_independent():
    """Bits of one word share random words, and must not know of each other."""
    rng = np.random.default_rng(2)
    own = np.zeros(100_000, dtype=np.int64)
    bits = noisy_vectors(own, 130, np.uint64(round(0.25 * 2.0**64)), kernel_state(rng))
    assert not (bits[:, 2] >> np.uint64(2)).any()

    def bit(place):
        return (bits[:, place // 64] >> np.uint64(place % 64)) & np.uint64(1)

    for a, b in ((1, 2), (5, 63), (63, 64), (7, 129)):
        pairs = (2 * bit(a) + bit(b)).astype(np.int64)
        assert follows_distribution(pairs, {0: 9 / 16, 1: 3 / 16, 2: 3 / 16, 3: 1 / 16})


@pytest.mark.parametrize("oracle", ORACLES, ids=["cms", "hcms"])
def test_a_few_values_are_asked_without_the_sketch(oracle):
    values = np.random.default_rng(3).integers(50, size=40)
    reports = oracle.privatize(values, rng=np.random.default_rng(4))
    candidates = np.array([0, 7, 49])
    direct = oracle.support(reports=reports, candidates=candidates)
    assert direct.tolist() == oracle.support(oracle.aggregate(reports), candidates).tolist()
    # A sketch is the way where it is the smaller one.
    many = np.tile(reports, (100, 1))
    assert oracle.support(reports=many, candidates=candidates).tolist() == (100 * direct).tolist()


@pytest.mark.parametrize("oracle", ORACLES, ids=["cms", "hcms"])
def test_narrow_tables_hold_the_same_sums(oracle):
    reports = oracle.privatize(np.arange(50), rng=np.random.default_rng(5))
    narrow = np.zeros((7, oracle.aggregate_size // 7), dtype=np.int16)
    oracle.add_to_table(reports, narrow)
    assert (narrow.ravel() == oracle.aggregate(reports)).all()
    if isinstance(oracle, CountMeanSketch):
        ones = np.unpackbits(reports[:, 1:].copy().view(np.uint8))
        assert narrow.sum() == ones.sum()


# The middle chance has sixteen leading bits that are all zero, so that every flip is settled by
# the further bits; the others have both.
@pytest.mark.parametrize("chance", [0.27, 3 * 2.0**-19, 1e-3])
def test_noisy_rows_flip_every_entry_with_the_stated_chance(chance):
    assert flip_statistic(chance, chance) < chi2.isf(ALPHA, 10)


def test_the_test_of_flips_notices_too_many_and_too_few():
    assert flip_statistic(0.27, 0.26) > chi2.isf(ALPHA, 10)
    assert flip_statistic(0.27, 0.28) > chi2.isf(ALPHA, 10)


def flip_statistic(claimed: float, used: float) -> float:
    """Sum of squared z-scores of ten cells, each with its own share of set entries."""
    num_reports, num_cells = 60_000, 10
    rng = np.random.default_rng(4)
    cells = rng.integers(7, size=num_reports)
    table = np.zeros((1, num_cells), dtype=np.int64)
    rows = np.zeros(num_reports, dtype=np.int64)
    add_noisy_rows(rows, cells, np.uint64(round(used * 2.0**64)), table, lane_states(rng))
    held = np.bincount(cells, minlength=num_cells)
    mean = held * (1 - claimed) + (num_reports - held) * claimed
    return float(((table[0] - mean) ** 2 / (num_reports * claimed * (1 - claimed))).sum())


def test_entries_of_a_report_are_flipped_independently():
    # Sums of two neighboring entries over single reports: 0, 1 or 2 flips.
    num_reports = 40_000
    rng = np.random.default_rng(5)
    table = np.zeros((num_reports, 4), dtype=np.int64)
    rows = np.arange(num_reports)
    add_noisy_rows(rows, np.zeros_like(rows), np.uint64(round(0.3 * 2.0**64)), table,
                   lane_states(rng))  # fmt: skip
    assert follows_distribution(table[:, 1] + table[:, 2], {0: 0.49, 1: 0.42, 2: 0.09})


def test_reports_go_to_their_own_rows():
    table = np.zeros((3, 8), dtype=np.int64)
    states = lane_states(np.random.default_rng(6))
    add_noisy_rows(np.array([2, 0, 2]), np.array([5, 1, 5]), np.uint64(0), table, states)
    assert table.sum() == 3
    assert table[2, 5] == 2
    assert table[0, 1] == 1


def test_rows_of_more_cells_than_coins_are_drawn_at_once_are_filled_report_by_report():
    table = np.zeros((1, 2**15 + 8), dtype=np.int64)
    states = lane_states(np.random.default_rng(6))
    cells = np.array([0, 2**15, 2**15])
    add_noisy_rows(np.zeros(3, dtype=np.int64), cells, np.uint64(0), table, states)
    assert (table[0, 0], table[0, 2**15], table.sum()) == (1, 2, 3)
