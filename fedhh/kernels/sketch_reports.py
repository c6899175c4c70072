"""Reports of mean sketches, one by one, and the noise of a whole sketch at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.kernels.cache import compiled, subroutine
from fedhh.kernels.prng import (
    LANES,
    advance,
    aligned_empty,
    count_ones,
    fill_words,
    next_float,
    next_uint64,
)
from fedhh.kernels.variates import draw_binomial

_Coins = npt.NDArray[np.uint16]
_Ints = npt.NDArray[np.int64]
_Words = npt.NDArray[np.uint64]
_Floats = npt.NDArray[np.float64]
_Table = npt.NDArray[np.signedinteger[Any]]

WORD_BITS = 64

_0 = np.uint64(0)
_1 = np.uint64(1)
_63 = np.uint64(63)
_TOP = np.uint64(1 << 63)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)

_NEGLIGIBLE = 1e-25
"""Chance, relative to the likeliest, below which 64 bits cannot tell a count from none."""

_GUIDES = 256
_GUIDE_SHIFT = np.uint64(56)

_MOST_COINS = 16

_COINS_AT_ONCE = 2**15
_COINS_PER_WORD = 4
_16 = np.uint64(16)


@compiled
def noisy_vectors(cells: _Ints, num_cells: int, flip: np.uint64, state: _Words) -> Any:
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
            flips, open_coins, chance = _0, _ALL, flip
            if place == num_words - 1:
                open_coins = last
            while open_coins and chance:
                bits, s0, s1, s2, s3 = advance(s0, s1, s2, s3)
                if chance & _TOP:
                    flips |= open_coins & ~bits
                    open_coins &= bits
                else:
                    open_coins &= ~bits
                chance <<= _1
            vectors[i, place] = flips
        cell = cells[i]
        vectors[i, cell // WORD_BITS] ^= _1 << (np.uint64(cell) & _63)
    state[0], state[1], state[2], state[3] = s0, s1, s2, s3
    return vectors


@compiled
def add_vectors(reports: _Ints, table: _Table) -> None:
    """Add each report's bits to its row of the table.

    Args:
        reports: ``(n, 1 + words) int64``: a row, and a vector's bits as in `noisy_vectors`.
        table: ``(k, m)`` of signed integers, changed in place.
    """
    one = np.ones(1, dtype=table.dtype)[0]
    for i in range(len(reports)):
        line = table[reports[i, 0]]
        for place in range(reports.shape[1] - 1):
            word = np.uint64(reports[i, 1 + place])
            first = place * WORD_BITS
            while word != _0:
                line[first + np.int64(count_ones((word & (~word + _1)) - _1))] += one
                word &= word - _1


@compiled
def add_signs(reports: _Ints, table: _Table) -> None:
    """Add each report's sign to the cell of its row and coefficient, and 1 to the row's last one.

    Args:
        reports: ``(n, 3) int64``: row, coefficient, and -1 or +1.
        table: ``(k, m + 1)`` of signed integers, changed in place.
    """
    one = np.ones(1, dtype=table.dtype)[0]
    for i in range(len(reports)):
        line = table[reports[i, 0]]
        line[-1] += one
        if reports[i, 2] > 0:
            line[reports[i, 1]] += one
        else:
            line[reports[i, 1]] -= one


def add_noisy_rows(
    rows: _Ints, cells: _Ints, flip: np.uint64, table: _Ints, states: _Words
) -> None:
    """Add one noisy indicator vector per report to its row of the table.

    A report's vector has a one at its cell and zeros elsewhere; each entry is flipped with the
    same probability, independently.

    Args:
        rows: ``(n,) int64`` in [0, k).
        cells: ``(n,) int64`` in [0, m).
        flip: Probability of a flip, times 2**64.
        table: ``(k, m) int64``, changed in place.
    """
    num_cells = table.shape[1]
    reports_at_once = max(1, _COINS_AT_ONCE // num_cells)
    words_per_line = _COINS_PER_WORD * LANES
    num_words = -(-reports_at_once * num_cells // words_per_line) * LANES
    words = aligned_empty(num_words, np.uint64)
    more_words = aligned_empty(LANES, np.uint64)
    buffers = (words, words.view(np.uint16), more_words)
    _noisy_rows(rows, cells, flip, table, states, buffers, reports_at_once)


@compiled
def _noisy_rows(
    rows: _Ints,
    cells: _Ints,
    flip: np.uint64,
    table: _Ints,
    states: _Words,
    buffers: tuple[_Words, _Coins, _Words],
    reports_at_once: int,
) -> None:
    words, coins, more_words = buffers
    num_cells = table.shape[1]
    # Sixteen bits settle a coin but for one case in 65,536; then 48 more bits do.
    coarse = np.uint16(flip >> np.uint64(48))
    fine = flip << _16
    for start in range(0, len(rows), reports_at_once):
        fill_words(states, words)
        for i in range(start, min(start + reports_at_once, len(rows))):
            first = (i - start) * num_cells
            line = coins[first : first + num_cells]
            counts = table[rows[i]]
            undecided = np.uint16(0)
            for cell in range(num_cells):
                counts[cell] += np.int64(line[cell] < coarse)
                undecided |= np.uint16(line[cell] == coarse)
            own = np.int64(cells[i])
            counts[own] += np.int64(1) - np.int64(2) * np.int64(line[own] < coarse)
            if undecided:
                for cell in range(num_cells):
                    if line[cell] == coarse:
                        fill_words(states, more_words)
                        if more_words[0] << _16 < fine:
                            counts[cell] += np.int64(-1 if cell == own else 1)


@compiled
def add_noise(counts: _Ints, reports: _Ints, flip: float, out: _Ints, state: _Words) -> None:
    """Fill in the counts of ones of a sketch whose reports are indicators with flipped entries.

    All n entries of a cell are flipped with the same probability, those of the h reports whose own
    cell it is, too. So of T ~ Binomial(n, flip) flips X are of these, a hypergeometric number, and
    T - X + h - X entries are ones. The distribution of T is one table per row; in most cells h is
    small, and X needs a few coins.

    Args:
        counts: ``(k, m) int64``: reports whose own cell it is.
        reports: ``(k,) int64``: reports by row.
        flip: Probability of a flip, in (0, 1).
        out: ``(k, m) int64``, overwritten.
    """
    num_rows, num_cells = counts.shape
    kept = 1.0 - flip
    weights = np.empty(num_cells + 2)
    distribution = np.empty(num_cells + 2, dtype=np.uint64)
    guide = np.empty(_GUIDES, dtype=np.int64)
    for row in range(num_rows):
        n = reports[row]
        first, size = _binomial_distribution(n, flip, kept, num_cells, weights)
        if size:
            _lay_out(weights, size, distribution, guide)
        for cell in range(num_cells):
            own = counts[row, cell]
            if size == 0 or own > _MOST_COINS:
                ones = own - draw_binomial(own, flip, kept, state)
                out[row, cell] = ones + draw_binomial(n - own, flip, kept, state)
                continue
            word = next_uint64(state)
            place = guide[np.int64(word >> _GUIDE_SHIFT)]
            while word > distribution[place]:
                place += 1
            flips = first + place
            flipped_own = 0
            for i in range(own):
                if next_float(state) * (n - i) < flips - flipped_own:
                    flipped_own += 1
            out[row, cell] = flips + own - 2 * flipped_own


@subroutine
def _binomial_distribution(n: int, flip: float, kept: float, room: int, weights: _Floats) -> Any:
    """Fill in the chances of Binomial(n, flip), up to a factor.

    Returns:
        The count that entry 0 stands for, and the number of entries; 0 entries if there is no room
        for all that are likely enough.
    """
    odds = flip / kept
    mode = min(int((n + 1.0) * flip), n)
    first, weight = mode, 1.0
    while first > 0:
        weight *= float(first) / (float(n - first + 1) * odds)
        if weight < _NEGLIGIBLE:
            break
        first -= 1
        if mode - first > room:
            return 0, 0
    last, weight = mode, 1.0
    while last < n:
        weight *= float(n - last) * odds / float(last + 1)
        if weight < _NEGLIGIBLE:
            break
        last += 1
        if last - first > room:
            return 0, 0
        weights[last - first] = weight
    weight = 1.0
    weights[mode - first] = 1.0
    for k in range(mode, first, -1):
        weight *= float(k) / (float(n - k + 1) * odds)
        weights[k - 1 - first] = weight
    return first, last - first + 1


@subroutine
def _lay_out(weights: _Floats, size: int, distribution: _Words, guide: _Ints) -> None:
    """Turn chances into thresholds of a random word, and say where to begin for its first bits.

    Chen and Asau (1974), "On generating random variates from an empirical distribution".
    """
    total = 0.0
    for i in range(size):
        total += weights[i]
    below = 0.0
    for i in range(size):
        below += weights[i]
        # The largest float below 1, since 2**64 is no word; the last threshold is all words'.
        distribution[i] = np.uint64(min(below / total, 1.0 - 2.0**-53) * 2.0**64)
    distribution[size - 1] = np.uint64(0xFFFFFFFFFFFFFFFF)
    place = 0
    for i in range(_GUIDES):
        while distribution[place] < np.uint64(i) << _GUIDE_SHIFT:
            place += 1
        guide[i] = place
