"""Estimates made consistent by the server: counts that are not negative, add up, or are likely.

Source: Wang, Lopuhaä-Zwakenberg, Li, Skoric, Li (2020), "Locally differentially private frequency
estimation with consistency", NDSS. Numbering not verified.

All of it is a function of what the server has already heard, so it costs no privacy. None of it is
unbiased.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from fedhh.validation import InputError, require_choice

Floats = npt.NDArray[np.float64]

PostProcessing = Literal["none", "norm-sub", "base-cut", "power", "power-ns"]
"""What is done with a round's estimates."""

POST_PROCESSING: tuple[PostProcessing, ...] = ("none", "norm-sub", "base-cut", "power", "power-ns")

MISTAKES = 0.05
"""Expected number of values that no client holds and that base-cut leaves, at most."""

_FAR = 8.0
"""Standard deviations of the noise above which a count is estimated by an expansion."""

_PER_STD = 16
"""Steps of an estimate per standard deviation; counts have twice as many."""

_EXPONENTS = (1e-3, 12.0)
"""Between which the exponent of a power law is looked for."""


def post_process(
    how: PostProcessing, estimates: Floats, *, total: float, std: float, has_rest: bool = False
) -> Floats:
    """Return estimates after the processing of a name.

    Args:
        how: "none", "norm-sub" (`norm_sub`), "base-cut" (`base_cut`), "power" (`power`), or
            "power-ns": "power", and "norm-sub" of that.
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
    rest = total - estimates.sum()
    if how != "norm-sub":
        estimates = power(estimates, total=total, std=std)
        if how == "power":
            return estimates
    if not has_rest:
        return norm_sub(estimates, total=total)
    return norm_sub(np.append(estimates, rest), total=total)[:-1]


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
    return float(-ndtri(mistakes / num_values)) * std


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


def power(estimates: Floats, *, total: float, std: float) -> Floats:
    """Return the mean of each count given its estimate, if counts follow a power law.

    The power law is the likeliest one, see `PowerLaw.fitted`.

    Args:
        estimates: ``(c,) float64``.
        total: The largest count that there may be.
        std: Standard deviation of the noise, which is taken as normal and equal for all counts.
    """
    if not std > 0 or not len(estimates):
        return np.clip(estimates, 0.0, total)
    return PowerLaw.fitted(estimates, largest=total, std=std).mean_given(estimates, std=std)


@dataclass(frozen=True, kw_only=True)
class PowerLaw:
    """Counts x from 0 to a largest one, with density proportional to (1 + x)**-exponent.

    Attributes:
        exponent: s, above 0.
        largest: T, above 0.
    """

    exponent: float
    largest: float

    @classmethod
    def fitted(cls, estimates: Floats, *, largest: float, std: float) -> PowerLaw:
        """Return the likeliest power law of counts that are known with normal noise.

        Args:
            estimates: ``(c,) float64``: counts with independent noise.
            largest: T.
            std: Standard deviation of the noise, above 0.
        """
        # It takes longer to import than all other processing takes.
        from scipy.optimize import minimize_scalar

        near = estimates[estimates <= _FAR * std]
        far = estimates[estimates > _FAR * std]
        grid, weights = _binned(near, std)
        counts = _counts(std, largest)
        noise = _noise(grid, counts, std)

        def loss(exponent: float) -> float:
            law = cls(exponent=exponent, largest=largest)
            chances = noise @ (law.density(counts) * _widths(counts))
            likelihood = float(weights @ np.log(np.maximum(chances, 1e-300)))
            return -likelihood - float(law.log_density(far).sum())

        best = minimize_scalar(loss, bounds=_EXPONENTS, method="bounded")
        return cls(exponent=float(best.x), largest=largest)

    def log_density(self, counts: Floats) -> Floats:
        """Return ``(c,) float64``: the logarithm of the density at some counts."""
        reach, left = math.log1p(self.largest), 1.0 - self.exponent
        # The integral of (1 + x)**-s; expm1(l r) / l, whose limit at l = 0 is r.
        whole = reach if abs(left) < 1e-12 else math.expm1(left * reach) / left
        return np.asarray(-self.exponent * np.log1p(counts) - math.log(whole))

    def density(self, counts: Floats) -> Floats:
        """Return ``(c,) float64``: the density at some counts."""
        return np.asarray(np.exp(self.log_density(counts)))

    def mean_given(self, estimates: Floats, *, std: float) -> Floats:
        """Return ``(c,) float64``: the mean of each count given its estimate.

        Far above the noise it is the estimate minus s std**2 / (1 + estimate), the first term of
        an expansion; the next is less than a hundredth of the noise.

        Args:
            estimates: ``(c,) float64``.
            std: Standard deviation of their noise, above 0.
        """
        counts = _counts(std, self.largest)
        lowest = min(0.0, float(estimates.min(initial=0.0)))
        grid = np.arange(lowest, (_FAR + 1) * std, std / _PER_STD)
        weights = self.density(counts) * _widths(counts)
        noise = _noise(grid, counts, std)
        means = noise @ (weights * counts) / np.maximum(noise @ weights, 1e-300)
        near = np.interp(estimates, grid, means)
        high = np.maximum(estimates, 0.0)
        far = high - self.exponent * std**2 / (1 + high)
        mean = np.where(estimates > _FAR * std, far, near)
        return np.asarray(np.clip(mean, 0.0, self.largest))


def _counts(std: float, largest: float) -> Floats:
    """Return counts from 0 to where no near estimate comes from, closer where density falls."""
    end = min(largest, 2 * _FAR * std)
    step = std / (2 * _PER_STD)
    ratio = 1 / (2 * _PER_STD)
    # Steps of a fixed ratio of 1 + x up to where they are as long as the noise allows.
    turn = min(end, max(step / ratio - 1, 0.0))
    rising = np.expm1(np.arange(0.0, math.log1p(turn), ratio))
    return np.unique(np.concatenate([rising, np.arange(turn, end, step), [end]]))


def _widths(counts: Floats) -> Floats:
    """Return what each count stands for in an integral, by the trapezoidal rule."""
    gaps = np.diff(counts) / 2
    return np.asarray(np.append(gaps, 0.0) + np.append(0.0, gaps))


def _noise(grid: Floats, counts: Floats, std: float) -> Floats:
    """Return ``(g, c) float64``: the likelihood of each estimate of a grid at each count.

    It is relative to the largest of the row, which is the same factor for all laws.
    """
    exponents = -0.5 * ((grid[:, None] - counts) / std) ** 2
    return np.asarray(np.exp(exponents - exponents.max(axis=1, keepdims=True)))


def _binned(estimates: Floats, std: float) -> tuple[Floats, Floats]:
    """Return the middles of bins of estimates, and how many there are in each."""
    places, counts = np.unique(np.rint(estimates / std * _PER_STD), return_counts=True)
    return places * (std / _PER_STD), counts.astype(np.float64)
