"""Reports whose support has a structure: halves of Hadamard blocks, and sampled noisy bits."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from fedhh.kernels.cache import compiled, subroutine
from fedhh.kernels.prng import next_below, next_float, next_uint64

_Ints = npt.NDArray[np.int64]
_State = npt.NDArray[np.uint64]


@numba.njit(inline="always")
def _is_odd(word: Any) -> Any:
    """Return whether an odd number of 64 bits is set."""
    for shift in (32, 16, 8, 4, 2, 1):
        word = word ^ (word >> shift)
    return word & 1


@compiled
def draw_hadamard_responses(
    symbols: _Ints, block_size: int, num_outputs: int, own_share: float, out: _Ints, state: _State
) -> None:
    """Fill in one report of Hadamard response per symbol.

    A report is, with probability ``own_share``, uniform over the half of the symbol's block where
    its Hadamard row is +1, and otherwise uniform over all outputs.

    Args:
        symbols: ``(n,) int64``: b times the block and the row of it, not 0.
        block_size: b, a power of two.
        num_outputs: A multiple of b, at most 2**32.
        own_share: In (0, 1).
        out: ``(n,) int64``, overwritten.
        state: ``(4,) uint64`` of the generator, changed in place.
    """
    for i in range(len(symbols)):
        if next_float(state) >= own_share:
            out[i] = np.int64(next_below(state, np.uint64(num_outputs)))
            continue
        row = symbols[i] & (block_size - 1)
        column = np.int64(next_uint64(state) >> np.uint64(32)) & (block_size - 1)
        # Columns of the wrong sign and of the right one differ in a bit that the row has.
        if _is_odd(row & column):
            column ^= row & -row
        out[i] = symbols[i] - row + column


@compiled
def draw_sampled_bits(
    values: _Ints, domain_size: int, own: float, other: float, out: _Ints, state: _State
) -> None:
    """Fill in one report of sampled noisy bits per value: distinct positions, and a bit of each.

    Args:
        values: ``(n,) int64`` in [0, s).
        domain_size: s, at most 2**32.
        own: Chance that the bit of a report's value is 1, if its position is sampled.
        other: Chance that any other sampled bit is 1.
        out: ``(n, d) int64``, d at most s, overwritten: twice a position and its bit.
        state: ``(4,) uint64`` of the generator, changed in place.
    """
    drawn_by = np.full(domain_size, -1, dtype=np.int64)
    for i in range(len(values)):
        _draw_sampled_bits(i, values[i], own, other, drawn_by, out[i], state)


@compiled
def add_sampled_bits(
    values: _Ints, num_bits: int, own: float, other: float, scores: _Ints, out: _Ints, state: _State
) -> None:
    """Add to each position the scores of its sampled bits; see `draw_sampled_bits`.

    Args:
        values: ``(n,) int64`` in [0, s).
        num_bits: d.
        own: Chance of a 1 at the value's position.
        other: Chance of a 1 elsewhere.
        scores: ``(2,) int64``, of a 0 and of a 1.
        out: ``(s,) int64``, changed in place.
        state: ``(4,) uint64`` of the generator, changed in place.
    """
    drawn_by = np.full(len(out), -1, dtype=np.int64)
    report = np.empty(num_bits, dtype=np.int64)
    for i in range(len(values)):
        _draw_sampled_bits(i, values[i], own, other, drawn_by, report, state)
        for entry in report:
            out[entry >> 1] += scores[entry & 1]


@subroutine
def _draw_sampled_bits(
    i: int, value: int, own: float, other: float, drawn_by: _Ints, out: _Ints, state: _State
) -> None:
    """Draw report i by Floyd's method: Bentley and Floyd (1987), "A sample of brilliance", CACM."""
    num_bits, domain_size = len(out), len(drawn_by)
    for k in range(num_bits):
        last = domain_size - num_bits + k
        position: Any = np.int64(next_below(state, np.uint64(last + 1)))
        if drawn_by[position] == i:
            position = last
        drawn_by[position] = i
        chance = own if position == value else other
        out[k] = 2 * position + (1 if next_float(state) < chance else 0)
