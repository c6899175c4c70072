"""Subset Selection's reports, one by one, for whoever wants to see them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedhh.kernels.cache import compiled
from fedhh.kernels.prng import next_below, next_uint64

_Words = npt.NDArray[np.uint64]
_Ints = npt.NDArray[np.int64]


@compiled
def draw_subsets(
    values: _Ints, domain_size: int, miss: np.uint64, reports: _Ints, state: _Words
) -> None:
    """Fill each row of ``reports`` with one report, in the order of drawing.

    Repeats are found in a hash set of O(d) places, so that no step costs O(s).

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
