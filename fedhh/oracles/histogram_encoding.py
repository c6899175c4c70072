"""Histogram encoding: an indicator with two-sided geometric noise on every entry, on a grid."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from annotated_types import Ge, Le

from fedhh.arrays import Floats
from fedhh.oracles.base import FrequencyOracle, Reports, Tally, Values
from fedhh.oracles.bits import IndependentSupport, IndependentValues
from fedhh.oracles.families import Moments, ScoredOracle
from fedhh.validation import InputError

_LARGEST_GRID = 2**40


@dataclass(frozen=True, kw_only=True)
class HistogramEncoding(FrequencyOracle):
    """What histogram encodings share: their reports.

    The papers (Dwork, McSherry, Nissim, Smith 2006, "Calibrating noise to sensitivity in private
    data analysis", TCC; Wang, Blocki, Li, Jha 2017, "Locally differentially private protocols for
    frequency estimation", USENIX Security, section 4) add Laplace noise of scale 2/epsilon to every
    entry of the indicator of the client's value, which changes in two entries by 1 each. Tallies
    here are whole numbers, and a real number on a computer leaks through its low digits; so entries
    are whole numbers of grid steps, G to the 1, and the noise is discrete Laplace, also two-sided
    geometric: with a = e**(-epsilon / (2 G)), N = x with probability (1 - a) / (1 + a) a**|x|. An
    entry beyond [-B, G + B] is sent as the nearer end. The privacy is exactly epsilon for every G
    and B: moving the 1 changes an entry's probability by at most a factor of e**(epsilon / 2), the
    ends' too.

    A report is ``(s,) int64`` in [-B, G + B]. Cost: O(s) per report that is made.

    The tallies of different values are independent, so `sample_aggregate` is exact.

    Attributes:
        steps: G, grid steps from 0 to 1.
        reach: B is at least ``reach`` scales of the noise, 2 G / epsilon steps each; 0 for B = 0.
            At 32, one entry in 10**14 is not sent as it is.
    """

    steps: Annotated[int, Ge(1)] = 1024
    reach: Annotated[float, Ge(0), Le(1_000)] = 32.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.steps * (1 + 2 * self.reach / self.epsilon) > _LARGEST_GRID:
            raise InputError(
                f"Expected a grid of at most {_LARGEST_GRID:,} steps, got steps={self.steps}, "
                f"reach={self.reach} at epsilon={self.epsilon}; lower steps or reach."
            )

    @property
    def log_ratio(self) -> float:
        """Logarithm of a: how fast the noise falls with each step, below 0."""
        return -self.epsilon / (2 * self.steps)

    @property
    def margin(self) -> int:
        """B; if not 0, a power of two and 1 more, for which sums are drawn fastest."""
        least = self.reach * 2 * self.steps / self.epsilon
        return 1 + 2 ** max(0, math.ceil(math.log2(least))) if least else 0

    def privatize(self, values: Values, *, rng: np.random.Generator) -> Reports:
        values = self._check_values(values)
        shape = (len(values), self.domain_size)
        fall = -math.expm1(self.log_ratio)
        # The difference of two geometric numbers is two-sided geometric.
        entries = rng.geometric(fall, shape) - rng.geometric(fall, shape)
        entries[np.arange(len(values)), values] += self.steps
        return np.asarray(np.clip(entries, -self.margin, self.steps + self.margin))

    def _craft(self, values: Values, sign: int, count: int, rng: np.random.Generator) -> Reports:
        low, high = -self.margin, self.steps + self.margin
        if not sign:
            return rng.integers(low, high, size=(count, self.domain_size), endpoint=True)
        # Other entries are those of an honest report of a random value.
        reports = self.privatize(rng.integers(self.domain_size, size=count), rng=rng)
        reports[:, values] = high if sign > 0 else low
        return reports

    def log_prob(self, reports: Reports, value: int) -> Floats:
        centres = np.where(np.arange(self.domain_size) == value, self.steps, 0)
        logs = np.abs(reports - centres) * self.log_ratio - math.log1p(math.exp(self.log_ratio))
        # All that lies beyond an end is sent as the end.
        inside = (reports > -self.margin) & (reports < self.steps + self.margin)
        logs += np.where(inside, math.log(-math.expm1(self.log_ratio)), 0)
        return np.asarray(logs.sum(axis=1), dtype=np.float64)

    def report_space(self) -> Reports:
        self._check_report_space(self.report_bits, width=self.domain_size)
        levels = range(-self.margin, self.steps + self.margin + 1)
        return np.array(list(itertools.product(levels, repeat=self.domain_size)), dtype=np.int64)

    @property
    def report_bits(self) -> float:
        """log2 of G + 2 B + 1 for each of s entries."""
        return self.domain_size * math.log2(self.steps + 2 * self.margin + 1)


@dataclass(frozen=True, kw_only=True)
class SummedHistogramEncoding(IndependentValues, HistogramEncoding, ScoredOracle):
    """Summation with histogram encoding: a noisy indicator, whose entries the server adds up.

    Reports, and why their noise is on a grid, are those of `HistogramEncoding`. The tally is in
    grid steps.

    Formal guarantees:
        * epsilon-local differential privacy, exactly: the worst ratio is e**epsilon.
        * The estimate is unbiased, also for entries sent as an end of the grid.
        * V0 is that of the discrete noise: 1 / (2 G**2 sinh(epsilon / (4 G))**2), less what lies
          beyond the grid's ends. It is below the 8 / epsilon**2 of real Laplace noise by about
          epsilon**2 / (48 G**2) of it, 2 in a million at epsilon 10 and the default G: the grid
          costs no accuracy.

    It is not a `PureOracle`: a report has no set of values that it supports. Where a protocol needs
    one, `the` has less noise, and `oue` much less.

    Cost: O(n + s log(G + B)) for a tally of any number of reports.

    References:
        Ghosh, Roughgarden, Sundararajan (2009), "Universally utility-maximizing privacy
        mechanisms", STOC: the discrete noise.
    """

    @cached_property
    def other(self) -> Moments:
        """Moments of an entry of another value, in grid steps."""
        below, above = self.margin, self.steps + self.margin
        a, fall = math.exp(self.log_ratio), -math.expm1(self.log_ratio)
        # E min(X, c) and E min(X, c)**2 of one side, P(X >= x) = a**x / (1 + a) for x >= 1.
        first = second = 0.0
        for sign, cap in ((1, above), (-1, below)):
            beyond = math.exp(cap * self.log_ratio)
            mean = a * (1 - beyond) / fall
            first += sign * mean
            # sum of (2 x - 1) a**x over x from 1 to the cap.
            second += 2 * (mean - cap * a * beyond) / fall - mean
        first, second = first / (1 + a), second / (1 + a)
        return Moments(mean=first, variance=second - first**2)

    @property
    def held(self) -> Moments:
        return Moments(mean=self.steps - self.other.mean, variance=self.other.variance)

    def sample_aggregate(self, counts: Tally, *, rng: np.random.Generator) -> Tally:
        """Return sums of entries, drawn with the exact distribution; O(s log(G + B))."""
        held = self._check_counts(counts)
        num_reports = int(held.sum())
        # The entry of a client's own value is G less one of another's distribution.
        return (
            held * self.steps
            + self._sums_of_entries(num_reports - held, rng)
            - self._sums_of_entries(held, rng)
        )

    def _add_reports(self, reports: Reports, out: Tally) -> None:
        out += reports.sum(axis=0, dtype=np.int64)

    def _sums_of_entries(self, numbers: Values, rng: np.random.Generator) -> Tally:
        """Return ``(s,) int64``: the sum of so many entries of other values, for each value."""
        a = math.exp(self.log_ratio)
        above = rng.binomial(numbers, a / (1 + a))
        below = rng.binomial(numbers - above, a)
        sums: Tally = above + self._sums_of_capped(above, self.steps + self.margin - 1, rng)
        if self.margin:
            sums -= below + self._sums_of_capped(below, self.margin - 1, rng)
        return sums

    def _sums_of_capped(self, numbers: Values, cap: int, rng: np.random.Generator) -> Tally:
        """Return sums of so many geometric numbers min(X, cap) each, P(X >= x) = a**x.

        Below the cap, X is split in blocks whose widths are powers of two; within one, the bits
        of X are independent, and each adds up to a binomial number.
        """
        capped = rng.binomial(numbers, math.exp(cap * self.log_ratio))
        sums: Tally = cap * capped
        left, start = numbers - capped, 0
        while start < cap:
            bits = (cap - start).bit_length() - 1
            share = math.expm1(2**bits * self.log_ratio)
            here = rng.binomial(left, share / math.expm1((cap - start) * self.log_ratio))
            sums += start * here
            for bit in range(bits):
                one = math.exp(2**bit * self.log_ratio)
                sums += rng.binomial(here, one / (1 + one)) << bit
            left = left - here
            start += 2**bits
        return sums


@dataclass(frozen=True, kw_only=True)
class ThresholdHistogramEncoding(HistogramEncoding, IndependentSupport):
    """Thresholding with histogram encoding: a report supports the values whose entries are large.

    Reports, and why their noise is on a grid, are those of `HistogramEncoding`. The server counts
    entries of at least t grid steps, the threshold between G/2 and G with the least noise; with a =
    e**(-epsilon / (2 G)), p = 1 - a**(G - t + 1) / (1 + a) and q = a**t / (1 + a). As G grows, they
    are those of Wang et al. at theta = (t - 1/2) / G.

    Formal guarantees:
        * epsilon-local differential privacy, exactly: the worst ratio is e**epsilon.
        * The estimate is unbiased; V0 = q(1-q) / (p-q)**2.

    A client that compares its entries with t itself sends s bits with the same p and q. It then
    reveals ln(p (1-q) / (q (1-p))) only, less than epsilon; `oue` puts all of it to use.

    Cost: O(n + s) for a tally of any number of reports.
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
        return 1 - math.exp((self.steps - self.threshold + 1) * self.log_ratio) / self._both

    @property
    def q(self) -> float:
        return math.exp(self.threshold * self.log_ratio) / self._both

    def _add_reports(self, reports: Reports, out: Tally) -> None:
        out += (reports >= self.threshold).sum(axis=0, dtype=np.int64)
