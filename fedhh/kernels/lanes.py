"""xoshiro256++ in 32 independent lanes: random words in bulk, at the speed of vector units.

The loops are written so that LLVM turns them into vector code; a lane's words are those of
`fedhh.kernels.prng` from the same state, whatever the machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.kernels.cache import subroutine

LANES = 32

_CACHE_LINE = 64

_Words = npt.NDArray[np.uint64]

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_2_POW_32 = np.uint64(0x100000000)


def lane_states(rng: np.random.Generator) -> _Words:
    """Return ``(4, LANES) uint64``: one generator state per column, drawn from ``rng``."""
    states = aligned_empty(4 * LANES, np.uint64).reshape(4, LANES)
    states[:] = rng.integers(0, 2**64, size=states.shape, dtype=np.uint64)
    # The all-zero state is a fixed point of xoshiro.
    states[0] |= np.uint64(1)
    return states


def aligned_empty(size: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an uninitialized ``(size,)`` array that starts on a cache line.

    Vector stores that straddle two lines take twice as long.
    """
    num_bytes = size * np.dtype(dtype).itemsize
    raw = np.empty(num_bytes + _CACHE_LINE, dtype=np.uint8)
    start = -raw.ctypes.data % _CACHE_LINE
    return raw[start : start + num_bytes].view(dtype)


@subroutine
def fill_words(states: _Words, out: _Words) -> None:
    """Fill ``out`` with fresh words, lane after lane.

    Args:
        states: ``(4, LANES) uint64``, changed in place.
        out: ``(n,) uint64``, n a multiple of LANES.
    """
    s0, s1, s2, s3 = states[0], states[1], states[2], states[3]
    for row in range(len(out) // LANES):
        base = row * LANES
        for lane in range(LANES):
            a, b, c, d = s0[lane], s1[lane], s2[lane], s3[lane]
            mixed = a + d
            out[base + lane] = ((mixed << np.uint64(23)) | (mixed >> np.uint64(41))) + a
            t = b << np.uint64(17)
            c ^= a
            d ^= b
            b ^= c
            a ^= d
            c ^= t
            d = (d << np.uint64(45)) | (d >> np.uint64(19))
            s0[lane], s1[lane], s2[lane], s3[lane] = a, b, c, d


@subroutine
def bound_in_place(words: _Words, bound: np.uint64) -> None:
    """Turn each half of a word into an exactly uniform integer in [0, bound), or into ``bound``.

    ``bound`` itself marks a draw that Lemire's method rejects, with probability below
    ``bound / 2**32``; the caller skips it.

    Args:
        words: ``(n,) uint64``: whole ones, since vector code takes twice as long for 32-bit words.
        bound: In [1, 2**32).
    """
    threshold = (_2_POW_32 - bound) % bound
    # Says that it has 32 bits, which makes the products one step of a vector unit.
    bound &= _LOW
    rejected_above = bound << _HALF
    for i in range(len(words)):
        below = (words[i] & _LOW) * bound
        above = (words[i] >> _HALF) * bound
        lower = bound if below & _LOW < threshold else below >> _HALF
        upper = rejected_above if above & _LOW < threshold else above & ~_LOW
        words[i] = lower | upper
