"""Reports drawn one by one, and what local hashing's reports support."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.arrays import Ints, UInts
from fedhh.kernels.cache import compiled, subroutine
from fedhh.kernels.prng import LOW_32, U0, U1, U32, U63, advance, next_below, next_uint64
from fedhh.random import GOLDEN

_Table = npt.NDArray[np.signedinteger[Any]]

_BLOCK = 512

WORD_BITS = 64

_TOP = np.uint64(1 << 63)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@compiled
def draw_subsets(
    values: Ints, domain_size: int, miss: np.uint64, reports: Ints, state: UInts
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
    low: UInts, high: UInts, offset: UInts, width: UInts, candidates: Ints, wide: bool
) -> Ints:
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
            lower = np.uint64(candidates[c]) & LOW_32
            upper = np.uint64(candidates[c]) >> U32
            supports = 0
            if wide:
                for i in range(len(lows)):
                    supports += lows[i] * lower + highs[i] * upper + offsets[i] < widths[i]
            else:
                for i in range(len(lows)):
                    supports += lows[i] * lower + offsets[i] < widths[i]
            counts[c] += supports
    return counts


@compiled
def noisy_vectors(cells: Ints, num_cells: int, flip: np.uint64, state: UInts) -> Any:
    """Return one indicator vector per report, each entry flipped independently, as bits.

    Args:
        cells: ``(n,) int64`` in [0, num_cells): where each vector has its one.
        num_cells: m.
        flip: Probability of a flip, times 2**64.

    Returns:
        ``(n, ceil(m / 64)) uint64``; bit i of the bits, counted from the lowest of the first word,
        is entry i; bits beyond m are 0.
    """
    num_words = -(-num_cells // WORD_BITS)
    vectors = np.empty((len(cells), num_words), dtype=np.uint64)
    left = num_cells - (num_words - 1) * WORD_BITS
    last = _ALL >> np.uint64(WORD_BITS - left)
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    for i in range(len(cells)):
        for place in range(num_words):
            # 64 coins at once: each compares its own bits with those of the chance, from the
            # highest, and is decided where they first differ; seven rounds are usual.
            flips, open_coins, chance = U0, _ALL, flip
            if place == num_words - 1:
                open_coins = last
            while open_coins and chance:
                bits, s0, s1, s2, s3 = advance(s0, s1, s2, s3)
                if chance & _TOP:
                    flips |= open_coins & ~bits
                    open_coins &= bits
                else:
                    open_coins &= ~bits
                chance <<= U1
            vectors[i, place] = flips
        cell = cells[i]
        vectors[i, cell // WORD_BITS] ^= U1 << (np.uint64(cell) & U63)
    state[0], state[1], state[2], state[3] = s0, s1, s2, s3
    return vectors


@compiled
def add_vectors(rows: Ints, vectors: Ints, table: _Table) -> None:
    """Add the bits of ``(n, words) int64`` vectors to rows of a table.

    Args:
        rows: ``(n,) int64``: the row of each.
        vectors: As `noisy_vectors` has them.
        table: ``(k, m)`` of signed integers, changed in place.
    """
    for i in range(len(rows)):
        line = table[rows[i]]
        for place in range(vectors.shape[1]):
            # By itself, this loop becomes vector code.
            _add_bits(np.uint64(vectors[i, place]), line[place * WORD_BITS :])


@subroutine
def _add_bits(word: np.uint64, line: npt.NDArray[np.signedinteger[Any]]) -> None:
    for bit in range(min(WORD_BITS, len(line))):
        line[bit] += np.int64((word >> np.uint64(bit)) & U1)
