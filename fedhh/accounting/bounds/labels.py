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

from fedhh.accounting.bounds.blanket import chords
from fedhh.accounting.bounds.shuffle_bound import ShuffleBound
from fedhh.accounting.sources import LABELS
from fedhh.privacy_loss.binomial import Floats, binomial_excess, lattice, lower_tail

_LARGEST_LOG_ODDS = 32.0
_ROWS_AT_ONCE = 400_000


@dataclass(frozen=True, kw_only=True)
class _Counts:
    """What does not depend on epsilon: bins of T, the label's subsets with one of v, v'.

    Attributes:
        smallest, largest: ``(m, 1)``, range of T in each bin.
        probability: ``(m,)``, of each bin.
        others: ``(m, j)``, nodes of the weight of subsets with neither value.
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
    def _counts(self) -> _Counts:
        trials = self.num_reports - 1
        chance = self.one * (self.first + self.second)
        pairs = lattice(trials, chance, tolerance=self.tolerance)
        # The last row stands for all counts to the right of the lattice, with nothing else there.
        left = np.append(trials - pairs.last, 0.0)
        others, weights = np.zeros((left.size, 1)), np.ones((left.size, 1))
        if self.neither > 0:
            slope = _LARGEST_LOG_ODDS / self.num_reports / self.rest
            others, weights = chords(
                left,
                min(1.0, self.neither * self.rest / (1 - chance)),
                slope=slope,
                spacing=min(0.75, max(0.25, 50 * math.sqrt(self.tolerance))),
            )
            others = others / self.rest
        return _Counts(
            smallest=np.append(pairs.first, pairs.last[-1] + 1)[:, None] + 1,
            largest=np.append(pairs.last, trials)[:, None] + 1,
            probability=np.append(pairs.probability, pairs.above),
            others=others,
            weights=weights,
            below=pairs.below,
        )

    def _delta(self, epsilon: float) -> float:
        ways = {(self.first, self.second), (self.second, self.first)}
        return max(self._one_way(epsilon, *way) for way in ways)

    def _one_way(self, epsilon: float, first: float, second: float) -> float:
        counts, growth, x = self._counts, math.exp(self.local_epsilon), math.exp(epsilon)
        up, down = (growth - x) / first, (x * growth - 1) / second
        rows = max(1, _ROWS_AT_ONCE // counts.others.shape[1])
        inside = 0.0
        for start in range(0, counts.probability.size, rows):
            part = slice(start, start + rows)
            total = counts.smallest[part]
            weight = (x - 1) * counts.others[part] / counts.largest[part]
            above = binomial_excess(
                total, total * (down + weight) / (up + down), first / (first + second)
            )
            mean = np.einsum("ij,ij->i", counts.weights[part], above) / total[:, 0]
            inside += float(np.dot(counts.probability[part], mean))
        # Left of the lattice, a mean of T values is at most their maximum.
        return self.one * (first + second) * ((up + down) * inside + counts.below * up)


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
