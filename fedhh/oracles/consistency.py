"""Estimates made consistent by the server: counts that are not negative, and add up.

Source: Wang, Lopuhaä-Zwakenberg, Li, Skoric, Li (2020), "Locally differentially private frequency
estimation with consistency", NDSS. Numbering not verified.

All of it is a function of what the server has already heard, so it costs no privacy. None of it is
unbiased.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import numpy as np
import scipy

from fedhh.arrays import Floats
from fedhh.validation import InputError, require_choice

PostProcessing = Literal["none", "norm-sub", "base-cut"]
"""What is done with a round's estimates."""

POST_PROCESSING: tuple[PostProcessing, ...] = get_args(PostProcessing)

MISTAKES = 0.05
"""Expected number of values that no client holds and that base-cut leaves, at most."""


def post_process(
    how: PostProcessing, estimates: Floats, *, total: float, std: float, has_rest: bool = False
) -> Floats:
    """Return estimates after the processing of a name.

    Args:
        how: "none", "norm-sub" (`norm_sub`) or "base-cut" (`base_cut`).
        estimates: ``(c,) float64``: of the counts of different values.
        total: Reports, which all counts add up to.
        std: Standard deviation of the estimate of a value that no client holds.
        has_rest: Whether values next to these have the rest of the total, as one more count.

    Returns:
        ``(c,) float64``; the same array if nothing is to be done.

    >>> post_process("norm-sub", np.array([6.0, 3.0, -2.0]), total=8.0, std=1.0).tolist()
    [5.5, 2.5, 0.0]
    """
    require_choice(POST_PROCESSING, post_processing=how)
    if not (0 <= total < math.inf and 0 <= std < math.inf):
        raise InputError(f"Expected finite total and std >= 0, got total={total}, std={std}.")
    if how == "none" or not len(estimates):
        return estimates
    if how == "base-cut":
        return base_cut(estimates, std=std)
    if not has_rest:
        return norm_sub(estimates, total=total)
    return norm_sub(np.append(estimates, total - estimates.sum()), total=total)[:-1]


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
    # The largest always stays, were it not for rounding.
    stay = max(1, int(np.count_nonzero(falling > excess)))
    return np.asarray(np.maximum(estimates - excess[stay - 1], 0.0))


def significance_threshold(num_values: int, *, std: float, mistakes: float = MISTAKES) -> float:
    """Return the estimate that so many values which no client holds exceed ``mistakes`` times.

    Args:
        num_values: c.
        std: Standard deviation of the estimate of a value that no client holds.
        mistakes: Expected number of those that exceed it, in (0, 1).

    >>> round(significance_threshold(1000, std=10.0), 1)
    38.9
    """
    return float(-scipy.special.ndtri(mistakes / num_values)) * std


def base_cut(estimates: Floats, *, std: float) -> Floats:
    """Return the estimates that are significant, and 0 for the others.

    Args:
        estimates: ``(c,) float64``.
        std: Standard deviation of the estimate of a value that no client holds.

    >>> base_cut(np.array([60.0, 20.0, -30.0]), std=10.0).tolist()
    [60.0, 0.0, 0.0]
    """
    threshold = significance_threshold(max(len(estimates), 1), std=std)
    return np.where(estimates >= threshold, estimates, 0.0)
