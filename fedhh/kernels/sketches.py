"""Inner loops of the sketching oracles: hashing, noisy rows, and sums over a sketch's rows.

A hash function is a polynomial of degree two over the integers modulo the prime 2**61 - 1, then
reduced modulo the number of cells. `fedhh.hashing` says what is claimed of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from fedhh.kernels.cache import compiled, subroutine
from fedhh.kernels.prng import LANES

_Words = npt.NDArray[np.uint64]
_Ints = npt.NDArray[np.int64]

PRIME = 2**61 - 1

_PRIME = np.uint64(PRIME)
_LOW_32 = np.uint64(0xFFFFFFFF)
_LOW_29 = np.uint64((1 << 29) - 1)

_KEYS_AT_ONCE = 2**14
_WORD_BITS = 64
# Sums that bits run over after fewer rows are kept in more bits.
_ROWS_PER_END = 16

# Constants of the module, since a call of np.uint64 takes longer to compile than what it is for.
_3 = np.uint64(3)
_29 = np.uint64(29)
_32 = np.uint64(32)
_61 = np.uint64(61)


@numba.njit(inline="always")
def _fold(number: Any) -> Any:
    """Return a number below 2**64 modulo the prime."""
    number = (number & _PRIME) + (number >> _61)
    return number - _PRIME if number >= _PRIME else number


@numba.njit(inline="always")
def _multiply(a: Any, b: Any) -> Any:
    """Return a b modulo the prime, for a and b below it.

    2**61 is 1 modulo the prime, so a 122-bit product is the sum of its 61-bit halves; here, of
    what the four products of 32-bit parts contribute to them.
    """
    a_low, a_high = a & _LOW_32, a >> _32
    b_low, b_high = b & _LOW_32, b >> _32
    low = a_low * b_low
    middle = a_low * b_high + a_high * b_low
    return _fold(
        (low & _PRIME)
        + (low >> _61)
        + ((middle & _LOW_29) << _32)
        + (middle >> _29)
        + ((a_high * b_high) << _3)
    )


@numba.njit(inline="always")
def polynomial(coefficients: Any, row: Any, key: Any) -> Any:
    """Return a key's value under the hash function of a row, modulo the prime."""
    inner = _fold(_multiply(coefficients[row, 2], key) + coefficients[row, 1])
    return _fold(_multiply(inner, key) + coefficients[row, 0])


@compiled
def evaluate_strings(codes: npt.NDArray[np.uint16], point: np.uint64) -> _Ints:
    """Return each row of ``(n, width)`` codes as a polynomial at ``point``, modulo the prime."""
    keys = np.empty(len(codes), dtype=np.int64)
    for i in range(len(codes)):
        key = np.uint64(0)
        for code in codes[i]:
            key = _fold(_multiply(key, point) + np.uint64(code))
        keys[i] = np.int64(key)
    return keys


@compiled
def hash_pairs(coefficients: _Words, num_cells: int, rows: _Ints, keys: _Ints) -> _Ints:
    """Return ``(n,) int64``: the cell of each key, below the prime, under its row's hash function.

    Coefficients are ``(k, 3) uint64`` below the prime, lowest degree first.
    """
    cells = np.empty(len(keys), dtype=np.int64)
    for i in range(len(keys)):
        value = polynomial(coefficients, rows[i], np.uint64(keys[i]))
        cells[i] = np.int64(value % np.uint64(num_cells))
    return cells


def sum_cells(coefficients: _Words, tables: _Ints, keys: _Ints) -> _Ints:
    """Return ``(t, n) int64``: for each of ``(t, k, m)`` tables and each key, its cells summed.

    A key has a cell in each row; coefficients are those of `hash_pairs`.
    """
    sums = np.empty((len(tables), len(keys)), dtype=np.int64)
    for part, base, packed in _packed(tables):
        sums[part] = base[:, None]
        _add_cells(coefficients, *packed, keys, sums[part])
    return sums


def sum_cells_of_range(coefficients: _Words, tables: _Ints, num_keys: int) -> _Ints:
    """Return `sum_cells` for the keys 0 .. num_keys - 1, without a multiplication per key.

    A polynomial of degree two has constant second differences, so the next key's value is two
    additions away.
    """
    sums = np.empty((len(tables), num_keys), dtype=np.int64)
    for part, base, packed in _packed(tables):
        sums[part] = base[:, None]
        _add_cells_of_range(coefficients, *packed, sums[part])
    return sums


def _packed(tables: _Ints) -> Iterator[tuple[slice, _Ints, tuple[_Words, _Ints, int]]]:
    """Yield tables together in the bits of one, so that a look-up serves as many as pays.

    That is: which tables; ``(t,) int64``, the sum of the least cells of their rows; and, packed,
    ``(k, m) uint64`` with a cell of each table above the least of its row, ``(b,) int64`` rows up
    to which is added before bits could run over, and how many bits a table has.
    """
    least = tables.min(axis=2)
    spreads = (tables.max(axis=2) - least).max(axis=0, initial=0)
    at_once = len(tables)
    while (ends := _ends(spreads, _WORD_BITS // max(at_once, 1))) is None:
        at_once = -(-at_once // 2)
    bits = _WORD_BITS // max(at_once, 1)
    for first in range(0, len(tables), at_once):
        part = slice(first, first + at_once)
        lines = np.zeros(tables.shape[1:], dtype=np.uint64)
        for place, (table, lowest) in enumerate(zip(tables[part], least[part], strict=True)):
            lines |= (table - lowest[:, None]).astype(np.uint64) << np.uint64(place * bits)
        yield part, least[part].sum(axis=1), (lines, ends, bits)


def _ends(spreads: _Ints, bits: int) -> _Ints | None:
    """Return after which rows sums are taken out of so many bits; None if that is too often."""
    if bits == _WORD_BITS:
        return np.array([len(spreads)])
    room = 2**bits - 1
    if spreads.max(initial=0) > room:
        return None
    ends, filled = [], 0
    for row, spread in enumerate(spreads.tolist()):
        if filled + spread > room:
            ends.append(row)
            filled = 0
        filled += spread
    return None if len(ends) > len(spreads) // _ROWS_PER_END else np.array([*ends, len(spreads)])


@compiled
def _add_cells(
    coefficients: _Words, lines: _Words, ends: _Ints, bits: int, keys: _Ints, sums: _Ints
) -> None:
    cells = np.empty(_KEYS_AT_ONCE, dtype=np.uint64)
    packed = np.empty(_KEYS_AT_ONCE, dtype=np.uint64)
    # Keys in the outer loop: a chunk's cells and sums, and one row, stay in the cache.
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        here = keys[start : start + _KEYS_AT_ONCE]
        first = 0
        for end in ends:
            packed[:] = 0
            for row in range(first, end):
                _evaluate(coefficients[row], here, cells)
                _gather(lines[row], cells, len(here), packed)
            first = end
            _unpack(packed, bits, len(here), sums[:, start:])


@compiled
def _add_cells_of_range(
    coefficients: _Words, lines: _Words, ends: _Ints, bits: int, sums: _Ints
) -> None:
    num_rows = lines.shape[0]
    num_keys = sums.shape[1]
    cells = np.empty(_KEYS_AT_ONCE, dtype=np.uint64)
    packed = np.empty(_KEYS_AT_ONCE, dtype=np.uint64)
    values = np.empty(LANES, dtype=np.uint64)
    steps = np.empty(LANES, dtype=np.uint64)
    # Each row's polynomial at the chunk's first key, and how far it is to the next.
    value = coefficients[:, 0].copy()
    step = np.empty(num_rows, dtype=np.uint64)
    for row in range(num_rows):
        step[row] = _fold(coefficients[row, 1] + coefficients[row, 2])
    for start in range(0, num_keys, _KEYS_AT_ONCE):
        size = min(_KEYS_AT_ONCE, num_keys - start)
        first = 0
        for end in ends:
            packed[:] = 0
            for row in range(first, end):
                here, by = value[row], step[row]
                bend = _fold(np.uint64(2) * coefficients[row, 2])
                # Every lane goes on by LANES keys at once.
                for lane in range(LANES):
                    values[lane] = here
                    here, by = _add(here, by), _add(by, bend)
                for lane in range(LANES):
                    steps[lane] = _add(here, _PRIME - values[lane])
                    here, by = _add(here, by), _add(by, bend)
                far_bend = _multiply(bend, np.uint64(LANES * LANES))
                _go_on(values, steps, far_bend, cells, size)
                value[row] = values[0]
                step[row] = _add(values[1], _PRIME - values[0])
                _gather(lines[row], cells, size, packed)
            first = end
            _unpack(packed, bits, size, sums[:, start:])


# Each loop is a function of its own: in a larger one, LLVM does not make vector code of it.


@subroutine
def _evaluate(coefficients: _Words, keys: _Ints, values: _Words) -> None:
    c0, c1, c2 = coefficients[0], coefficients[1], coefficients[2]
    for i in range(len(keys)):
        key = np.uint64(keys[i])
        values[i] = _fold(_multiply(_fold(_multiply(c2, key) + c1), key) + c0)


@subroutine
def _go_on(values: _Words, steps: _Words, bend: np.uint64, out: _Words, size: int) -> None:
    """Write LANES interleaved sequences with constant second differences, and move on."""
    for block in range(0, size, LANES):
        for lane in range(LANES):
            value, step = values[lane], steps[lane]
            out[block + lane] = value
            values[lane] = _add(value, step)
            steps[lane] = _add(step, bend)


@subroutine
def _gather(line: _Words, values: _Words, size: int, sums: _Words) -> None:
    num_cells = np.uint64(len(line))
    mask = num_cells - np.uint64(1)
    if num_cells & mask:
        for i in range(size):
            sums[i] += line[values[i] % num_cells]
    else:
        for i in range(size):
            sums[i] += line[values[i] & mask]


@numba.njit(inline="always")
def _add(a: Any, b: Any) -> Any:
    """Return a + b modulo the prime, for a below it and b at most it."""
    total = a + b
    return total - _PRIME if total >= _PRIME else total


@subroutine
def _unpack(packed: _Words, bits: int, size: int, sums: _Ints) -> None:
    mask = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - bits)
    for table in range(len(sums)):
        shift = np.uint64(table * bits)
        out = sums[table]
        for i in range(size):
            out[i] += np.int64((packed[i] >> shift) & mask)


@compiled
def hadamard_rows(table: _Ints) -> None:
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
