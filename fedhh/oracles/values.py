"""Randomized response: the true value, or else any other; and the null mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedhh.arrays import Floats
from fedhh.kernels.prng import lane_states
from fedhh.kernels.votes import add_subset_votes
from fedhh.oracles.base import Reports, Tally, Values
from fedhh.oracles.families import CellOracle, CountedOutputs, SampledAggregates, Table
from fedhh.oracles.subset_selection import coin_threshold, sample_subset_tally
from fedhh.validation import InputError


@dataclass(frozen=True, kw_only=True)
class GeneralizedRandomizedResponse(SampledAggregates, CountedOutputs, CellOracle):
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
        return 1 / (1 + (self.domain_size - 1) * math.exp(-self.epsilon))

    @property
    def q(self) -> float:
        return math.exp(-self.epsilon) * self.p

    def privatize(self, values: Values, *, rng: np.random.Generator) -> Reports:
        values = self._check_values(values)
        others = rng.integers(0, self.domain_size - 1, size=len(values))
        others += others >= values
        moved = rng.random(len(values)) < (self.domain_size - 1) * self.q
        return np.where(moved, others, values)

    def supported_values(self, reports: Reports) -> Reports:
        return reports[:, None]

    def sample_aggregate(self, counts: Tally, *, rng: np.random.Generator) -> Tally:
        """Return the counts of reports, drawn with the exact distribution; O(s), whatever n.

        With probability s q a report is uniform over all values, else it is its client's: each
        value keeps Binomial(c, p - q) reports, and the others fall as one multinomial.
        """
        counts = self._check_counts(counts)
        return sample_subset_tally(counts, subset_size=1, epsilon=self.epsilon, rng=rng)

    def scores(self, loads: Tally) -> Tally:
        return loads

    def log_prob(self, reports: Reports, value: int | Values) -> Floats:
        log_p = math.log(self.p)
        return np.where(np.ravel(reports) == value, log_p, log_p - self.epsilon)

    def add_rows(self, rows: Values, reports: Reports, table: Table) -> None:
        np.add.at(table.reshape(-1), rows * table.shape[1] + reports.ravel(), table.dtype.type(1))

    def _add_values(self, values: Values, out: Tally, *, rng: np.random.Generator) -> None:
        # No report is stored; O(n + s).
        miss = coin_threshold(heads=self.p, tails=(self.domain_size - 1) * self.q)
        add_subset_votes(values, 1, miss, out, lane_states(rng))

    @property
    def report_draws(self) -> int:
        return 1


@dataclass(frozen=True, kw_only=True)
class Identity(GeneralizedRandomizedResponse):
    """No privacy at all: for debugging and for the error that is a protocol's own.

    epsilon must be ``math.inf``, which is what accounting then states. A report is the value;
    p = 1, q = 0, every estimate is the true count and its variance is 0.
    """

    epsilon: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epsilon != math.inf:
            raise InputError(
                f"Expected epsilon=inf, got epsilon={self.epsilon!r}; the null mechanism protects "
                f"nothing, choose another oracle for a finite epsilon."
            )
