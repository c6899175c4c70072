"""Alpha-point rounding: numbers to a grid, by a threshold that is each device's own."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedhh.longitudinal.memoization.bits import Classes
from fedhh.longitudinal.memoization.daily import Floats
from fedhh.validation import InputError


def alpha_points(values: npt.ArrayLike, *, step: float, num_steps: int) -> tuple[Classes, Floats]:
    """Return the grid points below numbers, and the offsets from which on they are rounded up.

    With offset a, uniform in [0, 1), x = (l + r) step is rounded up where a >= 1 - r: with chance
    r, so that the mean is x exactly. For whole numbers and a whole step this is the law of Ding et
    al. (2017), section 3: up where x + alpha reaches the next grid point, alpha uniform among
    0 .. step - 1.

    Args:
        values: ``(t,)`` in [0, ``num_steps * step``].
        step: Distance of grid points.
        num_steps: The grid has one point more.

    Returns:
        ``(t,) int64`` points below, as numbers from 0, and ``(t,) float64`` offsets in (0, 1].
    """
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1 or not ((numbers >= 0) & (numbers <= num_steps * step)).all():
        shown = f"{numbers.min():g} to {numbers.max():g}" if numbers.size else str(numbers.shape)
        raise InputError(
            f"Expected values as one axis of numbers in [0, {num_steps * step:g}], got {shown}; "
            "clip them on the device."
        )
    places = numbers / step
    below = np.minimum(np.floor(places), num_steps)
    return below.astype(np.int64), np.asarray(1 - (places - below), dtype=np.float64)
