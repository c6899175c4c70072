"""Inner loops of the sketching oracles: hashing, noisy rows, and sums over a sketch's rows.

A hash function is a polynomial of degree two over the integers modulo the prime 2**61 - 1, then
reduced modulo the number of cells. `fedhh.hashing` says what is claimed of it.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from fedhh.arrays import Bools, Floats, Ints, UInts
from fedhh.kernels.cache import compiled, subroutine
from fedhh.kernels.prng import LOW_32, U3, U29, U32, U61

PRIME = 2**61 - 1

_PRIME = np.uint64(PRIME)
_LOW_29 = np.uint64((1 << 29) - 1)

_KEYS_AT_ONCE = 2**14
_FIRST_STRINGS = 2**10


@numba.njit(inline="always")
def _fold(number: Any) -> Any:
    """Return a number below 2**64 modulo the prime."""
    number = (number & _PRIME) + (number >> U61)
    return number - _PRIME if number >= _PRIME else number


@numba.njit(inline="always")
def _multiply(a: Any, b: Any) -> Any:
    """Return a b modulo the prime, for a and b below it.

    2**61 is 1 modulo the prime, so a 122-bit product is the sum of its 61-bit halves; here, of
    what the four products of 32-bit parts contribute to them.
    """
    a_low, a_high = a & LOW_32, a >> U32
    b_low, b_high = b & LOW_32, b >> U32
    low = a_low * b_low
    middle = a_low * b_high + a_high * b_low
    return _fold(
        (low & _PRIME)
        + (low >> U61)
        + ((middle & _LOW_29) << U32)
        + (middle >> U29)
        + ((a_high * b_high) << U3)
    )


@numba.njit(inline="always")
def polynomial(coefficients: Any, row: Any, key: Any) -> Any:
    """Return a key's value under the hash function of a row, modulo the prime."""
    inner = _fold(_multiply(coefficients[row, 2], key) + coefficients[row, 1])
    return _fold(_multiply(inner, key) + coefficients[row, 0])


@compiled
def evaluate_strings(codes: npt.NDArray[np.uint16], point: np.uint64) -> Ints:
    """Return each row of ``(n, width)`` codes as a polynomial at ``point``, modulo the prime."""
    keys = np.empty(len(codes), dtype=np.int64)
    for i in range(len(codes)):
        key = np.uint64(0)
        for code in codes[i]:
            key = _fold(_multiply(key, point) + np.uint64(code))
        keys[i] = np.int64(key)
    return keys


@compiled
def hash_pairs(coefficients: UInts, num_cells: int, rows: Ints, keys: Ints) -> Ints:
    """Return ``(n,) int64``: the cell of each key, below the prime, under its row's hash function.

    Coefficients are ``(k, 3) uint64`` below the prime, lowest degree first.
    """
    cells = np.empty(len(keys), dtype=np.int64)
    for i in range(len(keys)):
        value = polynomial(coefficients, rows[i], np.uint64(keys[i]))
        cells[i] = np.int64(value % np.uint64(num_cells))
    return cells


@compiled
def strings_of_cell(
    starts: Ints,
    keys: Ints,
    costs: Floats,
    ends: Bools,
    blanks: Ints,
    budget: float,
    most: int,
    shift: np.uint64,
    coefficients: UInts,
    num_cells: np.uint64,
    cell: np.uint64,
) -> Any:
    """Return ``(m, positions) int64``: the pieces of affordable strings whose key has a cell.

    A string has a piece in each position, costs the product of their costs, and is looked at as
    long as that is within the budget. None if there are more than ``most`` beginnings or strings
    of one length to look at.

    Args:
        starts: ``(positions + 1,) int64``: where the pieces of each position begin.
        keys: ``(pieces,) int64``: of their symbols, equally many in each, by `evaluate_strings`.
        costs: ``(pieces,)``, at least 1, ascending within a position.
        ends: ``(pieces,)``: whether nothing but a blank may follow.
        blanks: ``(positions,) int64``: the piece that is a blank; where the next position starts
            if none is.
        budget: See above.
        most: See above.
        shift: The point of the keys to the power of a piece's symbols, modulo the prime.
        coefficients: ``(1, 3) uint64``: the hash function, as in `hash_pairs`.
        num_cells: Its number of cells.
        cell: The one that counts.
    """
    last = len(starts) - 2
    chosen = np.empty((_FIRST_STRINGS, last + 1), dtype=np.int64)
    piece, stop = starts[:-1] - 1, starts[1:].copy()
    cost, above = np.ones(last + 1), np.zeros(last + 1, dtype=np.uint64)
    looked = np.zeros(last + 1, dtype=np.int64)
    found, at = 0, 0
    while at >= 0:
        piece[at] += 1
        here = piece[at]
        if here >= stop[at] or costs[here] > budget / cost[at]:
            at -= 1
            continue
        looked[at] += 1
        if looked[at] > most:
            return None
        key = _fold(above[at] + np.uint64(keys[here]))
        if at == last:
            if polynomial(coefficients, 0, key) % num_cells == cell:
                if found == len(chosen):
                    chosen = np.concatenate((chosen, np.empty_like(chosen)))
                chosen[found] = piece
                found += 1
            continue
        at += 1
        above[at] = _multiply(key, shift)
        cost[at] = cost[at - 1] * costs[here]
        piece[at] = (blanks[at] if ends[here] else starts[at]) - 1
        stop[at] = min(blanks[at] + 1, starts[at + 1]) if ends[here] else starts[at + 1]
    return chosen[:found]


@compiled
def sum_cells(coefficients: UInts, tables: Ints, keys: Ints) -> Ints:
    """Return ``(t, n) int64``: for each of ``(t, k, m)`` tables and each key, its cells summed.

    A key has a cell in each row; coefficients are those of `hash_pairs`.
    """
    sums = np.zeros((len(tables), len(keys)), dtype=np.int64)
    cells = np.empty(_KEYS_AT_ONCE, dtype=np.uint64)
    # Keys in the outer loop: a chunk's cells and sums, and one row, stay in the cache.
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        here = keys[start : start + _KEYS_AT_ONCE]
        for row in range(len(coefficients)):
            _evaluate(coefficients[row], here, cells)
            for table in range(len(tables)):
                _gather(tables[table, row], cells, sums[table, start : start + len(here)])
    return sums


# Each loop is a function of its own: in a larger one, LLVM does not make vector code of it.


@subroutine
def _evaluate(coefficients: UInts, keys: Ints, values: UInts) -> None:
    c0, c1, c2 = coefficients[0], coefficients[1], coefficients[2]
    for i in range(len(keys)):
        key = np.uint64(keys[i])
        values[i] = _fold(_multiply(_fold(_multiply(c2, key) + c1), key) + c0)


@subroutine
def _gather(line: Ints, values: UInts, sums: Ints) -> None:
    num_cells = np.uint64(len(line))
    mask = num_cells - np.uint64(1)
    if num_cells & mask:
        for i in range(len(sums)):
            sums[i] += line[values[i] % num_cells]
    else:
        for i in range(len(sums)):
            sums[i] += line[values[i] & mask]


@compiled
def hadamard_rows(table: Ints) -> None:
    """Replace each row of ``(k, m) int64`` by its product with the Hadamard matrix, in place.

    The matrix has entries (-1)**popcount(i & j), i and j from 0; m is a power of two. Cost
    O(k m log m).
    """
    num_rows, size = table.shape
    for row in range(num_rows):
        line = table[row]
        half = 1
        while half < size:
            for start in range(0, size, 2 * half):
                for i in range(start, start + half):
                    a, b = line[i], line[i + half]
                    line[i], line[i + half] = a + b, a - b
            half *= 2
