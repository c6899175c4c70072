"""The blanket of Subset Selection, split among the different contributions of one client.

A client changes up to B contributions. Words among them differ from each other; dummies are alike,
unless each of a client's dummies is a value of its own. Of each report of others that is blanket,
the reader is told a label from 1 to B, drawn by a rule that prefers labels whose values the subset
contains; the client's i-th report has label i. That is more than the shuffle shows, and labels are
B shuffles: what each of them loses says `LabelBlanket`. How many reports a label has does not
depend on the client's data, but is random: `fewest_of_label`.

The proof, with what `first`, `second` and `rest` are, stands in docs/accounting.md, section 4;
`fedhh.accounting.bounds.label_domains` computes them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from fedhh.accounting.bounds.pair_lattice import (
    LARGEST_LOG_ODDS,
    PairLattice,
    chords,
    left_of,
    spacing,
)
from fedhh.accounting.bounds.shuffle_bound import ShuffleBound
from fedhh.accounting.sources import LABELS
from fedhh.privacy_loss.binomial import lattice, lower_tail


@dataclass(frozen=True, kw_only=True)
class LabelBlanket(ShuffleBound):
    """What the reports with one label show of the client's contribution v or v'.

    ``num_reports`` are those that a label is given to, whether or not they turn out as blanket, the
    client's included. With E = e**eps0, each is blanket and contains v only with probability
    ``one * first``, v' only with ``one * second``, neither with ``neither * rest``. The client's
    own contains v only with probability ``E * one``, v' only with ``one`` (or the other way round),
    neither with ``neither`` = 1 - (E + 1) * ``one``.

    With x = e**epsilon, (1) of docs/accounting.md holds for V of (E - x) / first, (1 - x E) /
    second, (1 - x) / rest with these probabilities, else 0. It is summed as `Blanket` is.

    Attributes:
        one, neither: The client's own report, as above.
        first, second, rest: Others', relative to it; above 0.
        changes: Contributions that a client may change at most, in the domains that this is for.
    """

    one: float
    neither: float
    first: float
    second: float
    rest: float
    changes: int
    tolerance: float = 2e-5

    name: ClassVar[str] = "labels"
    theorem: ClassVar[str] = LABELS
    assumptions: ClassVar[str] = (
        "every report is Subset Selection's, independent, shuffled; the words of a client's "
        "contributions differ"
    )

    @cached_property
    def _lattice(self) -> PairLattice:
        trials = self.num_reports - 1
        chance = self.one * (self.first + self.second)
        pairs = lattice(trials, chance, tolerance=self.tolerance)
        left = left_of(pairs, trials)
        others, weights = np.zeros((left.size, 1)), np.ones((left.size, 1))
        if self.neither > 0:
            others, weights = chords(
                left,
                min(1.0, self.neither * self.rest / (1 - chance)),
                slope=LARGEST_LOG_ODDS / self.num_reports / self.rest,
                spacing=spacing(self.tolerance),
            )
        return PairLattice.of(pairs, trials, others=others / self.rest, weights=weights)

    def _delta(self, epsilon: float) -> float:
        ways = {(self.first, self.second), (self.second, self.first)}
        return max(self._one_way(epsilon, *way) for way in ways)

    def _one_way(self, epsilon: float, first: float, second: float) -> float:
        growth, x = math.exp(self.local_epsilon), math.exp(epsilon)
        up, down = (growth - x) / first, (x * growth - 1) / second
        inside = self._lattice.mean_excess(
            share=down / (up + down), per_other=(x - 1) / (up + down), p=first / (first + second)
        )
        # Left of the lattice, a mean of T values is at most their maximum.
        below = self._lattice.below
        return self.one * (first + second) * ((up + down) * inside + below * up)


def fewest_of_label(num_reports: int, labels: int, *, chance: float) -> int:
    """Return how many of ``num_reports`` reports every label has, but for a small chance.

    Labels are independent and uniform; so each has a binomial number of reports.

    Args:
        num_reports: At least 1.
        labels: At least 1.
        chance: Most that the probability of fewer may be, of any label; in (0, 1).

    Returns:
        At least 0.
    """
    low, high = 0, num_reports // labels
    if labels == 1:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if labels * float(lower_tail(middle - 1, num_reports, 1 / labels)) <= chance:
            low = middle
        else:
            high = middle - 1
    return low


@dataclass(frozen=True, kw_only=True)
class WorstLabel(ShuffleBound):
    """The largest of some bounds: of several domains that a layer may have.

    Attributes:
        bounds: At least one, with the same local epsilon and number of reports.
    """

    bounds: tuple[LabelBlanket, ...]
    tolerance: float = 2e-5

    name: ClassVar[str] = LabelBlanket.name
    theorem: ClassVar[str] = LabelBlanket.theorem
    assumptions: ClassVar[str] = LabelBlanket.assumptions

    @cached_property
    def _evaluated(self) -> list[LabelBlanket]:
        return [replace(each, tolerance=self.tolerance) for each in self.bounds]

    def _delta(self, epsilon: float) -> float:
        return max(each.delta(epsilon) for each in self._evaluated)
