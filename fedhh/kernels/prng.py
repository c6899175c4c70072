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

from fedhh.kernels.cache import subroutine

_State = npt.NDArray[np.uint64]

_2_POW_MINUS_53 = 2.0**-53

# Constants of the module, since a call of np.uint64 takes longer to compile than what it is for.
# Those here are compiled into most kernels, many times.
_11 = np.uint64(11)
_17 = np.uint64(17)
_19 = np.uint64(19)
_23 = np.uint64(23)
_27 = np.uint64(27)
_30 = np.uint64(30)
_31 = np.uint64(31)
_32 = np.uint64(32)
_41 = np.uint64(41)
_45 = np.uint64(45)
_LOW_32 = np.uint64(0xFFFFFFFF)
_2_POW_32 = np.uint64(0x100000000)
_FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_FACTOR = np.uint64(0x94D049BB133111EB)


@subroutine
def next_uint64(state: _State) -> Any:
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
    result = ((mixed << _23) | (mixed >> _41)) + s0
    t = s1 << _17
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= t
    s3 = (s3 << _45) | (s3 >> _19)
    return result, s0, s1, s2, s3


@subroutine
def next_float(state: _State) -> Any:
    """Return a float64 uniform on the multiples of 2**-53 in [0, 1)."""
    return np.float64(next_uint64(state) >> _11) * _2_POW_MINUS_53


@subroutine
def next_below(state: _State, bound: Any) -> Any:
    """Return an exactly uniform integer in [0, bound), for ``1 <= bound <= 2**32``."""
    product = (next_uint64(state) >> _32) * bound
    low = product & _LOW_32
    if low < bound:
        threshold = (_2_POW_32 - bound) % bound
        while low < threshold:
            product = (next_uint64(state) >> _32) * bound
            low = product & _LOW_32
    return product >> _32


@subroutine
def mix(word: Any) -> Any:
    """Return SplitMix64's finalizer of ``word``: a bijection of 64 bits that scatters them."""
    word = (word ^ (word >> _30)) * _FIRST_FACTOR
    word = (word ^ (word >> _27)) * _SECOND_FACTOR
    return word ^ (word >> _31)
