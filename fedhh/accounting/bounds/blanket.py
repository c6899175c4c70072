"""The privacy blanket of Subset Selection: a shuffle bound about twice as good as clones.

A report of Subset Selection is, with probability g, a uniform subset of all s values and
independent of the input. Tell the reader which reports these are and drop the others (they say
nothing about the victim): the victim's report hides among the uniform ones. Whether it came from
v or v' shows only in which of the two values it contains. Count the n reports as: a with v only,
b with v' only, c with both, e with neither, and the rest dropped,

    (a, b, c, e, rest) ~ Multinomial(n; g w10, g w10, g w11, g w00, 1 - g),

where w is the law of a uniform subset. With E = e**eps0 and x = e**epsilon, Bayes' rule gives

    delta(epsilon) <= (1 / n) E[(E a + b + E c + e - x (a + E b + E c + e))_+].

After Balle, Bell, Gascon, Nissim (2019), "The privacy blanket of the shuffle model", CRYPTO,
arXiv:1903.02837, section 5, made exact for this randomizer.

How it is summed, always from above. Give the size of T = a + b the bias of drawing the victim:
T - 1 ~ Bin(n - 1, 2 g w10). Given T, a ~ Bin(T, 1/2), and what is inside (.)_+ falls in
K = E c + e, so the expectation is convex and falling in K; it is also convex in c once e is
averaged out. Chords between nodes (Edmundson, Madansky) therefore bound it from above, first over
c, then over e given c. A bin of T is taken at its smallest count for the mean over T, which falls
with T by the argument in `fedhh.accounting.bounds.clones`, and at its largest for K.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from fedhh.accounting.bounds.chords import chords
from fedhh.accounting.bounds.selection import Selection
from fedhh.accounting.bounds.shuffle_bound import ShuffleBound
from fedhh.accounting.sources import BLANKET
from fedhh.privacy_loss.binomial import Floats, fair_excess, lattice

_ROWS_AT_ONCE = 400_000
_MOST_DOMAINS = 20_000_000
_ROUNDING = 1e-12
_LARGEST_LOG_ODDS = 32.0
"""-ln of the smallest delta, about the slope of ln delta in ln(number of blanket reports)."""


@dataclass(frozen=True, kw_only=True)
class _PairLattice:
    """What does not depend on epsilon: bins of T, and nodes of K for each.

    Attributes:
        smallest, largest: ``(m, 1)``, range of T in each bin.
        probability: ``(m,)``, of each bin.
        others: ``(m, j)``, nodes of K.
        weights: ``(m, j)``, their weights, rows summing to 1.
        below: Probability of all T left of the bins.
    """

    smallest: Floats
    largest: Floats
    probability: Floats
    others: Floats
    weights: Floats
    below: float


@dataclass(frozen=True, kw_only=True)
class Blanket(ShuffleBound):
    """The bound above in terms of how a blanket report treats a pair of values.

    Attributes:
        one: g w10, the probability that a report is blanket and contains v but not v'.
        both: E g w11, e**eps0 times the probability that it contains both.
        neither: g w00, the probability that it contains neither.

    The three satisfy (E + 1) one + both + neither = 1: the victim's report is counted too.
    """

    one: float
    both: float
    neither: float
    tolerance: float = 2e-5

    name: ClassVar[str] = "blanket"
    theorem: ClassVar[str] = BLANKET
    assumptions: ClassVar[str] = "every report is Subset Selection's, independent, shuffled"

    @cached_property
    def _lattice(self) -> _PairLattice:
        growth = math.exp(self.local_epsilon)
        trials = self.num_reports - 1
        pairs = lattice(trials, 2 * self.one, tolerance=self.tolerance)
        # The last row stands for all counts to the right of the lattice, at K = 0.
        rest = np.append(trials - pairs.last, 0.0)
        outside = 1 - 2 * self.one
        slope = _LARGEST_LOG_ODDS / max(1.0, self.num_reports * (self.both + self.neither))
        spacing = min(0.75, max(0.25, 50 * math.sqrt(self.tolerance)))
        both = chords(rest, self.both / growth / outside, slope=slope * growth, spacing=spacing)
        left, row_of = np.unique(rest[:, None] - both.nodes, return_inverse=True)
        neither = chords(
            left, self.neither / (outside - self.both / growth), slope=slope, spacing=spacing
        )
        row_of = row_of.reshape(both.nodes.shape)
        shape = (rest.size, -1)
        others = growth * both.nodes[:, :, None] + neither.nodes[row_of]
        others[-1] = 0.0
        return _PairLattice(
            smallest=np.append(pairs.first, pairs.last[-1] + 1)[:, None] + 1,
            largest=np.append(pairs.last, trials)[:, None] + 1,
            probability=np.append(pairs.probability, pairs.above),
            others=others.reshape(shape),
            weights=(both.weights[:, :, None] * neither.weights[row_of]).reshape(shape),
            below=pairs.below,
        )

    def _delta(self, epsilon: float) -> float:
        pairs = self._lattice
        growth, x = math.exp(self.local_epsilon), math.exp(epsilon)
        tilt = math.tanh(epsilon / 2) / math.expm1(self.local_epsilon)
        rows = max(1, _ROWS_AT_ONCE // pairs.others.shape[1])
        inside = 0.0
        for start in range(0, pairs.probability.size, rows):
            part = slice(start, start + rows)
            total = pairs.smallest[part]
            drift = (growth + 1) / 2 + pairs.others[part] / pairs.largest[part]
            excess = fair_excess(total, total * (0.5 + tilt * drift))
            mean = np.einsum("ij,ij->i", pairs.weights[part], excess) / total[:, 0]
            inside += float(np.dot(pairs.probability[part], mean))
        slope = math.expm1(self.local_epsilon) * (1 + x)
        # Left of the lattice, a mean of T values is at most their maximum E - x.
        return 2 * self.one * (slope * inside + pairs.below * (growth - x))


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
    law = Selection(local_epsilon=local_epsilon, domain_size=domain_size, subset_size=subset_size)
    return Blanket(
        local_epsilon=local_epsilon,
        num_reports=num_reports,
        one=law.blanket * law.uniform_pattern(True, False),
        both=math.exp(local_epsilon) * law.blanket * law.uniform_pattern(True, True),
        neither=law.blanket * law.uniform_pattern(False, False),
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
    # In wider ranges, the pair that dominates every blanket (docs/accounting.md, section 2).
    if largest_domain - smallest_domain < _MOST_DOMAINS:
        sizes = _telling_sizes(growth, smallest_domain, largest_domain)
        best = sizes / (growth + 1)
        ones, sums = [], []
        for rounded in (np.floor(best), np.ceil(best)):
            members = np.clip(rounded, 1, sizes - 1)
            weight = members / ((members * growth + sizes - members) * (sizes - 1))
            ones.append(weight * (sizes - members))
            sums.append((growth + 1) * ones[-1] + growth * weight * (members - 1))
        one = float(np.max(ones)) * (1 + _ROUNDING)
        one_or_both = min(1.0, float(np.max(sums)) * (1 + _ROUNDING))
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
    return np.unique(np.clip(np.concatenate([*near, [smallest, largest]]), smallest, largest))


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
