"""Subset Selection in plain numbers: its p and q, and its blanket, of one domain or of several."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedhh.accounting.bounds.blanket import Blanket
from fedhh.accounting.bounds.shuffle_bound import check_local_epsilon
from fedhh.arrays import Floats
from fedhh.validation import InputError, require_at_least, require_between

_MOST_DOMAINS = 20_000_000
_ROUNDING = 1e-12


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


def subset_selection_blanket(
    *, local_epsilon: float, num_reports: int, domain_size: int, subset_size: int
) -> Blanket:
    """Return the blanket bound of Subset Selection with d = ``subset_size`` of s values.

    Args:
        local_epsilon: Privacy of one report, from 0.1 to 16.
        num_reports: Reports in one shuffle, the victim's included, from 2 to 10**9.
        domain_size: s, the dummy included.
        subset_size: d, from 1 to s - 1.
    """
    distribution = Selection(
        local_epsilon=local_epsilon, domain_size=domain_size, subset_size=subset_size
    )
    return Blanket(
        local_epsilon=local_epsilon,
        num_reports=num_reports,
        one=distribution.blanket * distribution.uniform_pattern(True, False),
        both=math.exp(local_epsilon)
        * distribution.blanket
        * distribution.uniform_pattern(True, True),
        neither=distribution.blanket * distribution.uniform_pattern(False, False),
    )


def reachable_blanket(
    *, local_epsilon: float, num_reports: int, smallest_domain: int, largest_domain: int
) -> Blanket:
    """Return a blanket that dominates that of every domain size in a range.

    It holds before a run, whose later domains earlier votes decide. d is either neighbor of
    s / (e**eps0 + 1), so it covers both rules of `SubsetSelection.subset_size`.

    Args:
        local_epsilon: Privacy of one report, from 0.1 to 16.
        num_reports: Fewest reports in one shuffle, from 2 to 10**9.
        smallest_domain: Fewest values, the dummy included, at least 2.
        largest_domain: Most values.
    """
    growth = math.exp(local_epsilon)
    one, one_or_both = 1 / (growth + 1), 1.0
    stop = math.ceil(4 * max(smallest_domain, 4 * growth))
    # In wider ranges, the pair that dominates every blanket (docs/accounting.md, section 2).
    while min(stop, largest_domain) - smallest_domain < _MOST_DOMAINS:
        sizes = _telling_sizes(growth, smallest_domain, min(stop, largest_domain))
        best = sizes / (growth + 1)
        ones, sums = [], []
        for rounded in (np.floor(best), np.ceil(best)):
            members = np.clip(rounded, 1, sizes - 1)
            weight = members / ((members * growth + sizes - members) * (sizes - 1))
            ones.append(weight * (sizes - members))
            sums.append((growth + 1) * ones[-1] + growth * weight * (members - 1))
        largest = float(np.max(ones)), float(np.max(sums))
        if stop >= largest_domain or all(map(operator.ge, largest, _beyond(growth, stop))):
            one = largest[0] * (1 + _ROUNDING)
            one_or_both = min(1.0, largest[1] * (1 + _ROUNDING))
            break
        stop *= 4
    return Blanket(
        local_epsilon=local_epsilon,
        num_reports=num_reports,
        one=one,
        both=max(0.0, one_or_both - (growth + 1) * one),
        neither=max(0.0, 1 - one_or_both),
    )


def _telling_sizes(growth: float, smallest: int, largest: int) -> Floats:
    """Return domain sizes of a range among which each rule's worst ones are.

    d is the same for all s between two multiples of E + 1. There, with c = d (E - 1), both what
    `reachable_blanket` maximizes are (u s - v) / ((s + c)(s - 1)) up to a factor: u = 1 and v = d
    for ``one``, u = E + 1 and v = d + E for the other. The numerator of the derivative,
    -u s**2 + 2 v s + v (c - 1) - u c, is concave in s, so that a largest value lies at an end of
    the range of s or at the larger root.

    Args:
        growth: E.
        smallest: Fewest values.
        largest: Most values.
    """
    steps = np.arange(math.floor(smallest / (growth + 1)), math.ceil(largest / (growth + 1)) + 1)
    if 8 * len(steps) >= largest - smallest:
        return np.arange(smallest, largest + 1, dtype=np.float64)
    near = [np.floor(steps * (growth + 1)) + offset for offset in (-1, 0, 1, 2)]
    members = np.maximum(steps, 1)
    for u, v in ((1.0, members), (growth + 1, members + growth)):
        c = members * (growth - 1)
        root = (v + np.sqrt(np.maximum(v * v + u * (v * (c - 1) - u * c), 0))) / u
        near += [np.floor(root), np.floor(root) + 1]
    every = np.concatenate([*near, [smallest, largest]])
    return np.asarray(np.clip(every, smallest, largest))


def _beyond(growth: float, size: int) -> tuple[float, float]:
    """Return what ``one`` and ``(E + 1) one + both`` are at most of domains beyond a size.

    With r = s / d and u = 1 / d, the one is c / (E - 1 + r), the other (E + c) / (E - 1 + r), where
    c = 1 - (1 - u) / (r - u) rises with r and u. For both rules of d, r / (E + 1) lies between
    1 - u and 1 / (1 - u).

    Args:
        growth: E.
        size: Above 2 (E + 1).
    """
    u = 1 / (size / (growth + 1) - 1)
    low, high = (1 - u) * (growth + 1), (growth + 1) / (1 - u)
    c = 1 - (1 - u) / (high - u)
    return c / (growth - 1 + low), (growth + c) / (growth - 1 + low)


def dominating_blanket(blankets: Sequence[Blanket]) -> Blanket:
    """Return a blanket whose delta is at least that of each given one, at every epsilon.

    Why: delta is (1 / n) E[(V_1 + ... + V_n)_+] for independent V_i with values E - x and 1 - x E
    (probability ``one`` each), E (1 - x) (probability ``both`` / E), 1 - x (``neither``), else 0.
    Moving weight from ``neither`` to ``both``, or from either to ``one`` at the rate E + 1, spreads
    V_i out and keeps its mean 1 - x, so it increases the expectation. Fewer reports increase it
    too, since a mean of fewer terms is more spread out.

    Args:
        blankets: At least one, all at the same local epsilon.
    """
    growth = math.exp(blankets[0].local_epsilon)
    one = max(each.one for each in blankets)
    one_or_both = max(_one_or_both(each) for each in blankets)
    return Blanket(
        local_epsilon=blankets[0].local_epsilon,
        num_reports=min(each.num_reports for each in blankets),
        one=one,
        both=max(0.0, one_or_both - (growth + 1) * one),
        neither=max(0.0, 1 - one_or_both),
        tolerance=max(each.tolerance for each in blankets),
    )


def worst_blankets(blankets: Sequence[Blanket]) -> list[Blanket]:
    """Return those that no other one dominates, by the order of `dominating_blanket`.

    Their largest epsilon is the largest of all. The first is likely to be the worst.

    Args:
        blankets: At least one, all at the same local epsilon.
    """
    ordered = sorted(
        blankets, key=lambda each: (each.one, _one_or_both(each), -each.num_reports), reverse=True
    )
    kept: list[Blanket] = []
    for each in ordered:
        dominated = any(
            other.num_reports <= each.num_reports
            and other.one >= each.one
            and _one_or_both(other) >= _one_or_both(each)
            for other in kept
        )
        if not dominated:
            kept.append(each)
    return kept


def _one_or_both(blanket: Blanket) -> float:
    """Return (E + 1) one + both, the weight that is not on ``neither``."""
    return (math.exp(blanket.local_epsilon) + 1) * blanket.one + blanket.both
