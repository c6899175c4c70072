"""Subset Selection for large d: a report as a row of random bits, mended to d members.

Independent bits of any one density are exchangeable, so a row of them is, given its number of
members, a uniform subset of that size; adding uniform non-members or dropping uniform members
until the size is right keeps it uniform. The bits come 64 to a word, and 63 rows are summed in
six bit planes before anything is counted value by value.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from fedhh.kernels.cache import compiled, subroutine
from fedhh.kernels.prng import LANES, aligned_empty, bound_in_place, count_ones, fill_words

_Words = npt.NDArray[np.uint64]
_Halves = npt.NDArray[np.uint32]
_Ints = npt.NDArray[np.int64]

_PLANES = 6
_ROWS_PER_SUM = 2**_PLANES - 1
_BLOCK = 512
_BUFFER = 1024
_MAX_LEVELS = 10
_ONE = np.uint64(1)

# Nanoseconds on one core, only to choose between routes and densities.
_LEVEL_NS = 0.2
_WORD_NS = 0.6
_DRAW_NS = 0.8
_MISPREDICTION_NS = 8.0
_ROW_NS = 60.0


@lru_cache(maxsize=256)
def density(domain_size: int, subset_size: int) -> tuple[int, int]:
    """Return k and b, k odd, so that rows of density k / 2**b are cheapest to make and mend."""
    plans = (
        (subset_size * 2**levels // domain_size + extra, levels)
        for levels in range(1, _MAX_LEVELS + 1)
        for extra in (0, 1)
    )
    odd = [(k, levels) for k, levels in plans if k % 2 and k < 2**levels]
    return min(odd, key=lambda plan: _row_ns(domain_size, subset_size, *plan))


def bit_report_ns(domain_size: int, subset_size: int) -> float:
    """Return about how many nanoseconds a report takes, to compare routes by."""
    return _row_ns(domain_size, subset_size, *density(domain_size, subset_size))


def _row_ns(domain_size: int, subset_size: int, k: int, levels: int) -> float:
    share: float = k / 2**levels
    surplus = share * domain_size - subset_size
    # The mean distance of a binomial from its mean, half of it on either side.
    spread = math.sqrt(2 / math.pi * domain_size * share * (1 - share))
    dropped = max(surplus, 0.0) + spread / 2
    added = max(-surplus, 0.0) + spread / 2
    # A draw is a member with probability d / s; the rarer outcome is mispredicted.
    member = subset_size / domain_size
    draws = dropped / member + added / (1 - member)
    mispredictions = dropped + added * member / (1 - member)
    words = -(-domain_size // 64) * (levels * _LEVEL_NS + _WORD_NS)
    return _ROW_NS + words + draws * _DRAW_NS + mispredictions * _MISPREDICTION_NS


def add_bit_votes(
    values: _Ints, subset_size: int, miss: np.uint64, out: _Ints, states: _Words
) -> None:
    """Draw one report per value and add its members to ``(s,) int64``; see `votes`."""
    row_words = -(-len(out) // 64)
    rows = max(1, _BLOCK // row_words)
    draw_words = aligned_empty(_BUFFER // 2, np.uint64)
    buffers = (
        aligned_empty(-(-rows * row_words // LANES) * LANES, np.uint64),
        aligned_empty(_BLOCK, np.uint64),
        draw_words,
        draw_words.view(np.uint32),
        aligned_empty(LANES, np.uint64),
    )
    planes = np.zeros((_PLANES, row_words), dtype=np.uint64)
    plan = density(len(out), subset_size)
    _add_rows(values, subset_size, miss, out, states, plan, planes, buffers)


@compiled
def _add_rows(
    values: _Ints,
    subset_size: int,
    miss: np.uint64,
    out: _Ints,
    states: _Words,
    plan: tuple[int, int],
    planes: _Words,
    buffers: tuple[_Words, _Words, _Words, _Halves, _Words],
) -> None:
    bits, scratch, draw_words, draws, coins = buffers
    num_values = np.uint64(len(out))
    row_words = planes.shape[1]
    rows = len(bits) // row_words
    last_bits = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 * row_words - len(out))
    next_draw = len(draws)
    for report in range(len(values)):
        if report % rows == 0:
            _fill_bernoulli(bits, scratch, plan, states)
        if report % LANES == 0:
            fill_words(states, coins)
        start = report % rows * row_words
        row = bits[start : start + row_words]
        row[row_words - 1] &= last_bits
        own = np.uint64(values[report])
        own_bit = _ONE << (own & np.uint64(63))
        row[own >> np.uint64(6)] &= ~own_bit
        held = coins[report % LANES] >= miss
        missing = subset_size - np.int64(held) - _count_members(row)
        while missing != 0:
            if next_draw == len(draws):
                fill_words(states, draw_words)
                bound_in_place(draw_words, num_values)
                next_draw = 0
            draw = np.uint64(draws[next_draw])
            next_draw += 1
            if draw in (num_values, own):
                continue
            word = draw >> np.uint64(6)
            bit = _ONE << (draw & np.uint64(63))
            member = row[word] & bit != 0
            if member == (missing < 0):
                row[word] ^= bit
                missing += 1 if member else -1
        if held:
            row[own >> np.uint64(6)] |= own_bit
        _sum_row(row, planes)
        if report % _ROWS_PER_SUM == _ROWS_PER_SUM - 1:
            _move_sums(planes, out)
    _move_sums(planes, out)


@subroutine
def _fill_bernoulli(bits: _Words, scratch: _Words, plan: tuple[int, int], states: _Words) -> None:
    """Fill ``bits`` with independent bits, each set with probability k / 2**b exactly, k odd."""
    k, levels = plan
    for start in range(0, len(bits), _BLOCK):
        block = bits[start : start + _BLOCK]
        fresh = scratch[: len(block)]
        fill_words(states, block)
        # From the lowest binary digit of k up: OR halves the way to 1, AND the way to 0.
        for level in range(1, levels):
            fill_words(states, fresh)
            if (k >> level) & 1:
                for i in range(len(block)):
                    block[i] |= fresh[i]
            else:
                for i in range(len(block)):
                    block[i] &= fresh[i]


@subroutine
def _count_members(row: _Words) -> int:
    members = np.uint64(0)
    for word in row:
        members += count_ones(word)
    return int(members)


@subroutine
def _sum_row(row: _Words, planes: _Words) -> None:
    """Add a row to the sums, of which plane j holds binary digit j."""
    p0, p1, p2, p3, p4, p5 = planes[0], planes[1], planes[2], planes[3], planes[4], planes[5]
    for i in range(len(row)):
        carry0 = row[i]
        carry1 = p0[i] & carry0
        carry2 = p1[i] & carry1
        carry3 = p2[i] & carry2
        carry4 = p3[i] & carry3
        carry5 = p4[i] & carry4
        p0[i] ^= carry0
        p1[i] ^= carry1
        p2[i] ^= carry2
        p3[i] ^= carry3
        p4[i] ^= carry4
        p5[i] ^= carry5


@subroutine
def _move_sums(planes: _Words, out: _Ints) -> None:
    """Add the planes' sums to ``out`` and clear them."""
    p0, p1, p2, p3, p4, p5 = planes[0], planes[1], planes[2], planes[3], planes[4], planes[5]
    for word in range(len(p0)):
        w0, w1, w2, w3, w4, w5 = p0[word], p1[word], p2[word], p3[word], p4[word], p5[word]
        counts = out[64 * word : 64 * word + 64]
        for i in range(len(counts)):
            shift = np.uint64(i)
            low = (w0 >> shift & _ONE) + 2 * (w1 >> shift & _ONE) + 4 * (w2 >> shift & _ONE)
            high = (w3 >> shift & _ONE) + 2 * (w4 >> shift & _ONE) + 4 * (w5 >> shift & _ONE)
            counts[i] += np.int64(low + 8 * high)
    planes[:] = 0
