"""Unary encoding: one noisy bit for every value, each drawn independently."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from fedhh.oracles.base import PureOracle, Reports, ServerWork, Tally, Values
from fedhh.oracles.independent_tallies import IndependentTallies


@dataclass(frozen=True, kw_only=True)
class IndependentSupport(IndependentTallies, PureOracle):
    """A pure oracle whose report supports each value independently of all others.

    Its counts are then independent binomials, and are drawn as such.
    """

    def sample_tally(
        self, true_counts: Values, num_reports: int, *, rng: np.random.Generator
    ) -> Tally:
        """Return a tally drawn from a histogram, with the exact law; O(s), whatever n.

        Args:
            true_counts: ``(domain_size,) int64``, summing to ``num_reports``.
            num_reports: Number of reports n.
            rng: Source of randomness.
        """
        true_counts = self._check_true_counts(true_counts, num_reports)
        ones = rng.binomial(true_counts, self.p)
        return ones + rng.binomial(num_reports - true_counts, self.q)


@dataclass(frozen=True, kw_only=True)
class UnaryEncoding(IndependentSupport):
    """What unary encodings share: the bit of the client's value is 1 with probability p, others q.

    Cost: O(s) per report that is made; O(n + s) for a tally of any number of reports. A report is
    ``(s,) uint8`` of 0 and 1.
    """

    def privatize(self, values: Values, *, rng: np.random.Generator) -> Reports:
        """Return ``(n, s) uint8`` reports of 0 and 1."""
        values = self.check_values(values)
        bits = rng.random((len(values), self.domain_size)) < self.q
        bits[np.arange(len(values)), values] = rng.random(len(values)) < self.p
        return bits.view(np.uint8)

    def tally(self, reports: Reports, candidates: Values) -> Tally:
        """Return how many reports have each candidate's bit set."""
        candidates = self.check_values(candidates, "candidates")
        return np.asarray(reports[:, candidates].sum(axis=0, dtype=np.int64))

    def report_space(self) -> Reports:
        """Return all ``2**s`` bit vectors, ``(2**s, s) uint8``."""
        self._check_report_space(self.report_bits, width=self.domain_size)
        return np.array(list(itertools.product((0, 1), repeat=self.domain_size)), dtype=np.uint8)

    @property
    def server_work(self) -> ServerWork:
        """One count for each bit; a candidate is a count."""
        return ServerWork("s", self.domain_size, "1", 1)

    @property
    def report_bits(self) -> float:
        """The bits themselves, s of them, sent plainly."""
        return float(self.domain_size)
