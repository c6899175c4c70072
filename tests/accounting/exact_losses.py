"""Mechanisms whose compositions are known exactly: randomized responses and shifted Gaussians."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
from scipy import special, stats

from fedhh.accounting.bounds.shuffle_bound import ShuffleBound
from fedhh.arrays import Floats

Kinds = dict[float, int]
"""How many randomized responses of each epsilon."""


def delta_of_responses(kinds: Kinds, epsilon: float) -> float:
    """Return the delta of independent randomized responses, all counts of truths enumerated."""
    losses, masses = _outcomes(tuple(kinds.items()))
    beyond = losses > epsilon
    return float(masses[beyond] @ -np.expm1(epsilon - losses[beyond]))


@cache
def _outcomes(kinds: tuple[tuple[float, int], ...]) -> tuple[np.ndarray, np.ndarray]:
    losses, masses = np.zeros(1), np.ones(1)
    for epsilon, count in kinds:
        true = np.arange(count + 1)
        more = stats.binom.pmf(true, count, 1 / (1 + math.exp(-epsilon)))
        losses = (losses[:, None] + (2 * true - count) * epsilon).ravel()
        masses = (masses[:, None] * more).ravel()
    return losses, masses


def delta_of_shift(epsilon: float, distance: float) -> float:
    """Return the delta of a Gaussian whose mean moves by so many deviations."""
    upper = special.log_ndtr(distance / 2 - epsilon / distance)
    lower = epsilon + special.log_ndtr(-distance / 2 - epsilon / distance)
    return float(np.exp(upper) * -np.expm1(lower - upper))


@dataclass(frozen=True, kw_only=True)
class Response(ShuffleBound):
    """A randomized response without any shuffle, whose delta is linear in e**epsilon."""

    num_reports: int = 2
    name: ClassVar[str] = "response"
    theorem: ClassVar[str] = "Kairouz, Oh, Viswanath (2015)"
    assumptions: ClassVar[str] = "none"

    def _deltas(self, epsilons: Floats) -> Floats:
        return -np.expm1(epsilons - self.local_epsilon) / (1 + math.exp(-self.local_epsilon))


@dataclass(frozen=True, kw_only=True)
class Shift(ShuffleBound):
    """A Gaussian's mean moves by ``distance`` deviations: so do compositions, by more."""

    distance: float
    local_epsilon: float = 16.0
    num_reports: int = 2
    name: ClassVar[str] = "shift"
    theorem: ClassVar[str] = "Dong, Roth, Su (2022)"
    assumptions: ClassVar[str] = "none"

    def _deltas(self, epsilons: Floats) -> Floats:
        return np.array([delta_of_shift(epsilon, self.distance) for epsilon in epsilons])
