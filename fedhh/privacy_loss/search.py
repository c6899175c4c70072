"""Searches over monotone bounds that return the safe end of their last bracket."""

from __future__ import annotations

import math
from collections.abc import Callable

_SMALLEST_EPSILON = 1e-9
_PRECISION = 1e-9
_SMALLEST_DELTA = 1e-30


def smallest_epsilon(
    delta_at: Callable[[float], float],
    *,
    delta: float,
    upper: float,
    lower: float = 0.0,
    precision: float = _PRECISION,
) -> float:
    """Return an epsilon with ``delta_at(epsilon) <= delta``, hardly above the smallest.

    Args:
        delta_at: Non-increasing function; the epsilon returned was evaluated and satisfies it.
        delta: Target.
        upper: An epsilon that is known to satisfy the target, for example the local epsilon.
        lower: A guess from below; used if it does not satisfy the target.
        precision: Relative, times the logarithm of the epsilon where that is above 1.

    Returns:
        0.0 if epsilon = 0 satisfies the target; never more than ``upper``.
    """
    if upper <= _SMALLEST_EPSILON:
        return upper
    if lower < _SMALLEST_EPSILON or delta_at(lower) <= delta:
        if delta_at(0.0) <= delta:
            return 0.0
        lower = _SMALLEST_EPSILON
        if delta_at(lower) <= delta:
            return lower
    return _crossing(delta_at, delta=delta, low=lower, high=upper, precision=precision)


def _crossing(
    delta_at: Callable[[float], float], *, delta: float, low: float, high: float, precision: float
) -> float:
    """Return an epsilon with at most a delta, close to one with more.

    Chandrupatla's method (1997) on the logarithms: inverse quadratic steps where they are safe,
    halving elsewhere. scipy.optimize has the like, and takes a fourth of a second to load.

    Args:
        delta_at: Falls from ``low``, where it is above the target, to ``high``.
        delta: The target.
        low: Above 0.
        high: Returned if it misses the target.
        precision: As in `smallest_epsilon`.
    """
    log_delta = math.log(delta)

    def log_ratio(epsilon: float) -> float:
        # Clipped, since delta is 0 at the local epsilon; below the target there by definition.
        return math.log(max(delta_at(epsilon), _SMALLEST_DELTA)) - log_delta

    # The bracket's ends: x, asked last, and y; z was left last.
    x, y = math.log(high), math.log(low)
    at_x = log_ratio(high)
    if at_x > 0:
        return high
    at_y = log_ratio(low)
    part = 0.5
    while True:
        new = x + part * (y - x)
        at_new = log_ratio(math.exp(new))
        if (at_new > 0) == (at_x > 0):
            z, at_z = x, at_x
        else:
            z, at_z, y, at_y = y, at_y, x, at_x
        x, at_x = new, at_new
        best = x if abs(at_x) < abs(at_y) else y
        smallest_part = precision * max(1.0, abs(best)) / 2 / abs(y - x)
        if smallest_part >= 0.5:
            # An end that nothing took the place of is returned to the last bit.
            at_most = y if at_x > 0 else x
            return high if at_most == math.log(high) else math.exp(at_most)
        place, height = (x - y) / (z - y), (at_x - at_y) / (at_z - at_y)
        part = 0.5
        if height**2 < place and (1 - height) ** 2 < 1 - place:
            part = at_x / (at_y - at_x) * at_z / (at_y - at_z)
            part += (z - x) / (y - x) * at_x / (at_z - at_x) * at_y / (at_z - at_y)
        part = min(max(part, smallest_part), 1 - smallest_part)


def smallest_true(holds: Callable[[int], bool], *, low: int, high: int | None = None) -> int:
    """Return the smallest integer in [low, high] that holds; ``high`` if none below does.

    Args:
        holds: False up to some integer and true beyond it.
        low: Smallest candidate, at least 1 if there is no largest.
        high: Largest candidate; None for any.
    """
    if holds(low):
        return low
    if high is None:
        high = 2 * low
        while not holds(high):
            low, high = high, 2 * high
    while high - low > 1:
        # A geometric middle first: sizes are searched over nine decades.
        middle = math.isqrt(low * high) if 0 < 4 * low < high else (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return high
