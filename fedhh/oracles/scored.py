"""Oracles whose report gives every value a whole number, of which 0 and 1 are a special case."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fedhh.oracles.base import Floats, FrequencyOracle, Tally


class Moments(NamedTuple):
    """Mean and variance of the score that a report gives a value.

    Attributes:
        mean: Expected score.
        variance: Of the score.
    """

    mean: float
    variance: float


@dataclass(frozen=True, kw_only=True)
class ScoredOracle(FrequencyOracle):
    """An oracle whose tally is a sum of scores; estimates are linear in it.

    A report's score of its client's value has the moments `held`, that of any other value the
    moments `other`, whichever value the client holds. A `PureOracle` is one with scores 0 and 1.
    """

    @property
    @abstractmethod
    def held(self) -> Moments:
        """Moments of a report's score of the value that its client holds."""

    @property
    @abstractmethod
    def other(self) -> Moments:
        """Moments of a report's score of a given value that its client does not hold."""

    def estimate(self, tally: Tally, num_reports: int) -> Floats:
        """Return ``(tally - n other) / (held - other)``, by the means of scores."""
        gap = self.held.mean - self.other.mean
        return np.asarray((tally - num_reports * self.other.mean) / gap, dtype=np.float64)

    def variance(self, count: npt.ArrayLike, num_reports: int) -> Floats:
        """Return ``[c held + (n - c) other] / gap**2``, by the variances of scores."""
        count = np.asarray(count, dtype=np.float64)
        total = count * self.held.variance + (num_reports - count) * self.other.variance
        return np.asarray(total / (self.held.mean - self.other.mean) ** 2, dtype=np.float64)
