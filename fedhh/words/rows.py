"""Rows of codes, found among others by hashing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedhh.random import GOLDEN
from fedhh.words.trie import Codes

_29 = np.uint64(29)
_AT_ONCE = 2**18
_SPARSE = 32
"""Of the bits that rows are first looked up in, at most one in so many is set."""


def row_hashes(codes: Codes) -> npt.NDArray[np.uint64]:
    """Return ``(n,) uint64``: a hash of each row; four codes at a time, by multiplication."""
    columns = -(-codes.shape[1] // 4)
    padded = np.zeros((len(codes), 4 * columns), dtype=np.uint16)
    padded[:, : codes.shape[1]] = codes
    hashes = np.zeros(len(codes), dtype=np.uint64)
    for part in padded.view(np.uint64).T:
        hashes = (hashes ^ part) * GOLDEN
        hashes ^= hashes >> _29
    return hashes


def match_rows(codes: Codes, rows: Codes) -> npt.NDArray[np.int64]:
    """Return for each row of ``codes`` its position among ``rows``, or -1.

    Args:
        codes: ``(n, width) uint16``.
        rows: ``(m, width) uint16``, distinct.
    """
    matches = np.full(len(codes), -1, dtype=np.int64)
    if not len(rows):
        return matches
    # Most rows match none, which a look at some bits of their hashes tells.
    mask = np.uint64((1 << (_SPARSE * len(rows)).bit_length()) - 1)
    marked = np.zeros(int(mask) + 1, dtype=np.bool_)
    wanted = row_hashes(rows)
    marked[wanted & mask] = True
    is_near = np.zeros(len(codes), dtype=np.bool_)
    # In pieces, since hashes and what they are made of are larger than the codes.
    for first in range(0, len(codes), _AT_ONCE):
        piece = slice(first, first + _AT_ONCE)
        is_near[piece] = marked[row_hashes(codes[piece]) & mask]
    near = np.flatnonzero(is_near)
    keys = row_hashes(codes[near])
    order = np.argsort(wanted)
    if (wanted[order][1:] == wanted[order][:-1]).any():
        # Fixed-width byte strings compare as a whole; numpy drops trailing zeros, which are END.
        kind = f"S{2 * codes.shape[1]}"
        keys = np.ascontiguousarray(codes[near]).view(kind).ravel()
        wanted = np.ascontiguousarray(rows).view(kind).ravel()
        order = np.argsort(wanted)
    slots = np.minimum(np.searchsorted(wanted[order], keys), len(rows) - 1)
    hits = order[slots]
    hits[wanted[hits] != keys] = -1
    same = np.flatnonzero(hits >= 0)
    same = same[(codes[near[same]] == rows[hits[same]]).all(axis=1)]
    matches[near[same]] = hits[same]
    return matches
