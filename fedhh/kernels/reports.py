"""Reports drawn one by one, and what local hashing's reports support."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.kernels.cache import compiled, subroutine
from fedhh.kernels.prng import count_ones, next_below, next_float, next_uint64
from fedhh.random import GOLDEN

_Ints = npt.NDArray[np.int64]
_Words = npt.NDArray[np.uint64]

_BLOCK = 512
_ONE = np.uint64(1)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@compiled
def draw_hadamard_responses(
    symbols: _Ints, block_size: int, num_outputs: int, own_share: float, out: _Ints, state: _Words
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
    """
    for i in range(len(symbols)):
        if next_float(state) >= own_share:
            out[i] = np.int64(next_below(state, np.uint64(num_outputs)))
            continue
        row = symbols[i] & (block_size - 1)
        column = np.int64(next_uint64(state) >> np.uint64(32)) & (block_size - 1)
        # Columns of the wrong sign and of the right one differ in a bit that the row has.
        if count_ones(np.uint64(row & column)) & _ONE:
            column ^= row & -row
        out[i] = symbols[i] - row + column


@compiled
def draw_sampled_bits(
    values: _Ints, domain_size: int, own: float, other: float, out: _Ints, state: _Words
) -> None:
    """Fill in one report of sampled noisy bits per value: distinct positions, and a bit of each.

    Args:
        values: ``(n,) int64`` in [0, s).
        domain_size: s, at most 2**32.
        own: Chance that the bit of a report's value is 1, if its position is sampled.
        other: Chance that any other sampled bit is 1.
        out: ``(n, d) int64``, d at most s, overwritten: twice a position and its bit.
    """
    drawn_by = np.full(domain_size, -1, dtype=np.int64)
    for i in range(len(values)):
        _draw_sampled_bits(i, values[i], own, other, drawn_by, out[i], state)


@compiled
def add_sampled_bits(
    values: _Ints, num_bits: int, own: float, other: float, scores: _Ints, out: _Ints, state: _Words
) -> None:
    """Add the scores, of a 0 and of a 1, of the bits of `draw_sampled_bits` to ``(s,) int64``."""
    drawn_by = np.full(len(out), -1, dtype=np.int64)
    report = np.empty(num_bits, dtype=np.int64)
    for i in range(len(values)):
        _draw_sampled_bits(i, values[i], own, other, drawn_by, report, state)
        for entry in report:
            out[entry >> 1] += scores[entry & 1]


@subroutine
def _draw_sampled_bits(
    i: int, value: int, own: float, other: float, drawn_by: _Ints, out: _Ints, state: _Words
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


@compiled
def draw_subsets(
    values: _Ints, domain_size: int, miss: np.uint64, reports: _Ints, state: _Words
) -> None:
    """Fill each row of ``reports`` with one report of Subset Selection, in the order of drawing.

    Repeats are found in a hash set of O(d) places, so that no step costs O(s).

    Args:
        values: ``(n,) int64`` in [0, domain_size), n below 2**32.
        domain_size: s, below 2**32.
        miss: Probability that a report lacks its client's value, times 2**64.
        reports: ``(n, d) int64``, d below s.
    """
    num_reports, subset_size = reports.shape
    bits = 2
    while (1 << bits) < 2 * (subset_size + 1):
        bits += 1
    seen = np.zeros(1 << bits, dtype=np.uint64)
    mask = np.uint64((1 << bits) - 1)
    shift = np.uint64(64 - bits)
    for row in range(num_reports):
        # A place whose stamp is older than this row's is empty.
        stamp = np.uint64(row + 1) << np.uint64(32)
        value = np.uint64(values[row])
        filled = 0
        if next_uint64(state) >= miss:
            reports[row, 0] = values[row]
            filled = 1
        other = value
        while True:
            # The client's own value enters the set first, so it is never one of the others.
            place = (other * GOLDEN) >> shift
            entry = stamp | other
            while seen[place] != entry and seen[place] >= stamp:
                place = (place + np.uint64(1)) & mask
            if seen[place] != entry:
                seen[place] = entry
                if other != value:
                    reports[row, filled] = np.int64(other)
                    filled += 1
            if filled == subset_size:
                break
            other = next_below(state, np.uint64(domain_size))


@compiled
def count_supports(
    low: _Words, high: _Words, offset: _Words, width: _Words, candidates: _Ints, wide: bool
) -> _Ints:
    """Return ``(c,) int64``: how many reports support each candidate.

    A report supports x if ``low * (x mod 2**32) + high * (x // 2**32) + offset``, modulo 2**64, is
    below its width: the cell is an interval of the hash, moved to begin at 0.

    Args:
        low: ``(n,) uint64`` multipliers of the candidates' low halves.
        high: ``(n,) uint64`` multipliers of their high halves.
        offset: ``(n,) uint64``.
        width: ``(n,) uint64``.
        candidates: ``(c,) int64``, not negative.
        wide: Whether candidates may reach 2**32; if not, ``high`` is not read.
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
