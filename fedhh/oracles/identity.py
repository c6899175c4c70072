"""The null mechanism: reports are the values themselves, so a protocol runs on true counts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedhh.oracles.base import Floats, PureOracle, Reports, ServerWork, Tally, Values
from fedhh.validation import InputError


@dataclass(frozen=True, kw_only=True)
class Identity(PureOracle):
    """No privacy at all: for debugging and for the error that is a protocol's own.

    epsilon must be ``math.inf``, which is what accounting then states. A report is the value;
    p = 1, q = 0, every estimate is the true count and its variance is 0.
    """

    def _check_epsilon(self) -> None:
        if self.epsilon != math.inf:
            raise InputError(
                f"Expected epsilon=inf, got epsilon={self.epsilon!r}; the null mechanism protects "
                f"nothing, choose another oracle for a finite epsilon."
            )

    @property
    def p(self) -> float:
        """1: a report supports its client's value."""
        return 1.0

    @property
    def q(self) -> float:
        """0: a report supports no other value."""
        return 0.0

    def privatize(self, values: Values, *, rng: np.random.Generator) -> Reports:
        """Return the values, ``(n,) int64``; ``rng`` is not used."""
        return self.check_values(values).copy()

    def tally(self, reports: Reports, candidates: Values) -> Tally:
        """Return how many reports equal each candidate."""
        candidates = self.check_values(candidates, "candidates")
        return np.bincount(reports, minlength=self.domain_size)[candidates]

    def privatize_and_tally(
        self, values: Values, *, rng: np.random.Generator, out: Tally | None = None
    ) -> Tally:
        """Return the true counts; ``rng`` is not used."""
        out = self._tally_of_all(out)
        out += np.bincount(self.check_values(values), minlength=self.domain_size)
        return out

    def sample_tally(
        self, true_counts: Values, num_reports: int, *, rng: np.random.Generator
    ) -> Tally:
        """Return the true counts, which are the tally; ``rng`` is not used."""
        return self._check_true_counts(true_counts, num_reports).copy()

    def log_prob(self, reports: Reports, value: int) -> Floats:
        """Return 0 for reports that equal ``value`` and -inf for the others."""
        return np.where(reports == value, 0.0, -np.inf)

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
