"""Counting for local hashing: how many reports' hash functions send a candidate to their cell."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedhh.kernels.cache import compiled

_Words = npt.NDArray[np.uint64]
_Ints = npt.NDArray[np.int64]

_BLOCK = 512
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@compiled
def count_supports(
    low: _Words, high: _Words, offset: _Words, width: _Words, candidates: _Ints, wide: bool
) -> _Ints:
    """Return how many reports support each candidate.

    A report supports x if ``low * (x mod 2**32) + high * (x // 2**32) + offset``, modulo 2**64, is
    below its width: the cell is an interval of the hash, moved to begin at 0.

    Args:
        low: ``(n,) uint64`` multipliers of the candidates' low halves.
        high: ``(n,) uint64`` multipliers of their high halves.
        offset: ``(n,) uint64``.
        width: ``(n,) uint64``.
        candidates: ``(c,) int64``, not negative.
        wide: Whether candidates may reach 2**32; if not, ``high`` is not read.

    Returns:
        ``(c,) int64``.
    """
    counts = np.zeros(len(candidates), dtype=np.int64)
    # A block of reports stays in the nearest cache while all candidates pass over it.
    for start in range(0, len(low), _BLOCK):
        lows = low[start : start + _BLOCK]
        highs = high[start : start + _BLOCK]
        offsets = offset[start : start + _BLOCK]
        widths = width[start : start + _BLOCK]
        for c in range(len(candidates)):
            lower = np.uint64(candidates[c]) & _LOW
            upper = np.uint64(candidates[c]) >> _HALF
            supports = 0
            if wide:
                for i in range(len(lows)):
                    supports += lows[i] * lower + highs[i] * upper + offsets[i] < widths[i]
            else:
                for i in range(len(lows)):
                    supports += lows[i] * lower + offsets[i] < widths[i]
            counts[c] += supports
    return counts
