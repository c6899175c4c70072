"""Subset Selection's inner loops: reports drawn and counted without being stored."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from fedhh.kernels.prng import next_below, next_uint64

_Words = npt.NDArray[np.uint64]
_Ints = npt.NDArray[np.int64]

COUNT_MASK = np.uint64(0xFFFFFFFF)


@numba.njit(cache=True)
def add_subset_votes(
    values: _Ints, subset_size: int, miss: np.uint64, table: _Words, state: _Words
) -> None:
    """Draw one Subset Selection report per value and count its members in ``table``.

    An entry of the table is ``stamp << 32 | count``, the stamp being the number of the last
    report that met the value: one access tells a repeated draw and counts a new one.

    Args:
        values: ``(n,) int64`` in [0, s), n below 2**32.
        subset_size: d, the number of values in a report, below s.
        miss: Probability that a report lacks its client's value, times 2**64.
        table: ``(s,) uint64``, zero at first; counts are its low 32 bits.
        state: ``(4,) uint64`` of the generator, changed in place.
    """
    bound = np.uint64(len(table))
    stamp = np.uint64(0)
    for value in values:
        stamp += np.uint64(1)
        held = np.uint64(1) if next_uint64(state) >= miss else np.uint64(0)
        # Stamped first, the client's own value cannot be drawn as one of the others.
        table[value] = (stamp << np.uint64(32)) | ((table[value] & COUNT_MASK) + held)
        missing = subset_size - np.int64(held)
        while missing > 0:
            other = next_below(state, bound)
            entry = table[other]
            if entry >> np.uint64(32) != stamp:
                table[other] = (stamp << np.uint64(32)) | ((entry & COUNT_MASK) + np.uint64(1))
                missing -= 1


@numba.njit(cache=True)
def draw_subsets(
    values: _Ints, domain_size: int, miss: np.uint64, reports: _Ints, state: _Words
) -> None:
    """Fill each row of ``reports`` with one Subset Selection report, in the order of drawing.

    Repeated draws are found in a hash set of O(d) places, so that no step costs O(s).

    Args:
        values: ``(n,) int64`` in [0, domain_size), n below 2**32.
        domain_size: s, below 2**32.
        miss: Probability that a report lacks its client's value, times 2**64.
        reports: ``(n, d) int64``, d below s.
        state: ``(4,) uint64`` of the generator, changed in place.
    """
    num_reports, subset_size = reports.shape
    bits = 2
    while (1 << bits) < 2 * (subset_size + 1):
        bits += 1
    seen = np.zeros(1 << bits, dtype=np.uint64)
    mask = np.uint64((1 << bits) - 1)
    shift = np.uint64(64 - bits)
    for row in range(num_reports):
        stamp = np.uint64(row + 1) << np.uint64(32)
        value = np.uint64(values[row])
        filled = 0
        if next_uint64(state) >= miss:
            reports[row, 0] = values[row]
            filled = 1
        other = value
        while True:
            # The client's own value enters the set first, so it is never one of the others.
            place = (other * np.uint64(0x9E3779B97F4A7C15)) >> shift
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
