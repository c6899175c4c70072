from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import hadamard

from fedhh.hashing import HashFamily
from fedhh.kernels.sketches import hadamard_rows, sum_cells


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


def test_no_keys_have_no_sums():
    family = HashFamily.draw(num_hashes=3, num_cells=8, seed=5)
    tables = np.ones((2, 3, 8), dtype=np.int64)
    assert sum_cells(family.coefficients, tables, np.zeros(0, dtype=np.int64)).shape == (2, 0)


def test_hadamard_rows_are_products_with_the_hadamard_matrix():
    table = np.random.default_rng(3).integers(-9, 9, size=(4, 32))
    expected = table @ hadamard(32)
    hadamard_rows(table)
    assert (table == expected).all()
