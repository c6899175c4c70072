"""xoshiro256++ and the exact draws that kernels make from it, one by one or in 32 lanes.

Source: Blackman and Vigna (2021), "Scrambled
linear pseudorandom number generators", ACM TOMS 47(4). Bounded draws reject, so that they are
exactly uniform: Lemire (2019), "Fast random integer generation in an interval", TOMACS 29(1).

A kernel's ``state`` is ``(4,) uint64`` of this generator, its ``states`` are ``(4, LANES) uint64``;
both are changed in place.

The loops over lanes are written so that LLVM turns them into vector code; a lane's words are those
of `next_uint64` from the same state, whatever the machine.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from fedhh.arrays import UInts
from fedhh.kernels.cache import subroutine
from fedhh.random import scatter

LANES = 32

_CACHE_LINE = 64

# Numbers of all kernels, since a call of np.uint64 takes longer to compile than what it is for.
U0, U1, U2, U3, U4, U7, U11, U17, U19 = map(np.uint64, (0, 1, 2, 3, 4, 7, 11, 17, 19))
U23, U29, U32, U41, U45, U56, U61, U63, U64 = map(np.uint64, (23, 29, 32, 41, 45, 56, 61, 63, 64))
LOW_32 = np.uint64(0xFFFFFFFF)
_2_POW_32 = np.uint64(0x100000000)
_EVERY_BIT = np.uint64(0x5555555555555555)
_EVERY_PAIR = np.uint64(0x3333333333333333)
_EVERY_NIBBLE = np.uint64(0x0F0F0F0F0F0F0F0F)
_EVERY_BYTE = np.uint64(0x0101010101010101)


@subroutine
def next_uint64(state: UInts) -> Any:
    """Return 64 fresh bits."""
    result, s0, s1, s2, s3 = advance(state[0], state[1], state[2], state[3])
    # One by one: a tuple takes longer to compile.
    state[0] = s0
    state[1] = s1
    state[2] = s2
    state[3] = s3
    return result


@numba.njit(inline="always")
def advance(s0: Any, s1: Any, s2: Any, s3: Any) -> Any:
    """Return 64 fresh bits and the four words of the next state.

    For loops that write to arrays: a compiler cannot know that these do not hold the state, and
    would send it through memory at every step.
    """
    mixed = s0 + s3
    result = ((mixed << U23) | (mixed >> U41)) + s0
    t = s1 << U17
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= t
    s3 = (s3 << U45) | (s3 >> U19)
    return result, s0, s1, s2, s3


@subroutine
def next_float(state: UInts) -> Any:
    """Return a float64 uniform on the multiples of 2**-53 in [0, 1)."""
    return np.float64(next_uint64(state) >> U11) * 2.0**-53


@subroutine
def next_below(state: UInts, bound: Any) -> Any:
    """Return an exactly uniform integer in [0, bound), for ``1 <= bound <= 2**32``."""
    product = (next_uint64(state) >> U32) * bound
    low = product & LOW_32
    if low < bound:
        threshold = (_2_POW_32 - bound) % bound
        while low < threshold:
            product = (next_uint64(state) >> U32) * bound
            low = product & LOW_32
    return product >> U32


@numba.njit(inline="always")
def count_ones(word: Any) -> Any:
    """Return how many of 64 bits are set, as a uint64."""
    word = word - ((word >> U1) & _EVERY_BIT)
    word = (word & _EVERY_PAIR) + ((word >> U2) & _EVERY_PAIR)
    word = (word + (word >> U4)) & _EVERY_NIBBLE
    return (word * _EVERY_BYTE) >> U56


mix = subroutine(scatter)
"""SplitMix64's finalizer of one word."""


def lane_states(rng: np.random.Generator) -> UInts:
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
def fill_words(states: UInts, out: UInts) -> None:
    """Fill ``out`` with fresh words, lane after lane.

    Args:
        out: ``(n,) uint64``, n a multiple of LANES.
    """
    s0, s1, s2, s3 = states[0], states[1], states[2], states[3]
    for row in range(len(out) // LANES):
        base = row * LANES
        for lane in range(LANES):
            word, a, b, c, d = advance(s0[lane], s1[lane], s2[lane], s3[lane])
            out[base + lane] = word
            s0[lane], s1[lane], s2[lane], s3[lane] = a, b, c, d


@subroutine
def bound_in_place(words: UInts, bound: np.uint64) -> None:
    """Turn each half of a word into an exactly uniform integer in [0, bound), or into ``bound``.

    ``bound`` itself marks a draw that Lemire's method rejects, with probability below
    ``bound / 2**32``; the caller skips it.

    Args:
        words: ``(n,) uint64``: whole ones, since vector code takes twice as long for 32-bit words.
        bound: In [1, 2**32).
    """
    threshold = (_2_POW_32 - bound) % bound
    # Says that it has 32 bits, which makes the products one step of a vector unit.
    bound &= LOW_32
    rejected_above = bound << U32
    for i in range(len(words)):
        below = (words[i] & LOW_32) * bound
        above = (words[i] >> U32) * bound
        lower = bound if below & LOW_32 < threshold else below >> U32
        upper = rejected_above if above & LOW_32 < threshold else above & ~LOW_32
        words[i] = lower | upper
