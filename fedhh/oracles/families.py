"""Families of oracles: what estimates and reports have in common, whatever draws them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from fedhh.oracles.base import (
    Floats,
    FrequencyOracle,
    Reports,
    Tally,
)
from fedhh.validation import InputError


class PureVotes(ABC):
    """Independent votes: one for a held value with probability p, for any other with q.

    The estimate is (tally - n q) / (p - q), its variance for a true count c
    [c p (1 - p) + (n - c) q (1 - q)] / (p - q)**2: Wang, Blocki, Li, Jha (2017), "Locally
    differentially private protocols for frequency estimation", USENIX Security, section 3.
    """

    @property
    @abstractmethod
    def p(self) -> float:
        """Probability that a report supports the value that its client holds."""

    @property
    @abstractmethod
    def q(self) -> float:
        """Probability that a report supports a given value that its client does not hold."""

    def estimate(self, tally: Tally, num_reports: int) -> Floats:
        return np.asarray((tally - num_reports * self.q) / (self.p - self.q), dtype=np.float64)

    def variance(self, count: npt.ArrayLike, num_reports: int) -> Floats:
        count = np.asarray(count, dtype=np.float64)
        held = count * self.p * (1 - self.p)
        others = (num_reports - count) * self.q * (1 - self.q)
        return np.asarray((held + others) / (self.p - self.q) ** 2, dtype=np.float64)


class PureOracle(PureVotes, FrequencyOracle):
    """An oracle whose report supports a held value with probability p, any other with q.

    Attributes:
        lists_support: Whether `supported_values` lists what reports support.
    """

    lists_support: ClassVar[bool] = False

    def supported_values(self, reports: Reports) -> Reports:
        """Return ``(n, w)`` integers: the distinct values that each report supports.

        Raises:
            InputError: Reports of this oracle have no list of so many values.
        """
        raise InputError(
            f"Expected an oracle whose reports list the values that they support, got "
            f"{type(self).__name__}; use ss or grr."
        )


class Moments(NamedTuple):
    """Mean and variance of the score that a report gives a value."""

    mean: float
    variance: float


@dataclass(frozen=True, kw_only=True)
class ScoredOracle(FrequencyOracle):
    """An oracle whose tally is a sum of scores; estimates are linear in it.

    A report's score of its client's value has the moments `held`, that of any other value the
    moments `other`, whichever value the client holds. A `PureOracle` is one with scores 0 and 1.
    Estimates and variances are those of a `PureOracle`, with means for p and q and variances for
    p (1 - p) and q (1 - q).
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
        gap = self.held.mean - self.other.mean
        return np.asarray((tally - num_reports * self.other.mean) / gap, dtype=np.float64)

    def variance(self, count: npt.ArrayLike, num_reports: int) -> Floats:
        count = np.asarray(count, dtype=np.float64)
        total = count * self.held.variance + (num_reports - count) * self.other.variance
        return np.asarray(total / (self.held.mean - self.other.mean) ** 2, dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class CountedOutputs(FrequencyOracle):
    """An oracle whose reports are whole numbers below `aggregate_size`, and which counts each.

    The support of any values follows from those counts, at a cost that does not grow with reports
    times values.
    """

    @property
    def report_bits(self) -> float:
        """log2 of the number of outputs."""
        return math.log2(self.aggregate_size)

    def report_space(self) -> Reports:
        self._check_report_space(self.report_bits)
        return np.arange(self.aggregate_size)

    def _add_reports(self, reports: Reports, out: Tally) -> None:
        out += np.bincount(reports, minlength=self.aggregate_size)
