from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import hadamard

from fedhh.hashing import HashFamily
from fedhh.kernels.sketches import hadamard_rows, sum_cells, sum_cells_of_range


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
    num_rows = 500
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
