"""Rows of a table found by their keys, by hashing: one look in memory for most keys."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from fedhh.kernels.cache import compiled, subroutine
from fedhh.random import GOLDEN

_Ints = npt.NDArray[np.int64]


@numba.njit(inline="always")
def slot_count(size: Any) -> Any:
    """Return how many slots, a power of two, keep a hash table of so many at most half full."""
    slots = 2
    while slots < 2 * size:
        slots *= 2
    return slots


@compiled
def make_slots(keys: _Ints) -> _Ints:
    """Return a hash table of the rows of distinct keys, for `copy_entries`.

    Args:
        keys: ``(n,) int64``, distinct and not negative.

    Returns:
        ``(slots, 2) int64``: key and row, or -1 in a free slot; at least half of them are free.
    """
    slots = np.full((slot_count(len(keys)), 2), -1, dtype=np.int64)
    mask, shift = len(slots) - 1, _shift(slots)
    for row in range(len(keys)):
        slot = np.int64((np.uint64(keys[row]) * GOLDEN) >> shift)
        while slots[slot, 0] >= 0:
            slot = (slot + 1) & mask
        slots[slot, 0] = keys[row]
        slots[slot, 1] = row
    return slots


@subroutine
def _shift(slots: _Ints) -> Any:
    """Return by how much a hash is shifted to number one of 2**bits slots: 64 - bits."""
    bits = 0
    while (1 << bits) < len(slots):
        bits += 1
    return np.uint64(64 - bits)


@compiled
def copy_entries(slots: _Ints, table: _Ints, keys: _Ints, columns: _Ints, out: _Ints) -> None:
    """Write ``table[row of the key, column]`` to ``out`` for each key that has a row.

    Args:
        slots: Of the rows' keys, from `make_slots`.
        table: ``(n, m) int64``.
        keys: ``(k,) int64``; negative ones have no row.
        columns: ``(k,) int64`` in [0, m).
        out: ``(k,) int64``, changed in place where a key has a row.
    """
    mask, shift = len(slots) - 1, _shift(slots)
    for i in range(len(keys)):
        key = keys[i]
        if key < 0:
            continue
        slot = np.int64((np.uint64(key) * GOLDEN) >> shift)
        while slots[slot, 0] >= 0 and slots[slot, 0] != key:
            slot = (slot + 1) & mask
        if slots[slot, 0] == key:
            out[i] = table[slots[slot, 1], columns[i]]
