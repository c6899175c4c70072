"""What some oracles have in common, whatever draws their reports: scores, codes, cells."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fedhh.arrays import Floats
from fedhh.oracles.base import FrequencyOracle, PureOracle, Reports, Tally, Values


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


@dataclass(frozen=True, kw_only=True)
class CellOracle(PureOracle):
    """A pure oracle that also randomizes the cells of a hash: see `fedhh.oracles.hashed`."""

    @abstractmethod
    def log_prob(self, reports: Reports, value: int | Values) -> Floats:
        """Return the log-probabilities, given one value, or each report's own of ``(n,)``."""

    @abstractmethod
    def sample_aggregate(self, counts: Tally, *, rng: np.random.Generator) -> Tally:
        """Return the aggregate of reports of ``(domain_size,) int64`` clients by value, exactly."""

    def scores(self, loads: Tally) -> Tally:
        """Return ``(t, reports)``: what each report of `report_space` adds to some loads.

        It is the transpose of the support, for oracles of few reports. ``loads``,
        ``(t, domain_size) int64``, are how many things each value stands for.
        """
        raise NotImplementedError
