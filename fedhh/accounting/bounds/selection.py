"""The law of Subset Selection in plain numbers: the one place where accounting computes p and q."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fedhh.accounting.bounds.shuffle_bound import check_local_epsilon
from fedhh.validation import InputError, require_at_least, require_between


def paper_subset_size(local_epsilon: float, domain_size: int) -> int:
    """Return ceil(s / (e**local_epsilon + 1)), at least 1 and below s (Sun et al. 2024, Alg. 1)."""
    check_local_epsilon(local_epsilon)
    _check_domain_size(domain_size)
    best = domain_size / (math.exp(local_epsilon) + 1)
    # An e**local_epsilon that is a whole number up to rounding must not push the ceiling up by one.
    return min(max(math.ceil(best * (1 - 1e-12)), 1), domain_size - 1)


def _check_domain_size(domain_size: int) -> None:
    """Raise InputError unless there are 2 to 2**53 values: more are not whole floats."""
    require_between(2, 2**53, domain_size=domain_size)
    require_at_least(2, domain_size=domain_size)


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Subset Selection on ``domain_size`` values s with reports of ``subset_size`` values d.

    Attributes:
        local_epsilon: Privacy of one report.
        domain_size: Number of values s, the dummy included, at least 2.
        subset_size: Values d in a report, from 1 to s - 1.
    """

    local_epsilon: float
    domain_size: int
    subset_size: int

    def __post_init__(self) -> None:
        check_local_epsilon(self.local_epsilon)
        _check_domain_size(self.domain_size)
        require_at_least(1, subset_size=self.subset_size)
        if self.subset_size >= self.domain_size:
            raise InputError(
                f"Expected subset_size < domain_size={self.domain_size}, got "
                f"subset_size={self.subset_size!r}."
            )

    @property
    def p(self) -> float:
        """Probability that a report contains the value its client holds."""
        with_value = self.subset_size * math.exp(self.local_epsilon)
        return with_value / (with_value + self.domain_size - self.subset_size)

    @property
    def q(self) -> float:
        """Probability that a report contains a given value its client does not hold."""
        return (self.subset_size - self.p) / (self.domain_size - 1)

    @property
    def blanket(self) -> float:
        """Probability g = (1 - p) s / (s - d) that a report is a uniform subset of all values.

        A report of Subset Selection is a mixture: with probability g it is uniform and says
        nothing about the value, otherwise it contains the value.
        """
        rest = self.domain_size - self.subset_size
        return self.domain_size / (self.subset_size * math.exp(self.local_epsilon) + rest)

    def uniform_pattern(self, *held: bool) -> float:
        """Return the probability that a uniform d-subset contains exactly the given values.

        Args:
            *held: One flag for each of up to s distinct values: in the subset or not.
        """
        probability = 1.0
        inside, outside = self.subset_size, self.domain_size - self.subset_size
        for flag in held:
            probability *= (inside if flag else outside) / (inside + outside)
            inside, outside = inside - flag, outside - (not flag)
        return max(probability, 0.0)
