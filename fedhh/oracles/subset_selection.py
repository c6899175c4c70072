"""Subset Selection: a report is a random set of values, likelier to contain the client's own."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import betaln

from fedhh.kernels.subset_reports import draw_subsets
from fedhh.oracles.base import (
    LARGEST_TALLY,
    Floats,
    PureOracle,
    Reports,
    ServerWork,
    Tally,
    Values,
    as_numbers,
)
from fedhh.oracles.subset_votes import (
    add_subset_votes,
    coin_threshold,
    sample_subset_tally,
    subset_tally_saves_ns,
)
from fedhh.random import kernel_state
from fedhh.validation import InputError, require_choice

SUBSET_SIZE_RULES = ("paper", "optimal")


@dataclass(frozen=True, kw_only=True)
class SubsetSelection(PureOracle):
    """Subset Selection (Sun et al. 2024, Algorithm 1; Ye and Barg 2017; Wang et al. 2016).

    With probability p the report is the client's value and d - 1 of the s - 1 others, otherwise d
    of the others; the others are uniform without replacement. s is `domain_size`, and with
    E = e**epsilon, p = d E / (d E + s - d) and q = (d - p) / (s - 1).

    Formal guarantees:
        * P(report | v) = p / C(s-1, d-1) if v is in the report, else (1-p) / C(s-1, d).
        * epsilon-local differential privacy: the ratio of the two is exactly E.
        * The estimate (votes - n q) / (p - q) is unbiased; its variance is that of a sum of
          independent Bernoulli(p) and Bernoulli(q).
        * With probability `blanket_probability` the report is a uniform d-subset of all values,
          whatever the client holds.

    Cost: O(d) per report, on the client and in the tally. A report is ``(d,) int64``, ascending.

    Attributes:
        subset_size: ``paper``: d = ceil(s / (E + 1)). ``optimal``: the floor or the ceiling,
            whichever has the smaller variance for a value that nobody holds, q(1-q) / (p-q)**2;
            they differ noticeably only when s / (E + 1) is a little above 1.

    References:
        Sun, Kairouz, Sun, Gascon, Suresh (2024), "Private federated discovery of out-of-vocabulary
        words for Gboard", Algorithm 1.
        Ye, Barg (2017), "Optimal schemes for discrete distribution estimation under local
        differential privacy", ISIT.
        Wang, Huang, Wang, Nie, Xu, Yang, Li, Qiao (2016), "Mutual information optimally local
        private discrete distribution estimation".
    """

    subset_size: str = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice(SUBSET_SIZE_RULES, subset_size=self.subset_size)
        if self.domain_size > LARGEST_TALLY:
            raise InputError(
                f"Expected domain_size <= {LARGEST_TALLY} for subset selection, got "
                f"domain_size={self.domain_size}; use an oracle that hashes, such as olh."
            )

    @cached_property
    def d(self) -> int:
        """Number of values in a report, in [1, domain_size - 1]."""
        best = self.domain_size * math.exp(-self.epsilon) / (1 + math.exp(-self.epsilon))
        # An e**epsilon that is a whole number up to rounding must not push the ceiling up by one.
        ceiling = self._clip(math.ceil(best * (1 - 1e-12)))
        if self.subset_size == "paper":
            return ceiling
        return min(self._clip(math.floor(best)), ceiling, key=self._noise)

    @property
    def values_per_report(self) -> int:
        """The number d."""
        return self.d

    def _clip(self, d: int) -> int:
        return min(max(d, 1), self.domain_size - 1)

    def _miss_probability(self, d: int) -> float:
        others = (self.domain_size - d) * math.exp(-self.epsilon)
        return others / (d + others)

    def _noise(self, d: int) -> float:
        p = 1 - self._miss_probability(d)
        q = (d - p) / (self.domain_size - 1)
        return q * (1 - q) / (p - q) ** 2

    @cached_property
    def p(self) -> float:
        """Probability that a report contains its client's value."""
        return 1 - self._miss_probability(self.d)

    @cached_property
    def q(self) -> float:
        """Probability that a report contains a given value that its client does not hold."""
        return (self.d - self.p) / (self.domain_size - 1)

    @cached_property
    def blanket_probability(self) -> float:
        """Weight of the uniform d-subset in the report's law, seen as a mixture."""
        s = self.domain_size
        return self._miss_probability(self.d) * s / (s - self.d)

    @property
    def _miss(self) -> np.uint64:
        return coin_threshold(heads=self.p, tails=self._miss_probability(self.d))

    def privatize(self, values: Values, *, rng: np.random.Generator) -> Reports:
        """Return ``(n, d) int64`` reports; rows ascend, so the order of drawing leaks nothing."""
        values = self.check_values(values)
        reports = np.empty((len(values), self.d), dtype=np.int64)
        draw_subsets(values, self.domain_size, self._miss, reports, kernel_state(rng))
        reports.sort(axis=1)
        return reports

    def tally(self, reports: Reports, candidates: Values) -> Tally:
        """Return how many reports contain each candidate; O(n d + s)."""
        candidates = self.check_values(candidates, "candidates")
        counts = np.bincount(reports.ravel(), minlength=self.domain_size)
        return counts[candidates].astype(np.int64, copy=False)

    def privatize_and_tally(
        self, values: Values, *, rng: np.random.Generator, out: Tally | None = None
    ) -> Tally:
        """Return the tally of fresh reports without storing one; O(n d + s)."""
        values = as_numbers(values)
        out = self._tally_of_all(out)
        add_subset_votes(values, out, subset_size=self.d, miss=self._miss, rng=rng)
        return out

    def sample_tally(
        self, true_counts: Values, num_reports: int, *, rng: np.random.Generator
    ) -> Tally:
        """Return a tally drawn from a histogram, with the exact joint law; whatever n, O(s).

        Args:
            true_counts: ``(domain_size,) int64``, summing to ``num_reports``.
            num_reports: Number of reports n.
            rng: Source of the clients' coins.
        """
        counts = self._check_true_counts(true_counts, num_reports)
        return sample_subset_tally(counts, subset_size=self.d, epsilon=self.epsilon, rng=rng)

    def nanoseconds_saved(self, num_reports: int) -> float:
        """Return what `sample_tally` saves, from s, d and the number of reports."""
        return subset_tally_saves_ns(self.domain_size, self.d, num_reports)

    def log_prob(self, reports: Reports, value: int) -> Floats:
        """Return the log-probability of each ``(n, d)`` report, given the true value."""
        s, d = self.domain_size, self.d
        # C(s-1, d-1) = C(s-1, d) d / (s-d): of the same rounded term, the ratio stays exact.
        subsets = _log_binomial(s - 1, d)
        containing = math.log(self.p) - math.log(d / (s - d)) - subsets
        with np.errstate(divide="ignore"):
            lacking = np.log(self._miss_probability(d)) - subsets
        held = (reports == value).any(axis=1)
        return np.where(held, containing, lacking)

    def report_space(self) -> Reports:
        """Return all C(s, d) subsets, ``(C(s, d), d) int64``."""
        self._check_report_space(self.report_bits, width=self.d)
        subsets = itertools.combinations(range(self.domain_size), self.d)
        return np.array(list(subsets), dtype=np.int64)

    @property
    def server_work(self) -> ServerWork:
        """One count for each of d values; a candidate is a count."""
        return ServerWork("d", self.d, "1", 1)

    @property
    def report_bits(self) -> float:
        """log2 of C(s, d): an enumerative code of the subset."""
        return _log_binomial(self.domain_size, self.d) / math.log(2)


def _log_binomial(n: int, k: int) -> float:
    return float(-np.log1p(n) - betaln(n - k + 1, k + 1))
