"""Thresholding with histogram encoding: noisy indicators, of which large entries count."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedhh.oracles.base import Reports, Tally, Values
from fedhh.oracles.histogram_encoding import HistogramEncoding
from fedhh.oracles.unary_encoding import IndependentSupport


@dataclass(frozen=True, kw_only=True)
class ThresholdHistogramEncoding(HistogramEncoding, IndependentSupport):
    """Thresholding with histogram encoding: a report supports the values whose entries are large.

    Reports, and why their noise is on a grid, are those of
    `fedhh.oracles.histogram_encoding.HistogramEncoding`. The server counts entries of at least t
    grid steps, the threshold between G/2 and G with the least noise; with
    a = e**(-epsilon / (2 G)), p = 1 - a**(G - t + 1) / (1 + a) and q = a**t / (1 + a). As G grows,
    they are those of Wang et al. at theta = (t - 1/2) / G.

    Formal guarantees:
        * epsilon-local differential privacy, exactly: the worst ratio is e**epsilon.
        * The estimate is unbiased; V0 = q(1-q) / (p-q)**2.
        * The counts of different values are independent, so `sample_tally` has the exact law.

    A client that compares its entries with t itself sends s bits with the same p and q. It then
    reveals ln(p (1-q) / (q (1-p))) only, less than epsilon; `oue` puts all of it to use.

    Cost: O(s) per report that is made; O(n + s) for a tally of any number of reports.

    References:
        Wang, Blocki, Li, Jha (2017), "Locally differentially private protocols for frequency
        estimation", USENIX Security, section 4.
    """

    @cached_property
    def threshold(self) -> int:
        """t, in grid steps."""
        choices = np.arange(self.steps // 2 + 1, self.steps + 1)
        p = 1 - np.exp((self.steps - choices + 1) * self.log_ratio) / self._both
        q = np.exp(choices * self.log_ratio) / self._both
        return int(choices[np.argmin(q * (1 - q) / (p - q) ** 2)])

    @property
    def _both(self) -> float:
        return 1 + math.exp(self.log_ratio)

    @property
    def p(self) -> float:
        """Probability that the entry of the client's value reaches the threshold."""
        return 1 - math.exp((self.steps - self.threshold + 1) * self.log_ratio) / self._both

    @property
    def q(self) -> float:
        """Probability that a given other entry reaches the threshold."""
        return math.exp(self.threshold * self.log_ratio) / self._both

    def tally(self, reports: Reports, candidates: Values) -> Tally:
        """Return how many reports have each candidate's entry at or above the threshold."""
        candidates = self.check_values(candidates, "candidates")
        large = reports[:, candidates] >= self.threshold
        return np.asarray(large.sum(axis=0, dtype=np.int64))
