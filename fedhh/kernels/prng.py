"""xoshiro256++ and the exact draws that kernels make from it.

State is a ``(4,) uint64`` array, changed in place. Source: Blackman and Vigna (2021), "Scrambled
linear pseudorandom number generators", ACM TOMS 47(4). Bounded draws reject, so that they are
exactly uniform: Lemire (2019), "Fast random integer generation in an interval", TOMACS 29(1).
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

_State = npt.NDArray[np.uint64]

_2_POW_MINUS_53 = 2.0**-53


@numba.njit(inline="always")
def next_uint64(state: _State) -> Any:
    """Return 64 fresh bits."""
    result, s0, s1, s2, s3 = advance(state[0], state[1], state[2], state[3])
    state[0], state[1], state[2], state[3] = s0, s1, s2, s3
    return result


@numba.njit(inline="always")
def advance(s0: Any, s1: Any, s2: Any, s3: Any) -> Any:
    """Return 64 fresh bits and the four words of the next state.

    For loops that write to arrays: a compiler cannot know that these do not hold the state, and
    would send it through memory at every step.
    """
    mixed = s0 + s3
    result = ((mixed << np.uint64(23)) | (mixed >> np.uint64(41))) + s0
    t = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= t
    s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    return result, s0, s1, s2, s3


@numba.njit(inline="always")
def next_float(state: _State) -> Any:
    """Return a float64 uniform on the multiples of 2**-53 in [0, 1)."""
    return np.float64(next_uint64(state) >> np.uint64(11)) * _2_POW_MINUS_53


@numba.njit(inline="always")
def next_below(state: _State, bound: Any) -> Any:
    """Return an exactly uniform integer in [0, bound), for ``1 <= bound <= 2**32``."""
    product = (next_uint64(state) >> np.uint64(32)) * bound
    low = product & np.uint64(0xFFFFFFFF)
    if low < bound:
        threshold = (np.uint64(0x100000000) - bound) % bound
        while low < threshold:
            product = (next_uint64(state) >> np.uint64(32)) * bound
            low = product & np.uint64(0xFFFFFFFF)
    return product >> np.uint64(32)


@numba.njit(inline="always")
def mix(word: Any) -> Any:
    """Return SplitMix64's finalizer of ``word``: a bijection of 64 bits that scatters them."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))
