"""What every numerical shuffle bound is: delta for epsilon, epsilon for delta, and its domain."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar, Self

import numpy as np

from fedhh.arrays import Floats
from fedhh.privacy_loss.search import smallest_epsilon
from fedhh.validation import InputError, require_at_least, require_between

LOCAL_EPSILON_RANGE = (0.1, 16.0)
NUM_REPORTS_RANGE = (2, 10**9)
DELTA_RANGE = (1e-14, 0.1)


def check_local_epsilon(local_epsilon: float) -> None:
    """Raise InputError unless the bounds here are computed, and tested, for ``local_epsilon``."""
    require_between(*LOCAL_EPSILON_RANGE, local_epsilon=local_epsilon)


def check_num_reports(num_reports: int) -> None:
    """Raise InputError unless ``num_reports`` is an integer from 2 to 10**9."""
    require_between(*NUM_REPORTS_RANGE, num_reports=num_reports)
    require_at_least(2, num_reports=num_reports)


def check_delta(delta: float) -> None:
    """Raise InputError unless ``delta`` lies between 1e-14 and 0.1."""
    require_between(*DELTA_RANGE, delta=delta)


def check_epsilon(epsilon: float) -> None:
    """Raise InputError unless ``epsilon`` is a finite number, at least 0."""
    if not 0 <= epsilon < math.inf:
        raise InputError(f"Expected 0 <= epsilon < inf, got epsilon={epsilon!r}.")


def out_of_range(*, local_epsilon: float, num_reports: int) -> str | None:
    """Return why no bound is computed for these numbers; None if bounds are."""
    try:
        check_local_epsilon(local_epsilon)
        check_num_reports(num_reports)
    except InputError as problem:
        return str(problem)
    return None


@dataclass(frozen=True, kw_only=True)
class ShuffleBound(ABC):
    """An upper bound on what a shuffle of ``num_reports`` reports reveals about one of them.

    Item level, replace-one neighbors. Instances keep what does not depend on epsilon, so asking one
    instance many times is cheap.

    Attributes:
        local_epsilon: Privacy of each report, from 0.1 to 16.
        num_reports: Reports in one shuffle, the victim's included, from 2 to 10**9.
        tolerance: Relative width of the bins in which binomial counts are summed. Every value
            gives an upper bound; smaller is tighter and slower.
    """

    local_epsilon: float
    num_reports: int
    tolerance: float = 2e-6

    name: ClassVar[str]
    theorem: ClassVar[str]
    assumptions: ClassVar[str]

    def __post_init__(self) -> None:
        check_local_epsilon(self.local_epsilon)
        check_num_reports(self.num_reports)

    def among(self, num_reports: int) -> Self:
        """Return the bound of a shuffle of so many reports of the same kind."""
        return replace(self, num_reports=num_reports)

    def delta(self, epsilon: float) -> float:
        """Return an upper bound on the hockey-stick divergence at ``epsilon``, in [0, 1].

        Raises:
            InputError: epsilon is negative, infinite or not a number.
        """
        check_epsilon(epsilon)
        return float(self.deltas(np.array([epsilon]))[0])

    def deltas(self, epsilons: Floats) -> Floats:
        """Return `delta` at many epsilons at once.

        Args:
            epsilons: ``(k,) float64``, at least 0, in any order.
        """
        found: Floats = np.zeros(len(epsilons))
        inside = epsilons < self.local_epsilon
        if inside.any():
            deltas = self._deltas(epsilons[inside]) * (1 + _FLOATING_POINT_MARGIN)
            found[inside] = np.minimum(1.0, deltas)
        return found

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon whose delta is at most ``delta``, rounded up by up to 1e-9.

        Args:
            delta: From 1e-14 to 0.1.

        Returns:
            In [0, local_epsilon]; 0.0 if the total variation distance is already below delta.

        Raises:
            InputError: delta is outside its range.
        """
        check_delta(delta)
        # The bound on wide bins is the upper end of a narrow bracket.
        quick = replace(self, tolerance=max(self.tolerance, _QUICK_TOLERANCE))
        upper = smallest_epsilon(quick.delta, delta=delta, upper=self.local_epsilon)
        lower = upper * (1 - 5e-3)
        fine = cache(self.delta)
        # Wide bins are not always the looser ones; what is returned must satisfy this bound, too.
        if fine(upper) > delta:
            upper = self.local_epsilon
        return smallest_epsilon(fine, delta=delta, upper=upper, lower=lower)

    @abstractmethod
    def _deltas(self, epsilons: Floats) -> Floats:
        """Return the bounds for 0 <= epsilon < local_epsilon, in exact arithmetic."""


_QUICK_TOLERANCE = 1e-3
_FLOATING_POINT_MARGIN = 1e-8
"""Relative error of a computed delta, measured against 50-digit arithmetic: below 4e-9."""
