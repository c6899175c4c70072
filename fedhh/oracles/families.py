"""What some oracles have in common: scores, codes, sampled aggregates, cells.

Aggregate-level sampling is an aggregate drawn from noise-free counts, without making reports. A
simulator does this, never a device: the privacy of clients rests on reports that each have their
own noise.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from fedhh.arrays import Floats
from fedhh.kernels.subset_tally import count_into
from fedhh.oracles.base import FrequencyOracle, PureOracle, Reports, Tally, Values, best_of

Table = npt.NDArray[np.signedinteger[Any]]


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

    @abstractmethod
    def scores(self, loads: Tally) -> Tally:
        """Return ``(t, aggregate_size)``: what each output adds to ``(t, domain_size)`` loads.

        It is the transpose of the support, up to what is the same for all outputs. Loads are how
        many things each value stands for.
        """

    def _add_reports(self, reports: Reports, out: Tally) -> None:
        out += np.bincount(reports, minlength=self.aggregate_size)

    def _craft(self, values: Values, sign: int, count: int, rng: np.random.Generator) -> Reports:
        loads = np.zeros((1, self.domain_size), dtype=np.int64)
        loads[:, values] = 1
        return best_of(sign * self.scores(loads)[0], count, rng=rng)


@dataclass(frozen=True, kw_only=True)
class SampledAggregates(FrequencyOracle):
    """An oracle whose aggregate can be drawn from noise-free counts, with the exact distribution.

    Noise-free counts are the aggregate that reports would have without their noise. Where an
    aggregate counts each value, they are how many clients hold it; a sketch overrides
    `noise_free_counts`, since what of a report is no noise, such as its row, is drawn with them.

    Attributes:
        counts_values: Whether noise-free counts are those of values, for oracles that are no
            sketch: not where coins that are no noise say which numbers a report adds to.
    """

    counts_values: ClassVar[bool] = True

    def noise_free_counts(
        self, values: Values, *, rng: np.random.Generator, out: Tally | None = None
    ) -> Tally:
        """Return the ``(aggregate_size,) int64`` noise-free counts of some clients; additive.

        Args:
            values: ``(n,) int64`` in [0, domain_size).
            rng: Source of the coins that are not noise.
            out: ``(aggregate_size,) int64`` to add to, contiguous; a new array if None.
        """
        out = self._sums(out)
        count_into(self._check_values(values), out)
        return out

    @abstractmethod
    def sample_aggregate(self, counts: Tally, *, rng: np.random.Generator) -> Tally:
        """Return what `aggregate` would of the reports behind these noise-free counts.

        Args:
            counts: ``(aggregate_size,) int64``, at least 0, of all clients.
            rng: Source of the clients' noise.

        Returns:
            ``(aggregate_size,) int64``, another array.
        """


@dataclass(frozen=True, kw_only=True)
class CellOracle(PureOracle):
    """A pure oracle that also randomizes the cells of a hash: see `fedhh.oracles.hashed`.

    Reports are then ``(n, w) int64``, one number or more each.
    """

    @abstractmethod
    def add_rows(self, rows: Values, reports: Reports, table: Table) -> None:
        """Add each report to its row of ``(k, aggregate_size)`` sums, which may be narrow."""

    @abstractmethod
    def log_prob(self, reports: Reports, value: int | Values) -> Floats:
        """Return the log-probabilities, given one value, or each report's own of ``(n,)``."""

    @abstractmethod
    def sample_aggregate(self, counts: Tally, *, rng: np.random.Generator) -> Tally:
        """Return the aggregate of reports of ``(domain_size,) int64`` clients by value, exactly."""

    def scores(self, loads: Tally) -> Tally:
        """Return ``(t, reports)``: `CountedOutputs.scores` of all reports, where they are few."""
        raise NotImplementedError


def sum_of_bits(
    held: Tally, num_reports: Tally | int, *, one: float, zero: float, rng: np.random.Generator
) -> Tally:
    """Return how many reports have a 1, for bits that are answered independently of each other.

    Of n reports, a bit that c of them set has Bin(c, ``one``) + Bin(n - c, ``zero``) ones.
    """
    ones = rng.binomial(held, one)
    return np.asarray(ones + rng.binomial(num_reports - held, zero), dtype=np.int64)
