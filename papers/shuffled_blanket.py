"""Local epsilons for a central one: by the privacy blanket of 2019, as of Zhu et al., and clones.

Source: Balle, Bell, Gascon, Nissim (2019), "The privacy blanket of the shuffle model", CRYPTO, the
bound for any local randomizer by Hoeffding's inequality, in the form of the authors' code of Zhu et
al. (github.com/triehh/triehh). It is far from tight; `fedhh.accounting` has what is known since.
"""

from __future__ import annotations

import math

from scipy.optimize import brentq

from fedhh.accounting import Clones
from fedhh.validation import require_at_least, require_inside, require_positive

_RANGE = (0.1, 16.0)


def hoeffding_blanket_delta(local_epsilon: float, *, epsilon: float, num_reports: int) -> float:
    """Return (1/t) (e - 1) / (4 n) exp(-c n min(e^-eps0, t)), with e = e^epsilon.

    t = ((e - 1) / (e + 1) / (e^eps0 - e^-eps0))^2 and c = 1 - e^-2.

    Args:
        local_epsilon: eps0, of one report.
        epsilon: Central.
        num_reports: n, of one shuffle.
    """
    require_positive(local_epsilon=local_epsilon, epsilon=epsilon)
    require_at_least(1, num_reports=num_reports)
    t = (math.tanh(epsilon / 2) / (2 * math.sinh(local_epsilon))) ** 2
    least = min(math.exp(-local_epsilon), t)
    rate = -math.expm1(-2) * num_reports * least
    return math.expm1(epsilon) / (4 * num_reports * t) * math.exp(-rate)


def hoeffding_blanket_local_epsilon(*, epsilon: float, delta: float, num_reports: int) -> float:
    """Return the local epsilon whose shuffle has (epsilon, delta) privacy by this bound.

    The bound rises with it, so there is one; it is looked for between 0.1 and 16.

    >>> round(hoeffding_blanket_local_epsilon(epsilon=4.0, delta=2.3e-12, num_reports=650_000), 3)
    4.954
    """
    require_inside(0, 1, delta=delta)

    def excess(local_epsilon: float) -> float:
        found = hoeffding_blanket_delta(local_epsilon, epsilon=epsilon, num_reports=num_reports)
        return math.log(max(found, 1e-300)) - math.log(delta)

    return float(brentq(excess, *_RANGE))


def clones_local_epsilon(*, epsilon: float, delta: float, num_reports: int) -> float:
    """Return the largest local epsilon, of 0.1 to 16, whose shuffle has this privacy by clones.

    To 1e-8 relative, rounded down. The bound rises with it in every case computed.

    Raises:
        ValueError: None does.

    >>> round(clones_local_epsilon(epsilon=4.0, delta=2.3e-12, num_reports=650_000), 3)
    9.403
    """

    def holds(local_epsilon: float) -> bool:
        return Clones(local_epsilon=local_epsilon, num_reports=num_reports).delta(epsilon) <= delta

    low, high = _RANGE
    if not holds(low):
        raise ValueError(f"Expected a target that local_epsilon={low} meets, got {epsilon=:g}.")
    if holds(high):
        return high
    while high - low > 1e-8 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
