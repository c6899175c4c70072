"""The twin of `smallest_epsilon` for lower bounds."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy import optimize

_SMALLEST_EPSILON, _SMALLEST_DELTA, _STEP = 1e-9, 1e-30, 1e-9


def largest_epsilon_above(
    delta_at: Callable[[float], float], *, delta: float, upper: float
) -> float:
    """Return an epsilon with ``delta_at(epsilon) > delta``, hardly below the largest.

    A mechanism whose delta is at least ``delta_at`` is not (epsilon, delta)-private there. 0.0 says
    nothing.
    """

    def excess(epsilon: float) -> float:
        return math.log(max(delta_at(epsilon), _SMALLEST_DELTA) / delta)

    if excess(_SMALLEST_EPSILON) <= 0:
        return 0.0
    if excess(upper) > 0:
        return upper
    found = float(optimize.brentq(excess, _SMALLEST_EPSILON, upper, rtol=_STEP / 4)) * (1 - _STEP)
    assert delta_at(found) > delta
    return found
