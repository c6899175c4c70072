"""Sums of privacy losses in long double: what bounds in double precision must not fall below."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from scipy import fft

Parts = Sequence[tuple[int, np.ndarray, float, int]]
"""Least loss in gaps, masses gap by gap, probability of an infinite loss, how often it is added."""

Long = np.longdouble
needs_long_double = pytest.mark.skipif(
    np.finfo(Long).eps > 2e-19, reason="long double is not longer than double here"
)

_WIDE = 30
"""Standard deviations of tilted sums that are kept."""


def delta_of_sum(parts: Parts, *, gap: float, epsilon: float) -> float:
    """Delta of a sum of independent losses; relative error about 1e-15 times their number."""
    unit, at = Long(gap), Long(epsilon)
    given = [(lowest, np.asarray(masses, dtype=Long), times) for lowest, masses, _, times in parts]
    tilt = _tilt_with_mean(given, unit, at)
    log, mean, deviation = _moments(given, unit, tilt)
    base = sum(lowest * times for lowest, _, times in given)
    span = sum((len(masses) - 1) * times for _, masses, times in given)
    kept = int(_WIDE * deviation / unit) + sum(len(masses) for _, masses, _ in given)
    length = 1 << min(span, kept).bit_length()
    product = np.ones(1, dtype=np.clongdouble)
    for lowest, masses, times in given:
        weights, _ = _tilted(lowest, masses, unit, tilt)
        product = product * _power(fft.rfft(weights, length), times)
    first = 0 if span < length else round(float(mean / unit)) - base - length // 2
    sums = np.roll(fft.irfft(product, length), -(first % length))
    losses = (np.arange(length) + (first + base)).astype(Long) * unit
    sums, losses = sums[losses > at], losses[losses > at]
    finite = np.sum(sums * np.exp(log - tilt * losses) * -np.expm1(at - losses))
    infinite = -np.expm1(sum(times * np.log1p(-Long(lost)) for *_, lost, times in parts))
    return float(finite + infinite)


def rational_delta_of_sum(parts: Parts, *, gap: float, index: int) -> float:
    """The same at ``epsilon = index * gap``: masses added up as fractions, without transforms."""
    distribution = {0: Fraction(1)}
    finite = Fraction(1)
    for lowest, masses, lost, times in parts:
        for _ in range(times):
            longer: dict[int, Fraction] = {}
            for place, mass in distribution.items():
                for more, other in enumerate(masses):
                    at = place + lowest + more
                    longer[at] = longer.get(at, Fraction(0)) + mass * Fraction(float(other))
            distribution = longer
            finite *= 1 - Fraction(lost)
    return float(1 - finite) + math.fsum(
        float(mass) * -math.expm1(gap * (index - place))
        for place, mass in distribution.items()
        if place > index
    )


def _tilted(lowest: int, masses: np.ndarray, unit: Long, tilt: Long) -> tuple[np.ndarray, Long]:
    exponents = tilt * unit * np.arange(lowest, lowest + len(masses)).astype(Long)
    top = exponents.max()
    weights = masses * np.exp(exponents - top)
    total = weights.sum()
    return weights / total, top + np.log(total)


def _moments(given: list, unit: Long, tilt: Long) -> tuple[Long, Long, Long]:
    log = mean = variance = Long(0)
    for lowest, masses, times in given:
        weights, each = _tilted(lowest, masses, unit, tilt)
        losses = np.arange(lowest, lowest + len(masses)).astype(Long) * unit
        center = np.sum(weights * losses)
        log += times * each
        mean += times * center
        variance += times * np.sum(weights * (losses - center) ** 2)
    return log, mean, np.sqrt(variance)


def _tilt_with_mean(given: list, unit: Long, mean: Long) -> Long:
    low, high = Long(0), 60 / unit
    for _ in range(70):
        middle = (low + high) / 2
        if _moments(given, unit, middle)[1] < mean:
            low = middle
        else:
            high = middle
    return low


def _power(base: np.ndarray, exponent: int) -> np.ndarray:
    result = np.ones(1, dtype=np.clongdouble)
    while exponent:
        if exponent & 1:
            result = result * base
        exponent >>= 1
        base = base * base
    return result
