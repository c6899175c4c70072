"""Unary encoding: one noisy bit for every value, each drawn independently."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from fedhh.oracles.base import Floats, Reports, Tally, Values
from fedhh.oracles.families import PureOracle
from fedhh.oracles.sampling import SampledAggregates


@dataclass(frozen=True, kw_only=True)
class IndependentValues(SampledAggregates):
    """An oracle whose report treats each value independently of all others.

    Sums of different values are then independent, and a histogram gives them all.
    """

    def _add_values(self, values: Values, out: Tally, *, rng: np.random.Generator) -> None:
        # O(n), and what sampling from the histogram takes.
        counts = np.bincount(self._check_values(values), minlength=self.domain_size)
        out += self.sample_aggregate(counts, rng=rng)

    def _nanoseconds_saved(self, num_reports: int) -> float:
        # A nanosecond per report: each part of them would be drawn as the whole is.
        return float(num_reports)


@dataclass(frozen=True, kw_only=True)
class IndependentSupport(IndependentValues, PureOracle):
    """A pure oracle whose report supports each value independently of all others.

    Its counts are then independent binomials, and are drawn as such.
    """

    def sample_aggregate(self, counts: Tally, *, rng: np.random.Generator) -> Tally:
        counts = self._check_counts(counts)
        num_reports = int(counts.sum())
        ones = rng.binomial(counts, self.p)
        return ones + rng.binomial(num_reports - counts, self.q)


@dataclass(frozen=True, kw_only=True)
class UnaryEncoding(IndependentSupport):
    """What unary encodings share: the bit of the client's value is 1 with probability p, others q.

    Formal guarantees:
        * epsilon-local differential privacy: p (1-q) / (q (1-p)) is exactly e**epsilon.
        * The estimate is unbiased; V0 = q(1-q) / (p-q)**2.
        * The counts of different values are independent, so `sample_aggregate` is exact.

    Cost: O(s) per report that is made; O(n + s) for a tally of any number of reports. A report is
    ``(s,) uint8`` of 0 and 1.

    References:
        Wang, Blocki, Li, Jha (2017), "Locally differentially private protocols for frequency
        estimation", USENIX Security, section 4.
    """

    def privatize(self, values: Values, *, rng: np.random.Generator) -> Reports:
        values = self._check_values(values)
        bits = rng.random((len(values), self.domain_size)) < self.q
        bits[np.arange(len(values)), values] = rng.random(len(values)) < self.p
        return bits.view(np.uint8)

    def report_space(self) -> Reports:
        self._check_report_space(self.report_bits, width=self.domain_size)
        return np.array(list(itertools.product((0, 1), repeat=self.domain_size)), dtype=np.uint8)

    @property
    def report_bits(self) -> float:
        return float(self.domain_size)

    def _add_reports(self, reports: Reports, out: Tally) -> None:
        out += reports.sum(axis=0, dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class SymmetricUnaryEncoding(UnaryEncoding):
    """Symmetric unary encoding: a vector of s bits, each flipped with the same probability.

    With h = e**(epsilon/2), the bit of the client's value is 1 with probability p = h / (h + 1),
    each other bit with probability q = 1 / (h + 1). It is basic one-time RAPPOR, and what a Count
    Mean Sketch does to the cells of a row.

    V0 = h / (h - 1)**2, larger than optimized unary encoding's by (h + 1)**2 / (4 h): 2.4 times at
    epsilon 4, 38 times at epsilon 10. Guarantees and costs are those of `UnaryEncoding`.

    References:
        Erlingsson, Pihur, Korolova (2014), "RAPPOR: randomized aggregatable privacy-preserving
        ordinal response", CCS, section 2, without Bloom filter and permanent response.
    """

    @property
    def p(self) -> float:
        return 1 / (1 + math.exp(-self.epsilon / 2))

    @property
    def q(self) -> float:
        return math.exp(-self.epsilon / 2) * self.p

    def log_prob(self, reports: Reports, value: int) -> Floats:
        ones = reports.sum(axis=1, dtype=np.int64)
        own = reports[:, value].astype(np.int64)
        flips = ones - own + (1 - own)
        # ln q = ln p - epsilon / 2.
        return np.asarray(
            self.domain_size * math.log(self.p) - flips * (self.epsilon / 2), dtype=np.float64
        )


@dataclass(frozen=True, kw_only=True)
class OptimizedUnaryEncoding(UnaryEncoding):
    """Optimized unary encoding: a vector of s bits, each drawn independently.

    With E = e**epsilon, the bit of the client's value is 1 with probability p = 1/2, each other
    bit with probability q = 1 / (E + 1). V0 = 4 E / (E - 1)**2. Guarantees and costs are those of
    `UnaryEncoding`.
    """

    @property
    def p(self) -> float:
        return 0.5

    @property
    def q(self) -> float:
        return math.exp(-self.epsilon) / (1 + math.exp(-self.epsilon))

    def log_prob(self, reports: Reports, value: int) -> Floats:
        others = reports.sum(axis=1, dtype=np.int64) - reports[:, value]
        # ln q = ln(1-q) - epsilon.
        log_zero = -math.log1p(math.exp(-self.epsilon))
        log_others = (self.domain_size - 1) * log_zero - others * self.epsilon
        return np.asarray(log_others - math.log(2), dtype=np.float64)
