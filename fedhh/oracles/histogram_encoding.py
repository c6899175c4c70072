"""Histogram encoding: an indicator with two-sided geometric noise on every entry, on a grid."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from fedhh.oracles.base import Floats, FrequencyOracle, Reports, ServerWork, Values
from fedhh.validation import InputError, require_at_least, require_between

_LARGEST_GRID = 2**40


@dataclass(frozen=True, kw_only=True)
class HistogramEncoding(FrequencyOracle):
    """What histogram encodings share: their reports.

    The papers add Laplace noise of scale 2/epsilon to every entry of the indicator of the client's
    value, which changes in two entries by 1 each. Tallies here are whole numbers, and a real number
    on a computer leaks through its low digits; so entries are whole numbers of grid steps, G to the
    1, and the noise is discrete Laplace, also two-sided geometric: with a = e**(-epsilon / (2 G)),
    N = x with probability (1 - a) / (1 + a) a**|x|. An entry beyond [-B, G + B] is sent as the
    nearer end. The privacy is exactly epsilon for every G and B: moving the 1 changes an entry's
    probability by at most a factor of e**(epsilon / 2), the ends' too.

    A report is ``(s,) int64`` in [-B, G + B]. Cost: O(s) per report.

    Attributes:
        steps: G, grid steps from 0 to 1.
        reach: B is at least ``reach`` scales of the noise, 2 G / epsilon steps each; 0 for B = 0.
            At 32, one entry in 10**14 is not sent as it is.
    """

    steps: int = 1024
    reach: float = 32.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(1, steps=self.steps)
        require_between(0, 1_000, reach=self.reach)
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
        """Return ``(n, s) int64`` reports, in grid steps."""
        values = self.check_values(values)
        shape = (len(values), self.domain_size)
        fall = -math.expm1(self.log_ratio)
        # The difference of two geometric numbers is two-sided geometric.
        entries = rng.geometric(fall, shape) - rng.geometric(fall, shape)
        entries[np.arange(len(values)), values] += self.steps
        return np.asarray(np.clip(entries, -self.margin, self.steps + self.margin))

    def log_prob(self, reports: Reports, value: int) -> Floats:
        """Return the log-probability of each ``(n, s)`` report, given the true value."""
        centres = np.where(np.arange(self.domain_size) == value, self.steps, 0)
        logs = np.abs(reports - centres) * self.log_ratio - math.log1p(math.exp(self.log_ratio))
        # All that lies beyond an end is sent as the end.
        inside = (reports > -self.margin) & (reports < self.steps + self.margin)
        logs += np.where(inside, math.log(-math.expm1(self.log_ratio)), 0)
        return np.asarray(logs.sum(axis=1), dtype=np.float64)

    def report_space(self) -> Reports:
        """Return all ``(G + 2 B + 1)**s`` reports; for tiny grids only."""
        self._check_report_space(self.report_bits, width=self.domain_size)
        levels = range(-self.margin, self.steps + self.margin + 1)
        return np.array(list(itertools.product(levels, repeat=self.domain_size)), dtype=np.int64)

    @property
    def server_work(self) -> ServerWork:
        """One sum for each entry; a candidate is a sum."""
        return ServerWork("s", self.domain_size, "1", 1)

    @property
    def report_bits(self) -> float:
        """log2 of G + 2 B + 1 for each of s entries."""
        return self.domain_size * math.log2(self.steps + 2 * self.margin + 1)
