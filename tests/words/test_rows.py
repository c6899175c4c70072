"""Rows looked up among others."""

from __future__ import annotations

import numpy as np

from fedhh.words import rows as module
from fedhh.words.rows import match_rows


def test_matching_rows_finds_each_row_and_nothing_else():
    codes = np.array([[1, 2, 0], [1, 2, 3], [256, 0, 0], [1, 0, 0]], dtype=np.uint16)
    rows = np.array([[1, 0, 0], [1, 2, 0], [2, 2, 2]], dtype=np.uint16)
    assert match_rows(codes, rows).tolist() == [1, -1, -1, 0]
    # Columns of wider tables do not lie one after the other.
    assert match_rows(codes[:, :2], rows[:, :2]).tolist() == [1, 1, -1, 0]


def test_rows_are_looked_up_by_pieces(monkeypatch):
    monkeypatch.setattr(module, "_AT_ONCE", 2)
    codes = np.array([[1, 2], [1, 0], [3, 3], [1, 2], [2, 2]], dtype=np.uint16)
    assert match_rows(codes, codes[[3, 4]]).tolist() == [0, -1, -1, 0, 1]
    assert match_rows(codes[:0], codes[:1]).tolist() == []
    assert match_rows(codes, codes[:0]).tolist() == [-1] * 5
