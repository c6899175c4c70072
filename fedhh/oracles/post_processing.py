"""Estimates made consistent by the server: counts that are not negative, and add up.

Source: Wang, Lopuhaä-Zwakenberg, Li, Skoric, Li (2020), "Locally differentially private frequency
estimation with consistency", NDSS. Numbering not verified.

All of it is a function of what the server has already heard, so it costs no privacy.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def norm_sub(estimates: Floats, *, total: float) -> Floats:
    """Return the closest counts that are not negative and add up to a total.

    A constant is added to all, and what is then below 0 becomes 0; the constant is the one that
    gives the total. In the sum of squares no other such counts are closer.

    Args:
        estimates: ``(c,) float64``, at least one.
        total: Their sum, at least 0.

    >>> norm_sub(np.array([6.0, 3.0, -2.0]), total=8.0).tolist()
    [5.5, 2.5, 0.0]
    """
    falling = np.sort(estimates)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(falling) + 1)
    # The largest is always among those that stay, were it not for rounding.
    stay = max(1, int(np.count_nonzero(falling > excess)))
    return np.asarray(np.maximum(estimates - excess[stay - 1], 0.0))
