"""Binomial and hypergeometric numbers in constant time, exact for counts up to 10**12.

Probabilities are given as weights whose ratio is right to all digits, never as differences from 1,
and logarithms of factorials are taken as differences from those at the mode: at 10**11 trials
their own rounding would show.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fedhh.arrays import Ints, UInts
from fedhh.kernels.cache import compiled, subroutine
from fedhh.kernels.prng import count_ones, next_float, next_uint64

_FEWEST_FOR_REJECTION = 10.0
"""Expected successes from which transformed rejection is valid; below, inversion is as fast."""

_BEYOND_INVERSION = 150
"""No number with a mean below 10 comes near: Poisson's tail there is below 1e-100."""

_MOST_URN_DRAWS = 10

_STIRLING = np.array(
    [
        math.lgamma(k + 1.0) - ((k + 0.5) * math.log(k + 1.0) - (k + 1.0) + 0.9189385332046727)
        for k in range(10)
    ]
)

# Stadlober's constants of the table mountain hat: 2 sqrt(2 / e) and 3 - 2 sqrt(3 / e).
_HAT_SLOPE = 1.7155277699214135
_HAT_WIDTH = 0.8989161620588988


@subroutine
def _stirling(k: float) -> Any:
    """Return ln k! less (k + 1/2) ln(k + 1) - (k + 1) + ln(2 pi) / 2."""
    if k < 10.0:
        return _STIRLING[int(k)]
    inverse = 1.0 / (k + 1.0)
    square = inverse * inverse
    return (1 / 12 - (1 / 360 - square / 1260) * square) * inverse


@subroutine
def _log_factorial_ratio(k: float, m: float) -> Any:
    """Return ln(k! / m!), relative to its size, for whole numbers."""
    gap = k - m
    return (
        (k + 0.5) * math.log1p(gap / (m + 1.0))
        + gap * (math.log(m + 1.0) - 1.0)
        + _stirling(k)
        - _stirling(m)
    )


@subroutine
def draw_binomial(trials: int, heads: float, tails: float, state: UInts) -> Any:
    """Return how many of so many trials succeed, each with chance heads / (heads + tails).

    Below ten expected successes (or failures) by inversion; above by transformed rejection:
    Hoermann (1993), "The generation of binomial random variates", JSCS 46, algorithm BTRS.

    Args:
        trials: At least 0, at most about 10**12.
        heads: Weight of success, not negative.
        tails: Weight of failure, not negative; not both are 0.
    """
    if trials <= 0 or heads <= 0.0:
        return 0
    if tails <= 0.0:
        return trials
    if heads == tails and trials <= 64:
        return np.int64(count_ones(next_uint64(state) >> np.uint64(64 - trials)))
    total = heads + tails
    if trials == 1:
        return 1 if next_float(state) * total < heads else 0
    if heads > tails:
        return trials - _fewer(trials, tails, heads, total, state)
    return _fewer(trials, heads, tails, total, state)


@subroutine
def _fewer(trials: int, heads: float, tails: float, total: float, state: UInts) -> Any:
    """Return a binomial number whose successes are at most as likely as its failures."""
    n, p = float(trials), heads / total
    if n * p < _FEWEST_FOR_REJECTION:
        odds = heads / tails
        none = math.exp(-n * math.log1p(odds))
        while True:
            left, chance = next_float(state), none
            for k in range(min(trials, _BEYOND_INVERSION) + 1):
                if left < chance:
                    return k
                left -= chance
                chance *= odds * (n - k) / (k + 1.0)
    deviation = math.sqrt(n * p * (tails / total))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    top = 0.92 - 4.2 / b
    mode = math.floor((n + 1.0) * p)
    # Relative to the mode: at 10**11, floats have few digits left for the fraction.
    center = n * p - mode + 0.5
    while True:
        v = next_float(state)
        u = next_float(state) - 0.5
        side = 0.5 - abs(u)
        if side <= 0.0:
            continue
        gap = math.floor((2.0 * a / side + b) * u + center)
        k = mode + gap
        if k < 0.0 or k > n:
            continue
        if side >= 0.07 and v <= top:
            return np.int64(k)
        v *= (2.83 + 5.1 / b) * deviation / (a / (side * side) + b)
        if v <= 0.0:
            return np.int64(k)
        # ln P(k) / P(mode), in terms that are small wherever k is likely.
        other = n - mode
        log_ratio = (
            gap * (math.log(heads / tails) - math.log((mode + 1.0) / (other + 1.0)))
            - (k + 0.5) * math.log1p(gap / (mode + 1.0))
            - (n - k + 0.5) * math.log1p(-gap / (other + 1.0))
            - (_stirling(float(k)) - _stirling(float(mode)))
            - (_stirling(n - k) - _stirling(other))
        )
        if math.log(v) <= log_ratio:
            return np.int64(k)


@subroutine
def draw_hypergeometric(good: int, bad: int, sample: int, state: UInts) -> Any:
    """Return how many of ``sample`` balls, drawn without replacement, are good.

    Few balls are drawn one by one; many by the ratio of uniforms: Stadlober (1990), "The ratio of
    uniforms approach for generating discrete random variates", JCAM 31, algorithm HRUA.

    Args:
        good: Good balls, at least 0.
        bad: The others.
        sample: In [0, good + bad].
    """
    if good == 0 or sample == 0:
        return 0
    if bad == 0:
        return sample
    few = min(sample, good + bad - sample)
    if good > bad:
        found = few - _fewer_good(bad, good, few, state)
    else:
        found = _fewer_good(good, bad, few, state)
    return found if few == sample else good - found


@subroutine
def _fewer_good(good: int, bad: int, sample: int, state: UInts) -> Any:
    # Which balls are good and which are drawn are two independent subsets: the roles can change.
    if sample <= _MOST_URN_DRAWS:
        return _urn(good, good + bad, sample, state)
    if good <= _MOST_URN_DRAWS:
        return _urn(sample, good + bad, good, state)
    balls = float(good + bad)
    n, g = float(sample), float(good)
    rest = float(bad) - n
    p = g / balls
    variance = (balls - n) / (balls - 1.0) * n * p * (1.0 - p)
    width = _HAT_SLOPE * math.sqrt(variance + 0.5) + _HAT_WIDTH
    # A float, like all that is compared with it: its functions are then compiled once.
    mode = float(math.floor((n + 1.0) * ((g + 1.0) / (balls + 2.0))))
    center = n * p - mode + 0.5
    most = min(n, g)
    while True:
        u = next_float(state)
        v = next_float(state)
        if u <= 0.0:
            continue
        gap = math.floor(center + width * (v - 0.5) / u)
        k = mode + gap
        if k < 0.0 or k > most or rest + k < 0.0:
            continue
        log_ratio = -(
            _log_factorial_ratio(k, mode)
            + _log_factorial_ratio(g - k, g - mode)
            + _log_factorial_ratio(n - k, n - mode)
            + _log_factorial_ratio(rest + k, rest + mode)
        )
        if u * (4.0 - u) - 3.0 <= log_ratio:
            return np.int64(k)
        if u * (u - log_ratio) < 1.0 and 2.0 * math.log(u) <= log_ratio:
            return np.int64(k)


@subroutine
def _urn(good: int, balls: int, sample: int, state: UInts) -> Any:
    """Return how many of a few balls are good, drawn one by one."""
    found = 0
    for drawn in range(sample):
        if next_float(state) * (balls - drawn) < good - found:
            found += 1
    return found


@compiled
def binomials(trials: Ints, heads: float, tails: float, state: UInts) -> Any:
    """Return ``(n,) int64``: `draw_binomial` for each number of trials."""
    drawn = np.empty(len(trials), dtype=np.int64)
    for i in range(len(trials)):
        drawn[i] = draw_binomial(trials[i], heads, tails, state)
    return drawn
