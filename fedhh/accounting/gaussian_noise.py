"""The exact privacy of Gaussian noise, its calibration, and its upper tail.

Source: Balle, Wang (2018), "Improving the Gaussian mechanism for differential privacy", ICML,
Theorem 8 (numbering not verified): noise of standard deviation sigma on a vector that moves by at
most D in the Euclidean norm has, with mu = D / sigma,

    delta(epsilon) = Phi(mu / 2 - epsilon / mu) - e**epsilon Phi(-mu / 2 - epsilon / mu),

and no less where it moves by D.
"""

from __future__ import annotations

import math
from functools import lru_cache

from scipy.special import erfcx, log_ndtr, ndtr, ndtri

from fedhh.validation import require_inside, require_positive

_HALF_ROOT = math.sqrt(math.pi / 2)
_ROUNDING = 1e-9
"""Of delta, relative; many times the rounding of what is computed."""
_LEFT = -5.0
"""Below, the ratio of tail and density overflows; there, delta is no small difference."""


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return delta of Gaussian noise at an epsilon, rounded up.

    Args:
        mu: Sensitivity over the noise's standard deviation, at least 0.
        epsilon: At least 0.

    >>> round(gaussian_delta(1.0, 1.0), 4)
    0.1269
    """
    if mu == 0:
        return 0.0
    low, high = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if low < _LEFT:
        delta = float(ndtr(-low) - math.exp(epsilon + float(log_ndtr(-high))))
    else:
        # e**epsilon times the density at `high` is the density at `low`.
        density = math.exp(-(low**2) / 2) / math.sqrt(2 * math.pi)
        root = math.sqrt(2)
        delta = density * _HALF_ROOT * float(erfcx(low / root) - erfcx(high / root))
    return min(max(delta, 0.0) * (1 + _ROUNDING), 1.0)


@lru_cache(maxsize=1024)
def gaussian_mu(*, epsilon: float, delta: float) -> float:
    """Return the largest mu with `gaussian_delta` of at most delta at epsilon, rounded down.

    Args:
        epsilon: Above 0.
        delta: Above 0 and below 1.

    >>> round(1 / gaussian_mu(epsilon=1.0, delta=0.5e-5), 5)
    3.88414
    """
    require_positive(epsilon=epsilon)
    require_inside(0, 1, delta=delta)
    low, high = 0.0, 1.0
    while gaussian_delta(high, epsilon) <= delta:
        low, high = high, 2 * high
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if gaussian_delta(middle, epsilon) <= delta:
            low = middle
        else:
            high = middle
    return low


def quantile_of_any(chance: float, draws: int) -> float:
    """Return z such that any of some standard normal draws exceeds z with at most this chance.

    Args:
        chance: Above 0 and below 1.
        draws: Independent draws, at least 1.
    """
    return -float(ndtri(chance_of_each(chance, draws)))


def chance_of_each(chance: float, draws: int) -> float:
    """Return q with 1 - (1 - q)**draws = chance."""
    return -math.expm1(math.log1p(-chance) / draws)
