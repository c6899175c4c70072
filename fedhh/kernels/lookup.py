"""Rows of a table found by their keys, by hashing: one look in memory for most keys."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedhh.kernels.cache import compiled

_Ints = npt.NDArray[np.int64]

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@compiled
def make_slots(keys: _Ints) -> _Ints:
    """Return a hash table of the rows of distinct keys, for `copy_entries`.

    Args:
        keys: ``(n,) int64``, distinct and not negative.

    Returns:
        ``(slots, 2) int64``: key and row, or -1 in a free slot; at least half of them are free.
    """
    bits = 1
    while (1 << bits) < 2 * len(keys):
        bits += 1
    slots = np.empty((1 << bits, 2), dtype=np.int64)
    for free in range(1 << bits):
        slots[free, 0] = slots[free, 1] = -1
    mask = (1 << bits) - 1
    shift = np.uint64(64 - bits)
    for row in range(len(keys)):
        slot = np.int64((np.uint64(keys[row]) * _MULTIPLIER) >> shift)
        while slots[slot, 0] >= 0:
            slot = (slot + 1) & mask
        slots[slot, 0] = keys[row]
        slots[slot, 1] = row
    return slots


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
    mask = len(slots) - 1
    bits = 0
    while (1 << bits) < len(slots):
        bits += 1
    shift = np.uint64(64 - bits)
    for i in range(len(keys)):
        key = keys[i]
        if key < 0:
            continue
        slot = np.int64((np.uint64(key) * _MULTIPLIER) >> shift)
        while slots[slot, 0] >= 0 and slots[slot, 0] != key:
            slot = (slot + 1) & mask
        if slots[slot, 0] == key:
            out[i] = table[slots[slot, 1], columns[i]]
