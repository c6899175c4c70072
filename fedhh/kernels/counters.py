"""Counters of votes: one byte each, since votes wait for nothing but memory.

How often a counter ran over stands in a table that is hardly ever touched.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from fedhh.kernels.cache import compiled

_Halves = npt.NDArray[np.uint32]
_Ints = npt.NDArray[np.int64]
_Bytes = npt.NDArray[np.uint8]
Counters = tuple[_Bytes, _Halves]


def make_counters(domain_size: int) -> Counters:
    """Return zeroed counters for the kernels, and how often each ran over 255.

    Both are ``(domain_size + 1,)``, uint8 and uint32: the last is for what must not count.
    """
    return np.zeros(domain_size + 1, dtype=np.uint8), np.zeros(domain_size + 1, dtype=np.uint32)


@compiled
def move_counts(counters: Counters, out: _Ints) -> None:
    """Add the counters to ``(s,) int64`` ``out``."""
    counts, overflows = counters
    for value in range(len(out)):
        out[value] += np.int64(counts[value]) + 256 * np.int64(overflows[value])


@numba.njit(inline="always")
def count_vote(counts: _Bytes, overflows: _Halves, value: np.uint32) -> None:
    """Add one to a value's counter."""
    count = np.uint8(counts[value] + np.uint8(1))
    counts[value] = count
    if count == 0:
        overflows[value] += np.uint32(1)
