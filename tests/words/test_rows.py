"""Rows looked up among others, where hashes distinguishes them and where they do not."""

from __future__ import annotations

import numpy as np

from fedhh.words import rows as module
from fedhh.words.rows import match_rows


def test_matching_rows_finds_each_row_and_nothing_else():
    codes = np.array([[1, 2, 0], [1, 2, 3], [256, 0, 0], [1, 0, 0]], dtype=np.uint16)
    rows = np.array([[1, 0, 0], [1, 2, 0], [2, 2, 2]], dtype=np.uint16)
    assert match_rows(codes, rows).tolist() == [1, -1, -1, 0]


def test_rows_of_one_hash_are_distinguished(monkeypatch):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, size=(200, 3)).astype(np.uint16)
    rows = np.unique(codes, axis=0)[::2]
    wanted = {row.tobytes(): number for number, row in enumerate(rows)}
    expected = [wanted.get(code.tobytes(), -1) for code in codes]
    assert match_rows(codes, rows).tolist() == expected
    # One of eight hashes each: rows meet, and codes meet rows that they are not.
    real = module.row_hashes
    monkeypatch.setattr(module, "row_hashes", lambda of: real(of) % np.uint64(8))
    assert match_rows(codes, rows).tolist() == expected


def test_rows_are_hashed_by_pieces(monkeypatch):
    monkeypatch.setattr(module, "_AT_ONCE", 2)
    codes = np.array([[1, 2], [1, 0], [3, 3], [1, 2], [2, 2]], dtype=np.uint16)
    assert match_rows(codes, codes[[3, 4]]).tolist() == [0, -1, -1, 0, 1]
    assert match_rows(codes[:0], codes[:1]).tolist() == []
