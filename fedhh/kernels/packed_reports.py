"""Reports of mean sketches one by one: noisy bits made, added up, and asked about a few values."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from fedhh.kernels.cache import compiled
from fedhh.kernels.prng import advance
from fedhh.kernels.sketches import polynomial

_Ints = npt.NDArray[np.int64]
_Words = npt.NDArray[np.uint64]
_Table = npt.NDArray[np.signedinteger[Any]]

WORD_BITS = 64

_0 = np.uint64(0)
_1 = np.uint64(1)
_2 = np.uint64(2)
_4 = np.uint64(4)
_56 = np.uint64(56)
_63 = np.uint64(63)
_TOP = np.uint64(1 << 63)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_PAIRS = np.uint64(0x5555555555555555)
_FOURS = np.uint64(0x3333333333333333)
_BYTES = np.uint64(0x0F0F0F0F0F0F0F0F)
_SUM = np.uint64(0x0101010101010101)


@numba.njit(inline="always")
def _ones(word: Any) -> Any:
    """Return how many bits of a word are set."""
    word = word - ((word >> _1) & _PAIRS)
    word = (word & _FOURS) + ((word >> _2) & _FOURS)
    word = (word + (word >> _4)) & _BYTES
    return (word * _SUM) >> _56


@compiled
def noisy_vectors(cells: _Ints, num_cells: int, flip: np.uint64, state: _Words) -> Any:
    """Return one indicator vector per report, each entry flipped independently, as bits.

    Args:
        cells: ``(n,) int64`` in [0, num_cells): where each vector has its one.
        num_cells: m.
        flip: Probability of a flip, times 2**64.
        state: ``(4,) uint64`` of the generator, changed in place.

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
            # 64 coins side by side: each compares its own bits with those of the chance, from the
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
                line[first + np.int64(_ones((word & (~word + _1)) - _1))] += one
                word &= word - _1


@compiled
def add_signs(reports: _Ints, table: _Table) -> None:
    """Add each report's sign to the cell of its row and coefficient.

    Args:
        reports: ``(n, 3) int64``: row, coefficient, and -1 or +1.
        table: ``(k, m)`` of signed integers, changed in place.
    """
    one = np.ones(1, dtype=table.dtype)[0]
    for i in range(len(reports)):
        if reports[i, 2] > 0:
            table[reports[i, 0], reports[i, 1]] += one
        else:
            table[reports[i, 0], reports[i, 1]] -= one


@compiled
def vectors_supporting(coefficients: _Words, num_cells: int, reports: _Ints, keys: _Ints) -> Any:
    """Return ``(c,) int64``: how many vectors have a one at each key's cell of their row.

    Args:
        coefficients: ``(k, 3) uint64`` of the hash functions.
        num_cells: m.
        reports: As in `add_vectors`.
        keys: ``(c,) int64``.
    """
    supporters = np.zeros(len(keys), dtype=np.int64)
    cells = np.uint64(num_cells)
    for i in range(len(reports)):
        row = reports[i, 0]
        for c in range(len(keys)):
            cell = polynomial(coefficients, row, np.uint64(keys[c])) % cells
            word = np.uint64(reports[i, 1 + np.int64(cell) // WORD_BITS])
            supporters[c] += np.int64((word >> (cell & _63)) & _1)
    return supporters


@compiled
def signs_supporting(coefficients: _Words, num_cells: int, reports: _Ints, keys: _Ints) -> Any:
    """Return ``(c,) int64``: how many signs are the Hadamard entry of each key's cell.

    Args:
        coefficients: ``(k, 3) uint64`` of the hash functions.
        num_cells: m.
        reports: As in `add_signs`.
        keys: ``(c,) int64``.
    """
    supporters = np.zeros(len(keys), dtype=np.int64)
    cells = np.uint64(num_cells)
    for i in range(len(reports)):
        row = reports[i, 0]
        coefficient = np.uint64(reports[i, 1])
        negative = np.int64(reports[i, 2] < 0)
        for c in range(len(keys)):
            cell = polynomial(coefficients, row, np.uint64(keys[c])) % cells
            odd = np.int64(_ones(cell & coefficient) & _1)
            supporters[c] += np.int64(odd == negative)
    return supporters
