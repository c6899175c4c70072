"""The privacy blanket of Subset Selection: a shuffle bound about twice as good as clones.

A report of Subset Selection is, with probability g, a uniform subset of all s values and
independent of the input. Tell the reader which reports these are and drop the others (they say
nothing about the victim): the victim's report hides among the uniform ones. Whether it came from
v or v' shows only in which of the two values it contains. Count the n reports as: a with v only,
b with v' only, c with both, e with neither, and the rest dropped,

    (a, b, c, e, rest) ~ Multinomial(n; g w10, g w10, g w11, g w00, 1 - g),

where w is the distribution of a uniform subset. With E = e**eps0 and x = e**epsilon, Bayes' rule
gives

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
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from fedhh.accounting.bounds.pair_lattice import (
    LARGEST_LOG_ODDS,
    PairLattice,
    chords,
    left_of,
    spacing,
)
from fedhh.accounting.bounds.shuffle_bound import ShuffleBound
from fedhh.accounting.sources import BLANKET
from fedhh.arrays import Floats
from fedhh.privacy_loss.binomial import lattice, lattice_of_sum, window

_MOST_SUMMED = 200_000
"""Mean of a T that is summed at most: windows of its binomials are convolved directly."""


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

    @property
    def spread(self) -> Blanket:
        """A law above this one whose ``both`` is 0, since its weight counts as that of ``one``.

        It is summed in a sixth of the time, and hardly larger where E is above 100.
        """
        one = self.one + self.both / (math.exp(self.local_epsilon) + 1)
        return replace(self, one=one, both=0.0)

    @cached_property
    def _lattice(self) -> PairLattice:
        growth = math.exp(self.local_epsilon)
        trials = self.num_reports - 1
        pairs = lattice(trials, 2 * self.one, tolerance=self.tolerance)
        rest = left_of(pairs, trials)
        outside = 1 - 2 * self.one
        slope = LARGEST_LOG_ODDS / max(1.0, self.num_reports * (self.both + self.neither))
        apart = spacing(self.tolerance)
        both_nodes, both_weights = chords(
            rest, self.both / growth / outside, slope=slope * growth, spacing=apart
        )
        left, row_of = np.unique(rest[:, None] - both_nodes, return_inverse=True)
        nodes, weights = chords(
            left, self.neither / (outside - self.both / growth), slope=slope, spacing=apart
        )
        row_of = row_of.reshape(both_nodes.shape)
        shape = (rest.size, -1)
        others = growth * both_nodes[:, :, None] + nodes[row_of]
        others[-1] = 0.0
        return PairLattice.of(
            pairs,
            trials,
            others=others.reshape(shape),
            weights=(both_weights[:, :, None] * weights[row_of]).reshape(shape),
        )

    def _deltas(self, epsilons: Floats) -> Floats:
        pairs = self._lattice
        growth, x = math.exp(self.local_epsilon), np.exp(epsilons)
        tilt = np.tanh(epsilons / 2) / math.expm1(self.local_epsilon)
        inside = pairs.mean_excesses(above_half=tilt * (growth + 1) / 2, per_other=tilt)
        slope = math.expm1(self.local_epsilon) * (1 + x)
        # Left of the lattice, a mean of T values is at most their maximum E - x.
        return np.asarray(2 * self.one * (slope * inside + pairs.below * (growth - x)))


@dataclass(frozen=True, kw_only=True)
class SlotwiseBlanket(Blanket):
    """The bound of reports that have several laws: of an epoch whose rounds have their own.

    (1 / n) E[(V_1 + ... + V_n)_+] for independent V_i, n_j of them of the j-th law
    (docs/accounting.md, section 14). ``one`` and ``neither`` are means over all reports.

    T is now a sum of binomials. Its bias gives one trial of some law to the victim: here each law
    lacks one, and as many more are allowed for at the upper end of a bin. Given T, the trials of e
    are those left where T took the likeliest. Of sums of independent trials of one mean, that with
    equal chances is largest in convex order (Hoeffding 1956), and what is averaged is convex in e.

    Attributes:
        laws: Of reports whose ``both`` is 0, with the numbers of these reports.
        above: The bound by one law above each, which is the smaller one where reports are few.
    """

    laws: tuple[Blanket, ...]
    above: Blanket

    @classmethod
    def of(cls, laws: Sequence[Blanket], *, above: Blanket) -> SlotwiseBlanket:
        """Return the bound of so many reports of each law, all at the same local epsilon.

        Args:
            laws: With two reports each at least.
            above: A law above each, of all reports.
        """
        laws = tuple(each.spread for each in laws)
        num_reports = sum(each.num_reports for each in laws)
        return cls(
            local_epsilon=above.local_epsilon,
            num_reports=num_reports,
            one=sum(each.num_reports * each.one for each in laws) / num_reports,
            both=0.0,
            neither=sum(each.num_reports * each.neither for each in laws) / num_reports,
            laws=laws,
            above=above,
        )

    @staticmethod
    def suits(laws: Sequence[Blanket]) -> bool:
        """Return whether there are several laws, of reports whose T takes little time to sum."""
        reports = [each.num_reports for each in laws]
        varied = max(n * each.one for n, each in zip(reports, laws, strict=True))
        return len(laws) > 1 and min(reports) > 1 and varied < _MOST_SUMMED

    def among(self, num_reports: int) -> Self:
        """Return the bound itself: its laws say how many reports they are of."""
        return self

    @cached_property
    def _lattice(self) -> PairLattice:
        pairs = [(each.num_reports - 1, 2 * each.one) for each in self.laws]
        summed = lattice_of_sum(pairs, tolerance=self.tolerance)
        summed = replace(summed, last=summed.last + len(pairs) - 1)
        chances = [each.neither / (1 - 2 * each.one) for each in self.laws]
        windows = [window(trials, p) for trials, p in pairs]
        taken = summed.last - sum(low for low, _ in windows)
        left, mean = np.zeros_like(taken), np.zeros_like(taken)
        for i in np.argsort(chances)[::-1]:
            low, high = windows[i]
            here = np.minimum(taken, high - low)
            taken = taken - here
            left += pairs[i][0] - low - here
            mean += (pairs[i][0] - low - here) * chances[i]
        nodes, weights = chords(
            np.append(left, 0.0),
            np.append(mean / np.maximum(left, 1), 0.0),
            slope=LARGEST_LOG_ODDS / max(1.0, self.num_reports * self.neither),
            spacing=spacing(self.tolerance),
        )
        return PairLattice.of(summed, self.num_reports - 1, others=nodes, weights=weights)

    def _deltas(self, epsilons: Floats) -> Floats:
        return np.minimum(super()._deltas(epsilons), self.above._deltas(epsilons))
