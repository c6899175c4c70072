from __future__ import annotations

import numpy as np

from fedhh.kernels.client_votes import add_distinct


def reference(supported: np.ndarray, size: int) -> np.ndarray:
    return np.sum([np.isin(np.arange(size), row) for row in supported], axis=0)


def test_a_row_counts_once_for_each_of_its_values():
    rng = np.random.default_rng(3)
    supported = rng.integers(0, 9, (200, 7))
    out = np.arange(9)
    add_distinct(supported, out)
    np.testing.assert_array_equal(out - np.arange(9), reference(supported, 9))
    assert (out - np.arange(9) < np.bincount(supported.ravel(), minlength=9)).any()


def test_no_row_and_no_column_add_nothing():
    for shape in ((0, 3), (4, 0)):
        out = np.zeros(5, dtype=np.int64)
        add_distinct(np.zeros(shape, dtype=np.int64), out)
        assert not out.any()
