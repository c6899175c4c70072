from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import hadamard
from scipy.stats import chi2

from fedhh.hashing import HashFamily
from fedhh.kernels.prng import lane_states
from fedhh.kernels.sketch_reports import add_noisy_rows
from fedhh.kernels.sketches import hadamard_rows, sum_cells, sum_cells_of_range
from fedhh.testing import ALPHA, follows_law


@pytest.mark.parametrize("num_cells", [16, 100])
def test_sums_over_rows_are_those_of_looking_up_every_cell(num_cells):
    rng = np.random.default_rng(1)
    family = HashFamily.draw(num_hashes=5, num_cells=num_cells, seed=2)
    tables = rng.integers(-50, 50, size=(2, 5, num_cells))
    # More keys than a chunk holds.
    keys = np.arange(20_000)
    expected = np.zeros((2, len(keys)), dtype=np.int64)
    for row in range(5):
        expected += tables[:, row, family.cells(np.full(len(keys), row), keys)]
    assert (sum_cells(family.coefficients, tables, keys) == expected).all()
    assert (sum_cells_of_range(family.coefficients, tables, len(keys)) == expected).all()


# Tables share words: five with 12 bits each, sums taken out before they run over; fewer where cells
# are larger, down to one of 64 bits.
@pytest.mark.parametrize("largest", [1, 3, 200, 2**20, 2**40, 2**51])
@pytest.mark.parametrize("num_tables", [1, 2, 5, 70])
def test_tables_side_by_side_in_a_word_do_not_run_over(num_tables, largest):
    rng = np.random.default_rng(4)
    num_rows = 2000
    family = HashFamily.draw(num_hashes=num_rows, num_cells=8, seed=5)
    # The largest cells everywhere but for one: what bits can hold is used up.
    tables = np.full((num_tables, num_rows, 8), largest)
    tables[:, :, 0] = rng.integers(-largest, largest, size=(num_tables, num_rows))
    tables[:, ::7] -= largest // 2
    keys = np.arange(40)
    rows = np.arange(num_rows)
    cells = np.stack([family.cells(rows, np.full(num_rows, key)) for key in keys.tolist()])
    expected = tables[:, rows, cells].sum(axis=2)
    assert (sum_cells(family.coefficients, tables, keys) == expected).all()
    assert (sum_cells_of_range(family.coefficients, tables, len(keys)) == expected).all()


def test_no_keys_have_no_sums():
    family = HashFamily.draw(num_hashes=3, num_cells=8, seed=5)
    tables = np.ones((2, 3, 8), dtype=np.int64)
    assert sum_cells(family.coefficients, tables, np.zeros(0, dtype=np.int64)).shape == (2, 0)
    assert sum_cells_of_range(family.coefficients, tables, 0).shape == (2, 0)


def test_hadamard_rows_are_products_with_the_hadamard_matrix():
    table = np.random.default_rng(3).integers(-9, 9, size=(4, 32))
    expected = table @ hadamard(32)
    hadamard_rows(table)
    assert (table == expected).all()


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
    assert follows_law(table[:, 1] + table[:, 2], {0: 0.49, 1: 0.42, 2: 0.09})


def test_reports_go_to_their_own_rows():
    table = np.zeros((3, 8), dtype=np.int64)
    states = lane_states(np.random.default_rng(6))
    add_noisy_rows(np.array([2, 0, 2]), np.array([5, 1, 5]), np.uint64(0), table, states)
    assert table.sum() == 3
    assert table[2, 5] == 2
    assert table[0, 1] == 1
