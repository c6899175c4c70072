"""Binomial tails, expectations and lattices, accurate up to 10**9 trials: numerics of the bounds.

Everything here is elementwise over NumPy arrays. Tails come from the regularized incomplete beta
function, probabilities from Loader's saddle-point form, so no small number is ever a difference of
large ones: relative errors stay below 1e-10 far into the tails.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from fedhh.arrays import Floats

_HALF_LOG_TWO_PI = 0.9189385332046727
_LEFT_TAIL = 100.0
"""-ln of the probability left of a lattice: 1e-43, nothing to what group privacy needs."""
_RIGHT_TAIL = 28.0
"""-ln of the probability right of a lattice: 1e-12, where bounds are smaller than at its mean."""

_MANY_BINS = 2048
_RARE = 4.5
"""Lattices of many bins have bins of eight widths beyond this many standard deviations."""

_COINS_RIGHT = 18.0
"""Standard deviations of coins beyond which `excess_of_coins` is not exact, but e**-162 or less."""

_ULPS = 64 * 2.0**-53
"""Relative rounding of a log-gamma function, times the number of those in a probability."""


def upper_tail(successes: npt.ArrayLike, trials: npt.ArrayLike, p: npt.ArrayLike) -> Floats:
    """Return P(Bin(trials, p) >= successes); 1 at and below 0, 0 above ``trials``."""
    k = np.asarray(successes, dtype=np.float64)
    n = np.asarray(trials, dtype=np.float64)
    tail = scipy.special.betainc(np.maximum(k, 1.0), np.maximum(n - k + 1.0, 1.0), p)
    return np.asarray(np.where(k <= 0, 1.0, np.where(k > n, 0.0, tail)), dtype=np.float64)


def lower_tail(successes: npt.ArrayLike, trials: npt.ArrayLike, p: npt.ArrayLike) -> Floats:
    """Return P(Bin(trials, p) <= successes); 0 below 0, 1 at and above ``trials``."""
    k = np.asarray(successes, dtype=np.float64)
    n = np.asarray(trials, dtype=np.float64)
    tail = scipy.special.betainc(
        np.maximum(n - k, 1.0), np.maximum(k + 1.0, 1.0), 1.0 - np.asarray(p)
    )
    return np.asarray(np.where(k < 0, 0.0, np.where(k >= n, 1.0, tail)), dtype=np.float64)


def pmf(successes: npt.ArrayLike, trials: npt.ArrayLike, p: npt.ArrayLike) -> Floats:
    """Return P(Bin(trials, p) = successes) for 0 < p < 1; 0 outside the support.

    Loader (2000), "Fast and accurate computation of binomial probabilities".
    """
    k, n = np.broadcast_arrays(
        np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    )
    p = np.asarray(p, dtype=np.float64)
    inside = (k > 0) & (k < n)
    kk = np.where(inside, k, 1.0)
    nn = np.where(inside, n, 2.0)
    log_middle = (
        _stirling_error(nn)
        - _stirling_error(kk)
        - _stirling_error(nn - kk)
        - _deviance(kk, nn * p)
        - _deviance(nn - kk, nn * (1.0 - p))
        + 0.5 * (np.log(nn) - np.log(kk) - np.log(nn - kk))
        - _HALF_LOG_TWO_PI
    )
    log_ends = np.where(k == 0, n * np.log1p(-p), n * np.log(p))
    outside = (k < 0) | (k > n)
    return np.asarray(
        np.where(outside, 0.0, np.exp(np.where(inside, log_middle, log_ends))), dtype=np.float64
    )


def _stirling_error(n: Floats) -> Floats:
    """Return ln(n!) minus Stirling's formula, n >= 1."""
    inverse = 1.0 / n
    square = inverse * inverse
    error = inverse * (
        1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188)))
    )
    is_small = n < 16
    # Mostly none is, and the gamma function takes longer than all else.
    if is_small.any():
        small = np.minimum(n, 16.0)
        exact = scipy.special.gammaln(small + 1) - (small + 0.5) * np.log(small) + small
        error = np.where(is_small, exact - _HALF_LOG_TWO_PI, error)
    return np.asarray(error, dtype=np.float64)


def _deviance(x: Floats, mean: Floats) -> Floats:
    """Return x ln(x / mean) + mean - x without cancellation near x = mean."""
    v = (x - mean) / (x + mean)
    is_far = np.abs(v) >= 0.1
    square = np.where(is_far, 0.0, v * v)
    series = 1 / 15 + square / 17
    for odd in (13, 11, 9, 7, 5, 3):
        series = 1 / odd + square * series
    deviance = (x - mean) * v + 2.0 * x * v * square * series
    if is_far.any():
        deviance = np.where(is_far, x * np.log(x / mean) + mean - x, deviance)
    return np.asarray(deviance, dtype=np.float64)


def log_hypergeometric(
    clients: int, holders: npt.ArrayLike, sample: int, votes: npt.ArrayLike
) -> Floats:
    """Return ln P(a sample has so many of the holders), rounded up; -inf where impossible."""
    gammaln = scipy.special.gammaln
    held, got = np.asarray(holders, dtype=np.float64), np.asarray(votes, dtype=np.float64)
    missed, rest = held - got, clients - held - sample + got
    possible = (missed >= 0) & (rest >= 0) & (got <= sample) & (sample - got <= clients - held)
    log_p = (
        gammaln(held + 1)
        - gammaln(got + 1)
        - gammaln(np.where(possible, missed, 0.0) + 1)
        + gammaln(clients - held + 1)
        - gammaln(np.maximum(sample - got, 0.0) + 1)
        - gammaln(np.where(possible, rest, 0.0) + 1)
        - (gammaln(clients + 1) - gammaln(sample + 1) - gammaln(clients - sample + 1))
    )
    return np.where(possible, log_p + _ULPS * gammaln(clients + 1), -np.inf)


def log_binomial(trials: Floats, successes: int, p: float, *, upwards: bool = True) -> Floats:
    """Return ln P(Bin(trials, p) = successes), rounded up or down."""
    gammaln = scipy.special.gammaln
    choose = gammaln(trials + 1) - gammaln(successes + 1.0) - gammaln(trials - successes + 1)
    log_p = choose + successes * math.log(p) + (trials - successes) * math.log1p(-p)
    margin = _ULPS * gammaln(trials + 1)
    return np.asarray(log_p + (margin if upwards else -margin))


def binomial_excess(trials: Floats, threshold: Floats, p: float = 0.5) -> Floats:
    """Return E[(A - threshold)_+] for A ~ Bin(trials, p), 0 < p < 1.

    With k = floor(threshold) + 1 this is (trials p - threshold) P(Bin(trials - 1, p) >= k - 1) +
    threshold (1 - p) P(Bin(trials - 1, p) = k - 1).

    Args:
        trials: ``(m,)`` or ``(m, 1)``, whole numbers >= 1.
        threshold: ``(m,)`` or ``(m, j)``.
        p: Success probability.
    """
    k = np.floor(threshold)
    tail, at = upper_tail(k, trials - 1, p), pmf(k, trials - 1, p)
    above = (trials * p - threshold) * tail + threshold * at * (1 - p)
    return np.asarray(np.maximum(above, 0.0), dtype=np.float64)


def width_of_coins(trials: Floats) -> int:
    """Return the number of columns of `excess_of_coins`."""
    return math.ceil(_COINS_RIGHT / 2 * math.sqrt(float(trials.max()))) + 3


def excess_of_coins(trials: Floats) -> Floats:
    """Return E[(A - k)_+] for A ~ Bin(trials, 1/2) and k = floor(trials / 2), and so on.

    Only positive numbers are multiplied and added. What lies right of the last column is bounded by
    Hoeffding's inequality.

    Args:
        trials: ``(m, 1)``, whole numbers >= 1.

    Returns:
        ``(m, width_of_coins(trials))``; between neighbors the expectation is linear in k.
    """
    low, width = np.floor(trials / 2), width_of_coins(trials)
    steps = low + np.arange(width)
    table = np.maximum(trials - steps, 0.0)
    steps += 1
    # Probabilities of more than k, one by one: all counts beyond the last column count there.
    table /= steps
    table[:, :1] *= pmf(low, trials, 0.5)
    within, beyond = table[:, :-1], table[:, -1:]
    np.multiply.accumulate(within, axis=1, out=within)
    last = steps[:, -1:] - 1
    np.exp(-2 * (last + 1 - trials / 2) ** 2 / trials, out=beyond)
    beyond[last >= trials] = 0.0
    # Their sums, then the sums of those over all k from here on.
    backwards = table[:, ::-1]
    np.add.accumulate(backwards, axis=1, out=backwards)
    beyond *= np.maximum(trials - last, 0.0)
    np.add.accumulate(backwards, axis=1, out=backwards)
    return table


@dataclass(frozen=True, kw_only=True)
class Lattice:
    """A binomial cut into bins of neighboring counts.

    Attributes:
        first: ``(m,) float64``, smallest count of each bin.
        last: ``(m,) float64``, largest count of each bin.
        probability: ``(m,) float64``, the bins' probabilities.
        below: Probability of all counts left of the first bin.
        above: Probability of all counts right of the last bin.
    """

    first: Floats
    last: Floats
    probability: Floats
    below: float
    above: float


def lattice(trials: int, p: float, *, tolerance: float) -> Lattice:
    """Return Bin(trials, p) in bins of about ``tolerance * (mean + 1)`` counts, at least one.

    What a function loses by being taken at a bin's end is at most ``tolerance`` times its
    logarithmic derivative.

    Args:
        trials: Number of trials, at least 1.
        p: Success probability in (0, 1).
        tolerance: Relative width of a bin.
    """
    low, high = window(trials, p, right=_RIGHT_TAIL)
    return _binned(
        low,
        pmf(np.arange(low, high + 1), trials, p),
        [(trials, p)],
        tolerance=tolerance,
        below=float(lower_tail(low - 1, trials, p)),
        above=float(upper_tail(high + 1, trials, p)),
    )


def lattice_of_sum(parts: Sequence[tuple[int, float]], *, tolerance: float) -> Lattice:
    """Return the same of a sum of independent binomials; its time rises as their variance.

    Whatever lies outside the `window` of a summand counts as left of the first bin.

    Args:
        parts: Trials, at least 1, and success probability of each summand.
        tolerance: Relative width of a bin.
    """
    masses, low, outside = [], 0, 0.0
    for trials, p in parts:
        start, stop = window(trials, p)
        masses.append(pmf(np.arange(start, stop + 1), trials, p))
        outside += float(lower_tail(start - 1, trials, p) + upper_tail(stop + 1, trials, p))
        low += start
    # Only positive numbers are multiplied and added.
    summed = functools.reduce(np.convolve, masses)
    return _binned(low, summed, parts, tolerance=tolerance, below=outside, above=0.0)


def window(trials: int, p: float, *, right: float = _LEFT_TAIL) -> tuple[int, int]:
    """Return the first and the last count of all but 1e-43 of Bin(trials, p).

    Args:
        trials: Number of trials.
        p: Success probability.
        right: -ln of what may be right of the last count.
    """
    mean = trials * p
    variance = mean * (1.0 - p)
    low = max(0, int(mean - bernstein(variance, _LEFT_TAIL)))
    return low, min(trials, int(mean + bernstein(variance, right)) + 1)


def _binned(
    low: int,
    masses: Floats,
    parts: Sequence[tuple[int, float]],
    *,
    tolerance: float,
    below: float,
    above: float,
) -> Lattice:
    """Return the bins of a sum of binomials, whose masses from ``low`` on are known."""
    mean = math.fsum(trials * p for trials, p in parts)
    variance = math.fsum(trials * p * (1.0 - p) for trials, p in parts)
    counts = np.arange(low, low + masses.size, dtype=np.float64)
    width = max(1, int(tolerance * (mean + 1)))
    starts = np.arange(0, counts.size, width)
    if starts.size > _MANY_BINS:
        rare = np.abs(counts[starts] - mean) > _RARE * np.sqrt(variance)
        starts = starts[~rare | (np.arange(starts.size) % 8 == 0)]
    return Lattice(
        first=counts[starts],
        last=counts[np.append(starts[1:], counts.size) - 1],
        probability=np.add.reduceat(masses, starts),
        below=below,
        above=above,
    )


def bernstein(variance: float, log_odds: float) -> float:
    """Return t with P(|X - mean| >= t) <= 2 exp(-log_odds), by Bernstein's inequality."""
    third = log_odds / 3
    return float(third + np.sqrt(third * third + 2 * variance * log_odds))
