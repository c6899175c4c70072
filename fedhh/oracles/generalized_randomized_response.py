"""Generalized randomized response: the true value, or else any other."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedhh.oracles.base import Floats, PureOracle, Reports, ServerWork, Tally, Values, as_numbers
from fedhh.oracles.subset_votes import (
    add_subset_votes,
    coin_threshold,
    sample_subset_tally,
    subset_tally_saves_ns,
)


@dataclass(frozen=True, kw_only=True)
class GeneralizedRandomizedResponse(PureOracle):
    """Generalized randomized response, also direct encoding or k-ary randomized response.

    With E = e**epsilon and s values, a report is the client's value with probability
    p = E / (E + s - 1), and each other value with probability q = 1 / (E + s - 1).

    Formal guarantees:
        * epsilon-local differential privacy: p / q is exactly E.
        * The estimate is unbiased; V0 = q(1-q) / (p-q)**2 = (s - 2 + E) / (E - 1)**2.
        * It is Subset Selection with d = 1, whenever that has d = 1.

    Cost: O(1) per report, on the client and in the tally. A report is one int64.

    References:
        Kairouz, Oh, Viswanath (2014), "Extremal mechanisms for local differential privacy", NIPS.
        Wang, Blocki, Li, Jha (2017), "Locally differentially private protocols for frequency
        estimation", USENIX Security, section 4.
    """

    @property
    def p(self) -> float:
        """Probability that a report is its client's value."""
        return 1 / (1 + (self.domain_size - 1) * math.exp(-self.epsilon))

    @property
    def q(self) -> float:
        """Probability that a report is a given other value."""
        return math.exp(-self.epsilon) * self.p

    def privatize(self, values: Values, *, rng: np.random.Generator) -> Reports:
        """Return ``(n,) int64`` reports."""
        values = self.check_values(values)
        others = rng.integers(0, self.domain_size - 1, size=len(values))
        others += others >= values
        moved = rng.random(len(values)) < (self.domain_size - 1) * self.q
        return np.where(moved, others, values)

    def tally(self, reports: Reports, candidates: Values) -> Tally:
        """Return how many reports equal each candidate; O(n + s)."""
        candidates = self.check_values(candidates, "candidates")
        return np.bincount(reports, minlength=self.domain_size)[candidates]

    def privatize_and_tally(
        self, values: Values, *, rng: np.random.Generator, out: Tally | None = None
    ) -> Tally:
        """Return the tally of fresh reports without storing one; O(n + s)."""
        values = as_numbers(values)
        out = self._tally_of_all(out)
        miss = coin_threshold(heads=self.p, tails=(self.domain_size - 1) * self.q)
        add_subset_votes(values, out, subset_size=1, miss=miss, rng=rng)
        return out

    def sample_tally(
        self, true_counts: Values, num_reports: int, *, rng: np.random.Generator
    ) -> Tally:
        """Return a tally drawn from a histogram, with the exact law; O(s), whatever n.

        With probability s q a report is uniform over all values, else it is its client's: each
        value keeps Binomial(c, p - q) reports, and the others fall as one multinomial.

        Args:
            true_counts: ``(domain_size,) int64``, summing to ``num_reports``.
            num_reports: Number of reports n.
            rng: Source of randomness.
        """
        true_counts = self._check_true_counts(true_counts, num_reports)
        return sample_subset_tally(true_counts, subset_size=1, epsilon=self.epsilon, rng=rng)

    def nanoseconds_saved(self, num_reports: int) -> float:
        """Return what `sample_tally` saves, from s and the number of reports."""
        return subset_tally_saves_ns(self.domain_size, 1, num_reports)

    def log_prob(self, reports: Reports, value: int) -> Floats:
        """Return ``(n,) float64``: ln p for reports that equal ``value``, ln q for the others."""
        log_p = math.log(self.p)
        return np.where(reports == value, log_p, log_p - self.epsilon)

    def report_space(self) -> Reports:
        """Return all values."""
        self._check_report_space(self.report_bits)
        return np.arange(self.domain_size)

    @property
    def server_work(self) -> ServerWork:
        """One count; a candidate is a count."""
        return ServerWork("1", 1, "1", 1)

    @property
    def report_bits(self) -> float:
        """log2 of the domain's size."""
        return math.log2(self.domain_size)
