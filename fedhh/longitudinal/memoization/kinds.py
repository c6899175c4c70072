"""RAPPOR, 1BitMean and dBitFlip as bits that are remembered, and what a server estimates of them.

Sources: Erlingsson, Pihur, Korolova (2014), "RAPPOR: randomized aggregatable privacy-preserving
ordinal response", CCS; Ding, Kulkarni, Yekhanin (2017), "Collecting telemetry data privately",
NIPS.
"""

from __future__ import annotations

import math

import numpy as np

from fedhh.arrays import Floats
from fedhh.longitudinal.memoization.bits import BitPair, Bits, Classes, MemoizedBits, Public
from fedhh.oracles.bloom import NOTHING, BitResponse, BloomFilters
from fedhh.validation import (
    InputError,
    require_at_least,
    require_epsilon,
    require_inside,
    require_positive,
    shown,
)

LARGEST_EPSILON = 30.0
"""Of telemetry: beyond it floating point cannot tell a permanent response from none."""


def rappor(filters: BloomFilters, response: BitResponse) -> MemoizedBits:
    """Return RAPPOR with permanent and instantaneous responses.

    A device draws its cohort once. For each value that it ever reports it draws a permanent
    response to the value's Bloom filter, once; every day it sends an instantaneous response to
    that. With ``p = 0`` and ``q = 1`` the permanent response itself is sent (one-time RAPPOR).

    Formal guarantees:
        * One report: h ln(q*(1 - p*) / (p*(1 - q*))), the paper's epsilon_1 (Theorem 2).
        * All reports about one value: 2 h ln((1 - f/2) / (f/2)), the paper's epsilon_infinity
          (Theorem 1). Both are attained where two values share no bit.
        * When a value changes, all k permanent bits are drawn anew, those too that neither value
          sets: a change can be seen far better than what it was.

    Args:
        filters: Which bits a value sets; values are keys, or `fedhh.oracles.bloom.NOTHING`.
        response: f of the permanent response, p and q of the instantaneous one.

    Raises:
        InputError: No two values share no bit.
    """
    half, hashes = response.f / 2, filters.num_hashes
    neither = filters.num_bits - 2 * hashes
    if neither < 0:
        raise InputError(
            f"Expected num_bits >= 2 num_hashes={2 * hashes}, for values that share no bit, "
            f"got num_bits={filters.num_bits}."
        )

    def chances(public: Public, classes: Classes) -> Floats:
        return np.where(filters.filters(public[:, 0], classes), 1 - half, half)

    return MemoizedBits(
        pairs=_present(
            BitPair(1 - half, half, hashes),
            BitPair(half, 1 - half, hashes),
            BitPair(half, half, neither),
        ),
        daily_one=response.q,
        daily_zero=response.p,
        chances=chances,
        draw_public=lambda size, rng: rng.integers(filters.num_cohorts, size=(size, 1)),
        public_bits=math.log2(filters.num_cohorts),
        lowest=NOTHING,
    )


def one_bit_mean(
    *, epsilon: float, maximum: float, num_steps: int = 1, gamma: float = 0.0
) -> MemoizedBits:
    """Return 1BitMean with alpha-point rounding, permanent responses and output perturbation.

    A device rounds its number to one of M/S + 1 grid points by an alpha of its own, drawn once. For
    each grid point y it draws a bit, once: 1 with chance 1/(e + 1) + (y/M) (e - 1)/(e + 1), where
    e = exp(epsilon). Every day it sends today's point's bit, flipped with chance gamma.

    Formal guarantees:
        * All reports about one value: epsilon, attained by 0 against M. One report: less, if gamma
          is above 0.
        * Two histories whose *rounded* values repeat and differ on the same days, with w distinct
          ones, for every alpha: w epsilon (the paper's theorem on behavior patterns of width w,
          which is about rounded values). Other values of one pattern are not such a pair: two that
          are close are rounded to one point by most alphas, two that are not by few, and reports
          show that. `MemoizedBits.epsilon_of_histories` says which are.
        * Not protected: that a rounded value changed. With gamma = 0, a bit that differs from
          yesterday's proves a change. With gamma above 0, each report hides its day's permanent
          bit by ln((1 - gamma) / gamma), but the days add up.

    Args:
        epsilon: Of the permanent response.
        maximum: M; values are numbers in [0, M].
        num_steps: M/S: grid points but one; 1 rounds to 0 or M.
        gamma: Chance that a sent bit is flipped, below 1/2.
    """
    _check(epsilon, gamma)
    require_positive(maximum=maximum)
    require_at_least(1, num_steps=num_steps)
    low = 1 / (1 + math.exp(epsilon))
    return MemoizedBits(
        pairs=(BitPair(1 - low, low, 1),),
        daily_one=1 - gamma,
        daily_zero=gamma,
        chances=lambda public, classes: (low + (1 - 2 * low) * classes / num_steps)[:, None],
        draw_public=lambda size, rng: np.empty((size, 0), dtype=np.int64),
        most=num_steps,
        step=maximum / num_steps,
    )


def dbitflip(
    *, epsilon: float, num_buckets: int, num_drawn: int = 16, gamma: float = 0.0
) -> MemoizedBits:
    """Return dBitFlip with permanent responses (the paper's dBitFlipPM) and output perturbation.

    A device draws d of K buckets once, and says which. For each bucket that its value is ever in,
    it draws d bits, once: with h = exp(epsilon/2), a drawn bucket's bit is 1 with chance h/(h + 1)
    if the value is in it, else 1/(h + 1). Every day it sends the bits of today's bucket, each
    flipped with chance gamma.

    Formal guarantees:
        * All reports about one value: epsilon, attained by two drawn buckets; with d = 1 no device
          gives away more than epsilon/2.
        * Two histories of buckets that repeat and differ on the same days, w distinct ones: epsilon
          min(w, d), and epsilon min(2, d)/2 if w = 1: of w independent responses, only those to
          drawn buckets differ in distribution.
        * Not protected: that a value changed bucket, of which any bit may tell, also between two
          buckets that were not drawn.
        * Which buckets were drawn is public, and is a mark of the device: log2 C(K, d) bits.

    Args:
        epsilon: Of the permanent response.
        num_buckets: K; values are 0 .. K - 1.
        num_drawn: d, from 1 to K.
        gamma: Chance that a sent bit is flipped, below 1/2.
    """
    _check(epsilon, gamma)
    require_at_least(2, num_buckets=num_buckets)
    require_at_least(1, num_drawn=num_drawn)
    if num_drawn > num_buckets:
        raise InputError(
            f"Expected num_drawn <= num_buckets={num_buckets}, got num_drawn={num_drawn}."
        )
    keep = 1 / (1 + math.exp(-epsilon / 2))
    other = int(num_drawn > 1)

    def draw_public(size: int, rng: np.random.Generator) -> Public:
        """Return ``(n, d) int64``: distinct buckets, ascending; Floyd's algorithm."""
        drawn = np.full((size, num_drawn), -1, dtype=np.int64)
        for place, last in enumerate(range(num_buckets - num_drawn, num_buckets)):
            each = rng.integers(last + 1, size=size)
            taken = (drawn[:, :place] == each[:, None]).any(axis=1)
            drawn[:, place] = np.where(taken, last, each)
        drawn.sort(axis=1)
        return drawn

    return MemoizedBits(
        pairs=_present(
            BitPair(keep, 1 - keep, 1),
            BitPair(1 - keep, keep, other),
            BitPair(1 - keep, 1 - keep, num_drawn - 1 - other),
        ),
        daily_one=1 - gamma,
        daily_zero=gamma,
        chances=lambda public, classes: np.where(public == classes[:, None], keep, 1 - keep),
        draw_public=draw_public,
        public_bits=math.log2(math.comb(num_buckets, num_drawn)),
        most=num_buckets - 1,
        of_pattern=lambda width: (
            epsilon * (min(2, num_drawn) / 2 if width == 1 else min(width, num_drawn))
        ),
    )


def estimate_mean(reports: Bits, *, epsilon: float, maximum: float, gamma: float = 0.0) -> float:
    """Return 1BitMean's unbiased estimate of the mean of all devices' values, of one day.

    M/n times the sum of (b (e + 1) - 1) / (e - 1), where with output perturbation
    (b - gamma) / (1 - 2 gamma) stands for b. It may be outside [0, M].
    """
    require_at_least(1, num_reports=len(reports))
    centered = float(np.asarray(reports).mean()) - 0.5
    return maximum * (0.5 + centered / _slope(epsilon, gamma))


def error_of_mean(
    num_devices: int, *, delta: float, epsilon: float, maximum: float, gamma: float = 0.0
) -> float:
    """Return what `estimate_mean` is off by at most, but with chance ``delta``.

    The paper's (M / sqrt(2 n)) (e + 1) / (e - 1) sqrt(ln(2 / delta)), by Hoeffding's inequality,
    and that over 1 - 2 gamma with output perturbation.
    """
    require_at_least(1, num_devices=num_devices)
    require_inside(0, 1, delta=delta)
    spread = math.sqrt(math.log(2 / delta) / (2 * num_devices))
    return maximum * spread / _slope(epsilon, gamma)


def estimate_buckets(
    reports: Bits, drawn: Public, *, epsilon: float, num_buckets: int, gamma: float = 0.0
) -> Floats:
    """Return dBitFlip's ``(K,) float64``: unbiased counts of devices in each bucket, of one day.

    (K / d) times the sum, over the devices that drew it, of (b - zero) / (one - zero), by the
    chances of a 1 in the own bucket and in another; without output perturbation that is the
    paper's (b (h + 1) - 1) / (h - 1).
    """
    slope = _slope(epsilon / 2, gamma)
    weights = (np.asarray(reports) - 0.5) / slope + 0.5
    sums = np.bincount(drawn.ravel(), weights=weights.ravel(), minlength=num_buckets)
    return np.asarray(sums * (num_buckets / drawn.shape[1]), dtype=np.float64)


def _slope(epsilon: float, gamma: float) -> float:
    """Return how much likelier a 1 is sent of a permanent response's one end than of the other."""
    return math.tanh(epsilon / 2) * (1 - 2 * gamma)


def _check(epsilon: float, gamma: float) -> None:
    require_epsilon(epsilon=epsilon)
    if epsilon > LARGEST_EPSILON:
        raise InputError(f"Expected epsilon <= {LARGEST_EPSILON:g}, got epsilon={epsilon!r}.")
    if not 0 <= gamma < 0.5:
        raise InputError(f"Expected 0 <= gamma < 0.5, got gamma={shown(gamma)}.")


def _present(*pairs: BitPair) -> tuple[BitPair, ...]:
    return tuple(pair for pair in pairs if pair.times)
