"""Oracles whose tallies of different values are independent, so that a histogram gives them all."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from fedhh.oracles.base import FrequencyOracle, Tally, Values


@dataclass(frozen=True, kw_only=True)
class IndependentTallies(FrequencyOracle):
    """An oracle whose report treats each value independently of all others."""

    def privatize_and_tally(
        self, values: Values, *, rng: np.random.Generator, out: Tally | None = None
    ) -> Tally:
        """Return the tally of fresh reports, of which each value's is drawn as `sample_tally` does.

        O(n), and what a tally of the histogram takes.
        """
        out = self._tally_of_all(out)
        counts = np.bincount(self.check_values(values), minlength=self.domain_size)
        out += self.sample_tally(counts, len(values), rng=rng)
        return out

    @abstractmethod
    def sample_tally(
        self, true_counts: Values, num_reports: int, *, rng: np.random.Generator
    ) -> Tally:
        """Return a tally drawn from a histogram, with the exact law.

        Args:
            true_counts: ``(domain_size,) int64``, summing to ``num_reports``.
            num_reports: Number of reports n.
            rng: Source of randomness.
        """

    def nanoseconds_saved(self, num_reports: int) -> float:
        """Return a nanosecond per report: each part of them would be drawn as the whole is."""
        return float(num_reports)
