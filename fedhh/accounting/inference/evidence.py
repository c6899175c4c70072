"""How likely reports are under each of some hypotheses: kinds of reports, exactly, and their sums.

Reports whose likelihoods have equal ratios under all hypotheses tell the same, and are one kind. So
t reports are as many kinds as there are sums of t log-ratios, not the t-th power of all reports.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from fedhh.oracles import SubsetSelection
from fedhh.oracles.base import FrequencyOracle

Floats = npt.NDArray[np.float64]

MOST_KINDS = 100_000
"""Of reports, or of sequences of them, that are told apart exactly."""
MOST_VALUES_OF_SUBSETS = 10
"""Of Subset Selection: which of so many values are in a report are 2**10 kinds."""
_DIGITS = 9
_NEVER = -1e9


class TooManyKindsError(ValueError):
    """Reports differ in more ways than are told apart exactly."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """Kinds of reports, or of sequences of them, and their chances under each hypothesis.

    Attributes:
        chances: ``(m, n)``: of each kind, under each of m hypotheses; rows sum to 1.
    """

    chances: Floats

    @classmethod
    def of_chances(cls, chances: Floats) -> Self:
        """Return the evidence of reports, with equal ratios made one kind.

        Args:
            chances: ``(m, n)`` of n reports.

        Raises:
            TooManyKindsError: There are more than `MOST_KINDS`.
        """
        possible = chances[:, chances.max(axis=0) > 0]
        with np.errstate(divide="ignore"):
            ratios = np.log(possible / possible.max(axis=0))
        ratios = np.round(np.maximum(ratios, _NEVER), _DIGITS) + 0.0
        kind = np.zeros(ratios.shape[1], dtype=np.int64)
        for row in ratios:
            # Numbers kinds by the hypotheses so far; sorting numbers is faster than columns.
            _, place = np.unique(row, return_inverse=True)
            _, kind = np.unique(kind * (place.max() + 1) + place, return_inverse=True)
        num_kinds = int(kind.max()) + 1
        if num_kinds > MOST_KINDS:
            raise TooManyKindsError(f"{num_kinds:,} kinds of reports")
        sums = [np.bincount(kind, weights=row, minlength=num_kinds) for row in possible]
        return cls(chances=np.stack(sums))

    @classmethod
    def of_oracle(cls, oracle: FrequencyOracle, values: Sequence[int]) -> Self:
        """Return the evidence of one report about one of some values.

        Of Subset Selection in closed form: a report holds j of the m values, and C(s - m, d - j)
        reports hold the same ones. Of other oracles by enumeration.

        Args:
            oracle: As it states its distribution.
            values: The hypotheses; different ones.

        Raises:
            TooManyKindsError: Reports, or kinds of them, are too many.
        """
        if isinstance(oracle, SubsetSelection):
            return cls.of_chances(_subset_chances(oracle, len(values)))
        if oracle.report_bits > math.log2(MOST_KINDS * 4):
            raise TooManyKindsError(f"2**{oracle.report_bits:.0f} reports")
        reports = oracle.report_space()
        return cls.of_chances(np.exp([oracle.log_prob(reports, value) for value in values]))

    def mixed(self, weights: Floats) -> Evidence:
        """Return the evidence about mixtures of the hypotheses.

        Args:
            weights: ``(m', m)``: rows sum to 1.
        """
        return Evidence.of_chances(weights @ self.chances)

    def followed_by(self, other: Evidence) -> Evidence:
        """Return the evidence of this and, independently given the hypothesis, of another.

        Raises:
            TooManyKindsError: Their pairs are too many.
        """
        if self.chances.shape[1] * other.chances.shape[1] > 10 * MOST_KINDS:
            raise TooManyKindsError("sequences of reports")
        pairs = self.chances[:, :, None] * other.chances[:, None, :]
        return Evidence.of_chances(pairs.reshape(len(self.chances), -1))

    @property
    def success(self) -> float:
        """Chance that the likeliest hypothesis is the true one, if all are equally likely."""
        return float(self.chances.max(axis=0).mean() * self.chances.shape[1] / len(self.chances))

    @property
    def total_variation(self) -> float:
        """Largest total variation distance between two hypotheses."""
        pairs = itertools.combinations(self.chances, 2)
        return max(float(np.abs(one - other).sum()) / 2 for one, other in pairs)


def _subset_chances(oracle: SubsetSelection, num_values: int) -> Floats:
    if num_values > MOST_VALUES_OF_SUBSETS:
        raise TooManyKindsError(f"2**{num_values} kinds of reports")
    size, subset = oracle.domain_size, oracle.d
    containing, lacking = oracle.p, 1 - oracle.p
    own = math.comb(size - 1, subset - 1), math.comb(size - 1, subset)
    patterns = np.array(list(itertools.product((False, True), repeat=num_values)))
    held = patterns.sum(axis=1)
    # Ratios of whole numbers: a domain may have more subsets than a double counts.
    ways = [
        [_ratio(size - num_values, subset - int(j), each) for each in own]
        for j in range(num_values + 1)
    ]
    of_pattern = np.array(ways)[held]
    chances = np.where(patterns, of_pattern[:, :1] * containing, of_pattern[:, 1:] * lacking)
    return np.asarray(chances.T, dtype=np.float64)


def _ratio(from_values: int, members: int, ways: int) -> float:
    return math.comb(from_values, members) / ways if 0 <= members <= from_values else 0.0
