"""Optimized unary encoding: the bits of other values are as seldom 1 as can be."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedhh.oracles.base import Floats, Reports
from fedhh.oracles.unary_encoding import UnaryEncoding


@dataclass(frozen=True, kw_only=True)
class OptimizedUnaryEncoding(UnaryEncoding):
    """Optimized unary encoding: a vector of s bits, each drawn independently.

    With E = e**epsilon, the bit of the client's value is 1 with probability p = 1/2, each other
    bit with probability q = 1 / (E + 1).

    Formal guarantees:
        * epsilon-local differential privacy: p (1-q) / (q (1-p)) is exactly E.
        * The estimate is unbiased; V0 = q(1-q) / (p-q)**2 = 4 E / (E - 1)**2.
        * The counts of different values are independent, so `sample_tally` has the exact law.

    Cost: O(s) per report that is made; O(n + s) for a tally of any number of reports. A report is
    ``(s,) uint8`` of 0 and 1.

    References:
        Wang, Blocki, Li, Jha (2017), "Locally differentially private protocols for frequency
        estimation", USENIX Security, section 4.
    """

    @property
    def p(self) -> float:
        """Probability that the bit of the client's value is 1."""
        return 0.5

    @property
    def q(self) -> float:
        """Probability that a given other bit is 1."""
        return math.exp(-self.epsilon) / (1 + math.exp(-self.epsilon))

    def log_prob(self, reports: Reports, value: int) -> Floats:
        """Return the log-probability of each ``(n, s)`` report, given the true value."""
        others = reports.sum(axis=1, dtype=np.int64) - reports[:, value]
        # ln q = ln(1-q) - epsilon.
        log_zero = -math.log1p(math.exp(-self.epsilon))
        log_others = (self.domain_size - 1) * log_zero - others * self.epsilon
        return np.asarray(log_others - math.log(2), dtype=np.float64)
