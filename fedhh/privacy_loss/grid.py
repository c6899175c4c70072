"""Grids for losses of several kinds: one on which all lie, if there is one, else a fine one."""

from __future__ import annotations

import numpy as np

from fedhh.arrays import Floats

_SAME = 1e-12
_MOST_PARTS = 64
"""Of the smallest number; a common divisor below that is not looked for."""
_FINE = 1000
"""Gaps in the smallest number, where there is no common divisor."""


def common_divisor(numbers: Floats) -> float:
    """Return a gap of which some numbers are multiples, rounded up by 1e-12; 0 if none is known.

    Args:
        numbers: ``(n,) float64``, above 0.
    """
    for parts in range(1, _MOST_PARTS + 1):
        gap = numbers.min() / parts
        steps = np.rint(numbers / gap)
        if np.all(np.abs(steps * gap - numbers) <= _SAME * numbers):
            return float((numbers / steps).max()) * (1 + 2 * _SAME)
    return 0.0


def common_gap(numbers: Floats, *, span: float, most: int) -> float:
    """Return a gap for sums of some numbers, of which they are multiples if that is possible.

    Args:
        numbers: ``(n,) float64``, above 0.
        span: What is to be covered.
        most: Gaps in it, at most.
    """
    gap = common_divisor(numbers)
    if span <= gap * most:
        return gap
    return max(float(numbers.min()) / _FINE, span / most)


def gaps_in(number: float, gap: float) -> int:
    """Return how many gaps a number is, rounded up, but for an error of 1e-12."""
    return int(np.ceil(number / gap * (1 - _SAME)))
