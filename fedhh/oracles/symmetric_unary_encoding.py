"""Symmetric unary encoding, also basic one-time RAPPOR: an indicator whose bits flip alike."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedhh.oracles.base import Floats, Reports
from fedhh.oracles.unary_encoding import UnaryEncoding


@dataclass(frozen=True, kw_only=True)
class SymmetricUnaryEncoding(UnaryEncoding):
    """Symmetric unary encoding: a vector of s bits, each flipped with the same probability.

    With h = e**(epsilon/2), the bit of the client's value is 1 with probability p = h / (h + 1),
    each other bit with probability q = 1 / (h + 1). It is basic one-time RAPPOR, and what a Count
    Mean Sketch does to the cells of a row.

    Formal guarantees:
        * epsilon-local differential privacy: p (1-q) / (q (1-p)) is exactly e**epsilon.
        * The estimate is unbiased; V0 = q(1-q) / (p-q)**2 = h / (h - 1)**2.
        * The counts of different values are independent, so `sample_tally` has the exact law.

    Against optimized unary encoding, V0 is larger by (h + 1)**2 / (4 h): 2.4 times at epsilon 4,
    38 times at epsilon 10.

    Cost: O(s) per report that is made; O(n + s) for a tally of any number of reports. A report is
    ``(s,) uint8`` of 0 and 1.

    References:
        Erlingsson, Pihur, Korolova (2014), "RAPPOR: randomized aggregatable privacy-preserving
        ordinal response", CCS, section 2, without Bloom filter and permanent response.
        Wang, Blocki, Li, Jha (2017), "Locally differentially private protocols for frequency
        estimation", USENIX Security, section 4.
    """

    @property
    def p(self) -> float:
        """Probability that a bit is kept."""
        return 1 / (1 + math.exp(-self.epsilon / 2))

    @property
    def q(self) -> float:
        """Probability that a bit is flipped."""
        return math.exp(-self.epsilon / 2) * self.p

    def log_prob(self, reports: Reports, value: int) -> Floats:
        """Return the log-probability of each ``(n, s)`` report, given the true value."""
        ones = reports.sum(axis=1, dtype=np.int64)
        own = reports[:, value].astype(np.int64)
        flips = ones - own + (1 - own)
        # ln q = ln p - epsilon / 2.
        return np.asarray(
            self.domain_size * math.log(self.p) - flips * (self.epsilon / 2), dtype=np.float64
        )
