"""Subset Selection: a report is a random set of values, likelier to contain the client's own."""

from __future__ import annotations

import itertools
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from scipy.special import betaln

from fedhh.arrays import Floats
from fedhh.kernels.prng import lane_states
from fedhh.kernels.reports import draw_subsets
from fedhh.kernels.subset_tally import add_members, halve, root
from fedhh.kernels.variates import binomials
from fedhh.kernels.votes import add_subset_votes
from fedhh.oracles.attack import subsets_with
from fedhh.oracles.base import PureOracle, Reports, Tally, Values, require_countable
from fedhh.oracles.families import SampledAggregates
from fedhh.random import kernel_state
from fedhh.system.machine import num_cores


@dataclass(frozen=True, kw_only=True)
class SubsetSelection(SampledAggregates, PureOracle):
    """Subset Selection (Sun et al. 2024, Algorithm 1; Ye and Barg 2017; Wang et al. 2016).

    With probability p the report is the client's value and d - 1 of the s - 1 others, otherwise d
    of the others; the others are uniform without replacement. s is `domain_size`, and with
    E = e**epsilon, p = d E / (d E + s - d) and q = (d - p) / (s - 1).

    Formal guarantees:
        * P(report | v) = p / C(s-1, d-1) if v is in the report, else (1-p) / C(s-1, d).
        * epsilon-local differential privacy: the ratio of the two is exactly E.
        * The estimate (votes - n q) / (p - q) is unbiased; its variance is that of a sum of
          independent Bernoulli(p) and Bernoulli(q).
        * With probability (1-p) s / (s-d) the report is a uniform d-subset of all values,
          whatever the client holds.

    Cost: O(d) per report, on the client and in the tally. A report is ``(d,) int64``, ascending.

    Attributes:
        subset_size: ``paper``: d = ceil(s / (E + 1)). ``optimal``: the floor or the ceiling,
            whichever has the smaller variance for a value that no client holds, q(1-q) / (p-q)**2;
            they differ noticeably only when s / (E + 1) is a little above 1.

    References:
        Sun, Kairouz, Sun, Gascon, Suresh (2024), "Private federated discovery of out-of-vocabulary
        words for Gboard", Algorithm 1.
        Ye, Barg (2017), "Optimal schemes for discrete distribution estimation under local
        differential privacy", ISIT.
        Wang, Huang, Wang, Nie, Xu, Yang, Li, Qiao (2016), "Mutual information optimally local
        private discrete distribution estimation".
    """

    subset_size: Literal["paper", "optimal"] = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_countable(self.domain_size, "subset selection")

    @cached_property
    def d(self) -> int:
        """Number of values in a report, in [1, domain_size - 1]."""
        best = self.domain_size * math.exp(-self.epsilon) / (1 + math.exp(-self.epsilon))
        # An e**epsilon that is a whole number up to rounding must not push the ceiling up by one.
        ceiling = self._clip(math.ceil(best * (1 - 1e-12)))
        if self.subset_size == "paper":
            return ceiling
        return min(self._clip(math.floor(best)), ceiling, key=self._noise)

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
        return 1 - self._miss_probability(self.d)

    @cached_property
    def q(self) -> float:
        return (self.d - self.p) / (self.domain_size - 1)

    @property
    def _miss(self) -> np.uint64:
        return coin_threshold(heads=self.p, tails=self._miss_probability(self.d))

    def privatize(self, values: Values, *, rng: np.random.Generator) -> Reports:
        """Return ``(n, d) int64`` reports; rows ascend, so the order of drawing leaks nothing."""
        values = self._check_values(values)
        reports = np.empty((len(values), self.d), dtype=np.int64)
        draw_subsets(values, self.domain_size, self._miss, reports, kernel_state(rng))
        reports.sort(axis=1)
        return reports

    def sample_aggregate(self, counts: Tally, *, rng: np.random.Generator) -> Tally:
        counts = self._check_counts(counts)
        return sample_subset_tally(counts, subset_size=self.d, epsilon=self.epsilon, rng=rng)

    def log_prob(self, reports: Reports, value: int) -> Floats:
        s, d = self.domain_size, self.d
        # C(s-1, d-1) = C(s-1, d) d / (s-d): of the same rounded term, the ratio stays exact.
        subsets = _log_binomial(s - 1, d)
        containing = math.log(self.p) - math.log(d / (s - d)) - subsets
        with np.errstate(divide="ignore"):
            lacking = np.log(self._miss_probability(d)) - subsets
        held = (reports == value).any(axis=1)
        return np.where(held, containing, lacking)

    def report_space(self) -> Reports:
        self._check_report_space(self.report_bits, width=self.d)
        subsets = itertools.combinations(range(self.domain_size), self.d)
        return np.array(list(subsets), dtype=np.int64)

    @property
    def report_bits(self) -> float:
        """log2 of C(s, d): an enumerative code of the subset."""
        return _log_binomial(self.domain_size, self.d) / math.log(2)

    def supported_values(self, reports: Reports) -> Reports:
        return reports

    def _craft(self, values: Values, sign: int, count: int, rng: np.random.Generator) -> Reports:
        # As many of the values as fit, or as few, and others.
        rest = self.domain_size - len(values)
        inside = min(len(values), self.d) if sign > 0 else max(0, self.d - rest)
        parts = subsets_with(self.domain_size, values, inside, self.d, count, rng=rng)
        return np.sort(np.concatenate(parts, axis=1), axis=1)

    def _add_reports(self, reports: Reports, out: Tally) -> None:
        out += np.bincount(reports.ravel(), minlength=self.domain_size)

    def _add_values(self, values: Values, out: Tally, *, rng: np.random.Generator) -> None:
        # No report is stored; O(n d + s).
        add_subset_votes(values, self.d, self._miss, out, lane_states(rng))

    @property
    def report_draws(self) -> int:
        return self.d


def _log_binomial(n: int, k: int) -> float:
    return float(-np.log1p(n) - betaln(n - k + 1, k + 1))


# Tallies of domains from this size on are drawn in parts, in parallel.
_WORTH_PARTS = 2**16
_MOST_PARTS = 16


def coin_threshold(*, heads: float, tails: float) -> np.uint64:
    """Return ``tails * 2**64``: a uniform 64-bit word is below it with probability ``tails``.

    Args:
        heads: Probability of the other side; the smaller of the two keeps its precision.
        tails: 1 - heads.
    """
    if heads < tails:
        return np.uint64(2**64 - round(heads * 2.0**64))
    return np.uint64(round(tails * 2.0**64))


def sample_subset_tally(
    true_counts: Values, *, subset_size: int, epsilon: float, rng: np.random.Generator
) -> Tally:
    """Return the votes of Subset Selection's reports, drawn exactly without a report.

    With E = e**epsilon, a report contains its client's value in proportion to E, any other subset
    in proportion to 1. So it is a mixture: with probability s / (d E + s - d) it is *free*, a
    uniform d-subset whatever the client holds; otherwise it is *bound*, the client's value and a
    uniform (d - 1)-subset of the others. What the free and the bound place is drawn by halving the
    domain, see `fedhh.kernels.subset_tally`.

    Args:
        true_counts: ``(s,) int64``: clients that hold each value.
        subset_size: d, in [1, s).
        epsilon: Privacy of one report.
        rng: Source of the clients' coins.
    """
    state = kernel_state(rng)
    free_weight = len(true_counts) * math.exp(-epsilon)
    bound_weight = -subset_size * math.expm1(-epsilon)
    bound = binomials(true_counts, bound_weight, free_weight, state)
    sums: Tally = bound.copy()
    before = np.r_[0, np.cumsum(bound)]
    whole = root(bound, int((true_counts - bound).sum()), subset_size)
    if len(bound) < _WORTH_PARTS:
        add_members(whole, before, sums, state)
        return sums
    # Parts follow from the domain's size, not from the cores, and each has its own stream.
    smallest = 2 ** (len(bound) - 1).bit_length() // _MOST_PARTS
    parts, waiting = [], [whole]
    while waiting:
        node = waiting.pop()
        if node.size <= smallest:
            parts.append(node)
        elif node.reports[:, 1:].any():
            waiting += reversed(halve(node, before, state))
    states = [kernel_state(rng) for _ in parts]
    with ThreadPoolExecutor(num_cores()) as pool:
        list(pool.map(lambda *part: add_members(part[0], before, sums, part[1]), parts, states))
    return sums
