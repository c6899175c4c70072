"""Distributions of sums of independent counts by Fourier transforms, with a bound on rounding."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fedhh.arrays import Floats

Complexes = npt.NDArray[np.complex128]

ROUNDING = 2.0**-52
_LEVEL = 4 * ROUNDING
"""Rounding of one level of a fast Fourier transform, relative to the sum of all masses.

A level is a product with a computed root of unity and a sum: at most (5**0.5 + 1 + 1) 2**-53.
"""


def convolve(first: Floats, second: Floats) -> Floats:
    """Return upper bounds on the probabilities of a sum of two independent counts, by 1e-15."""
    size = first.size + second.size - 1
    sums, error = on_a_circle([(first, 0.0, 1), (second, 0.0, 1)], transform_length(size))
    return sums[:size] + error


def on_a_circle(counts: Sequence[tuple[Floats, float, int]], length: int) -> tuple[Floats, float]:
    """Return masses of a sum of independent counts modulo a length, and how far off each may be.

    Let F be a transform of masses that sum to 1, each output a sum of them through log2(length)
    levels: it is off by at most e = `_LEVEL` log2(length), and by the masses' own error. So a
    product of powers of F is off by at most that of F + e less that of F; the mean of this over
    all frequencies bounds what the inverse makes of it, to which its own rounding is added.

    Args:
        counts: Masses of each count, the sum of their absolute errors, how many such counts.
        length: At least that of any masses.
    """
    level = _LEVEL * math.log2(length)
    product: Complexes | None = None
    largest: Floats = np.ones(length // 2 + 1)
    smallest: Floats = np.ones(length // 2 + 1)
    for masses, off, times in counts:
        transform = np.fft.rfft(masses, length)
        sizes = np.abs(transform)
        # The last term is for the products of the power.
        largest *= (sizes + (level + off + _LEVEL)) ** times
        smallest *= sizes**times
        power = _power(transform, times)
        product = power if product is None else product * power
    assert product is not None
    errors = largest * (1 + level) - smallest
    return np.fft.irfft(product, length), 2 * float(np.sum(errors)) / length


def _power(base: Complexes, exponent: int) -> Complexes:
    """Return elementwise powers by products, each of which rounds by less than `_LEVEL`."""
    result: Complexes | None = None
    while True:
        if exponent & 1:
            result = base if result is None else result * base
        exponent >>= 1
        if not exponent:
            assert result is not None
            return result
        base = base * base


def transform_length(size: int) -> int:
    """Return a length of Fourier transforms that is at least a size."""
    return 1 << max(1, (size - 1).bit_length())
