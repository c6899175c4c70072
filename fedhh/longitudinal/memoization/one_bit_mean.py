"""1BitMean over many days: one bit about a bounded number, remembered for each grid point.

Source: Ding, Kulkarni, Yekhanin (2017), "Collecting telemetry data privately", NIPS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedhh.longitudinal.memoization.bits import BitPair, Bits, Classes, MemoizedBits
from fedhh.longitudinal.memoization.daily import Floats, Public
from fedhh.validation import (
    InputError,
    require_at_least,
    require_epsilon,
    require_inside,
    require_positive,
    shown,
)

LARGEST_EPSILON = 30.0
"""Beyond it floating point cannot tell a permanent response from none."""


@dataclass(frozen=True, kw_only=True)
class FlippedBits(MemoizedBits):
    """Memoized bits with the paper's output perturbation: each is flipped with chance gamma daily.

    Attributes:
        epsilon: Of the permanent response.
        gamma: Chance that a sent bit is flipped, below 1/2.
    """

    epsilon: float
    gamma: float = 0.0

    def __post_init__(self) -> None:
        require_epsilon(epsilon=self.epsilon)
        if self.epsilon > LARGEST_EPSILON:
            raise InputError(
                f"Expected epsilon <= {LARGEST_EPSILON:g}, got epsilon={self.epsilon!r}."
            )
        if not 0 <= self.gamma < 0.5:
            raise InputError(f"Expected 0 <= gamma < 0.5, got gamma={shown(self.gamma)}.")

    @property
    def daily_one(self) -> float:
        return 1 - self.gamma

    @property
    def daily_zero(self) -> float:
        return self.gamma


@dataclass(frozen=True, kw_only=True)
class MemoizedOneBitMean(FlippedBits):
    """1BitMean with alpha-point rounding, permanent responses and output perturbation.

    A device rounds its number to one of M/S + 1 grid points by an alpha of its own, drawn once. For
    each grid point y it draws a bit, once: 1 with chance 1/(e + 1) + (y/M) (e - 1)/(e + 1), where
    e = exp(epsilon). Every day it sends today's point's bit, flipped with chance gamma.

    Formal guarantees:
        * All reports about one value: epsilon, attained by 0 against M. One report: less, if gamma
          is above 0.
        * Two histories whose *rounded* values repeat and differ on the same days, with w distinct
          ones, for every alpha: w epsilon (the paper's theorem on behavior patterns of width w,
          which is about rounded values). Always one value against always another is such a pair,
          and so are histories of grid points. Other values of one pattern are not: two that are
          close are rounded to one point by most alphas, two that are not by few, and reports show
          that; nothing bounds it, since values may be as close as one likes. `epsilon_of_histories`
          says which.
        * Not protected: that a rounded value changed. With gamma = 0, a bit that differs from
          yesterday's proves a change. With gamma above 0, each report hides its day's permanent
          bit by ln((1 - gamma) / gamma), but the days add up.
        * `estimate` is unbiased, and off by `error_bound` at most but with chance delta.

    Attributes:
        maximum: M; values are numbers in [0, M].
        num_steps: M/S: grid points but one; 1 rounds to 0 or M.
    """

    maximum: float
    num_steps: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(maximum=self.maximum)
        require_at_least(1, num_steps=self.num_steps)

    @property
    def step(self) -> float:
        """S, the distance of grid points."""
        return self.maximum / self.num_steps

    @property
    def num_bits(self) -> int:
        return 1

    @property
    def rounds(self) -> bool:
        return True

    def draw_public(self, num_devices: int, *, rng: np.random.Generator) -> Public:
        return np.empty((num_devices, 0), dtype=np.int64)

    def thresholds(self, values: npt.ArrayLike) -> tuple[Classes, Floats]:
        return alpha_points(values, step=self.step, num_steps=self.num_steps)

    def chances(self, public: Public, classes: Classes) -> Floats:
        low = 1 / (1 + math.exp(self.epsilon))
        return (low + (1 - 2 * low) * classes / self.num_steps)[:, None]

    @property
    def farthest(self) -> tuple[BitPair, ...]:
        low = 1 / (1 + math.exp(self.epsilon))
        return (BitPair(1 - low, low, 1),)

    @property
    def _slope(self) -> float:
        """What a report's chance of a 1 rises by, from 0 to M."""
        return math.tanh(self.epsilon / 2) * (1 - 2 * self.gamma)

    def estimate(self, reports: Bits, public: Public) -> Floats:
        """Return the estimate of the mean of all devices' values, ``() float64``.

        M/n times the sum of (b (e + 1) - 1) / (e - 1), where with output perturbation
        (b - gamma) / (1 - 2 gamma) stands for b. It may be outside [0, M].
        """
        require_at_least(1, num_reports=len(reports))
        centered = np.asarray(reports.mean(), dtype=np.float64) - 0.5
        return np.asarray(self.maximum * (0.5 + centered / self._slope))

    def variance(self, values: npt.ArrayLike) -> float:
        """Return the exact variance of a day's estimate for devices with these ``(n,)`` values.

        Over all that devices draw. Alpha adds nothing: a bit's chance is linear in the rounded
        value, whose mean is the value.
        """
        self.thresholds(values)
        numbers = np.asarray(values, dtype=np.float64)
        require_at_least(1, num_values=len(numbers))
        ones = 0.5 + self._slope * (numbers / self.maximum - 0.5)
        return float((ones * (1 - ones)).sum() * (self.maximum / self._slope / len(numbers)) ** 2)

    def error_bound(self, num_devices: int, *, delta: float) -> float:
        """Return what a day's estimate is off by at most, but with chance ``delta``.

        The paper's (M / sqrt(2 n)) (e + 1) / (e - 1) sqrt(ln(2 / delta)), by Hoeffding's
        inequality, and that over 1 - 2 gamma with output perturbation: each device adds one of two
        numbers that are M (e + 1) / ((e - 1) (1 - 2 gamma)) apart, in the mean its value.
        """
        require_at_least(1, num_devices=num_devices)
        require_inside(0, 1, delta=delta)
        spread = math.sqrt(math.log(2 / delta) / (2 * num_devices))
        return self.maximum * spread / self._slope


def alpha_points(values: npt.ArrayLike, *, step: float, num_steps: int) -> tuple[Classes, Floats]:
    """Return ``(t,)`` grid points below numbers, and offsets in (0, 1] from which on they round up.

    With offset a, uniform in [0, 1), x = (l + r) step is rounded up where a >= 1 - r: with chance
    r, so that the mean is x exactly. For whole numbers and a whole step this is the distribution of
    Ding et al. (2017), section 3: up where x + alpha reaches the next grid point, alpha uniform
    among 0 .. step - 1. Numbers are in [0, ``num_steps * step``].
    """
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1 or not ((numbers >= 0) & (numbers <= num_steps * step)).all():
        got = f"{numbers.min():g} to {numbers.max():g}" if numbers.size else str(numbers.shape)
        raise InputError(
            f"Expected values as one axis of numbers in [0, {num_steps * step:g}], got {got}; "
            "clip them on the device."
        )
    places = numbers / step
    below = np.minimum(np.floor(places), num_steps)
    return below.astype(np.int64), np.asarray(1 - (places - below), dtype=np.float64)
