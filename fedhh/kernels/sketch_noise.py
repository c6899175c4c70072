"""Noise of a whole sketch at once: each cell's count of ones, given how many reports hit it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.kernels.cache import compiled, subroutine
from fedhh.kernels.prng import next_float, next_uint64
from fedhh.kernels.variates import draw_binomial

_Ints = npt.NDArray[np.int64]
_Words = npt.NDArray[np.uint64]
_Floats = npt.NDArray[np.float64]

_NEGLIGIBLE = 1e-25
"""Chance, relative to the likeliest, below which 64 bits cannot tell a count from none."""

_GUIDES = 256
_GUIDE_SHIFT = np.uint64(56)

_MOST_COINS = 16


@compiled
def add_noise(counts: _Ints, reports: _Ints, flip: float, out: _Ints, state: _Words) -> None:
    """Fill in the counts of ones of a sketch whose reports are indicators with flipped entries.

    All n entries of a cell are flipped with the same probability, those of the h reports whose own
    cell it is, too. So of T ~ Binomial(n, flip) flips X are of these, a hypergeometric number, and
    T - X + h - X entries are ones. The law of T is one table per row; in most cells h is small, and
    X needs a few coins.

    Args:
        counts: ``(k, m) int64``: reports whose own cell it is.
        reports: ``(k,) int64``: reports by row.
        flip: Probability of a flip, in (0, 1).
        out: ``(k, m) int64``, overwritten.
        state: ``(4,) uint64`` of the generator, changed in place.
    """
    num_rows, num_cells = counts.shape
    kept = 1.0 - flip
    weights = np.empty(num_cells + 2)
    law = np.empty(num_cells + 2, dtype=np.uint64)
    guide = np.empty(_GUIDES, dtype=np.int64)
    for row in range(num_rows):
        n = reports[row]
        first, size = _binomial_law(n, flip, kept, num_cells, weights)
        if size:
            _lay_out(weights, size, law, guide)
        for cell in range(num_cells):
            own = counts[row, cell]
            if size == 0 or own > _MOST_COINS:
                ones = own - draw_binomial(own, flip, kept, state)
                out[row, cell] = ones + draw_binomial(n - own, flip, kept, state)
                continue
            word = next_uint64(state)
            place = guide[np.int64(word >> _GUIDE_SHIFT)]
            while word > law[place]:
                place += 1
            flips = first + place
            flipped_own = 0
            for i in range(own):
                if next_float(state) * (n - i) < flips - flipped_own:
                    flipped_own += 1
            out[row, cell] = flips + own - 2 * flipped_own


@subroutine
def _binomial_law(n: int, flip: float, kept: float, room: int, weights: _Floats) -> Any:
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
def _lay_out(weights: _Floats, size: int, law: _Words, guide: _Ints) -> None:
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
        law[i] = np.uint64(min(below / total, 1.0 - 2.0**-53) * 2.0**64)
    law[size - 1] = np.uint64(0xFFFFFFFFFFFFFFFF)
    place = 0
    for i in range(_GUIDES):
        while law[place] < np.uint64(i) << _GUIDE_SHIFT:
            place += 1
        guide[i] = place
