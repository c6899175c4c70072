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
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from fedhh.accounting.bounds.shuffle_bound import ShuffleBound
from fedhh.accounting.sources import BLANKET
from fedhh.privacy_loss.binomial import Floats, binomial_excess, lattice, lower_tail

_ROWS_AT_ONCE = 400_000
_LARGEST_LOG_ODDS = 32.0
"""-ln of the smallest delta, about the slope of ln delta in ln(number of blanket reports)."""
_RIGHT = 4.0
"""Standard deviations right of the mean that nodes cover; a falling function needs no more."""
_LEFT = 9.0
"""Standard deviations left of the mean, of the tilted distribution: what lies further left
has probability e**-40, and the chord from there to 0 is harmless unless f grows by more."""


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
        both_nodes, both_weights = chords(
            rest, self.both / growth / outside, slope=slope * growth, spacing=spacing
        )
        left, row_of = np.unique(rest[:, None] - both_nodes, return_inverse=True)
        nodes, weights = chords(
            left, self.neither / (outside - self.both / growth), slope=slope, spacing=spacing
        )
        row_of = row_of.reshape(both_nodes.shape)
        shape = (rest.size, -1)
        others = growth * both_nodes[:, :, None] + nodes[row_of]
        others[-1] = 0.0
        return _PairLattice(
            smallest=np.append(pairs.first, pairs.last[-1] + 1)[:, None] + 1,
            largest=np.append(pairs.last, trials)[:, None] + 1,
            probability=np.append(pairs.probability, pairs.above),
            others=others.reshape(shape),
            weights=(both_weights[:, :, None] * weights[row_of]).reshape(shape),
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
            excess = binomial_excess(total, total * (0.5 + tilt * drift))
            mean = np.einsum("ij,ij->i", pairs.weights[part], excess) / total[:, 0]
            inside += float(np.dot(pairs.probability[part], mean))
        slope = math.expm1(self.local_epsilon) * (1 + x)
        # Left of the lattice, a mean of T values is at most their maximum E - x.
        return 2 * self.one * (slope * inside + pairs.below * (growth - x))


def chords(
    trials: Floats, p: float, *, slope: float, spacing: float = 0.25
) -> tuple[Floats, Floats]:
    """Return nodes and weights with E f(X) <= sum of weights * f(nodes) for convex falling f.

    X ~ Bin(trials, p), one row for each number of trials. Between nodes, f is replaced by its
    chord; right of the last node by its value there.

    Args:
        trials: ``(m,) float64``, whole numbers >= 0.
        p: Success probability in [0, 1].
        slope: Largest expected |d ln f / dX| at the mean: where it is large, nodes are dense, and
            more of them lie to the left. It matters for tightness only.
        spacing: Distance of nodes, in units over which ln f changes by 1, but at most two
            standard deviations. The bound is larger by about ``spacing**2 / 12``, relatively.

    Returns:
        ``(m, j) float64`` each: whole numbers, non-decreasing along a row, 0 first; non-negative
        weights, rows summing to 1.
    """
    mean = trials * p
    deviation = np.sqrt(mean * (1 - p))
    largest = float(deviation.max())
    tilt = slope * largest
    step = max(1.0, np.floor(largest * min(2.0, spacing / max(tilt, 1e-9))))
    low = np.maximum(0.0, np.floor(mean - (_LEFT + tilt) * deviation - 1))
    high = np.minimum(trials, np.ceil(mean + _RIGHT * deviation + 1))
    count = int(np.ceil((high - low).max() / step)) + 1
    dense = np.minimum(low[:, None] + step * np.arange(count), high[:, None])
    nodes = np.concatenate([np.zeros((trials.size, 1)), dense], axis=1)
    return nodes, _weights(nodes, trials[:, None], p)


def _weights(nodes: Floats, trials: Floats, p: float) -> Floats:
    """Return what each node receives when every count is split between its two neighbors."""
    below = lower_tail(nodes - 1, trials, p)
    partial_mean = trials * p * lower_tail(nodes - 2, trials - 1, p)
    probability = np.diff(below, axis=1)
    width = np.diff(nodes, axis=1)
    offset = np.diff(partial_mean, axis=1) - nodes[:, :-1] * probability
    to_right = np.divide(offset, width, out=np.zeros_like(width), where=width > 0)
    to_right = np.clip(to_right, 0.0, np.maximum(probability, 0.0))
    weights = np.zeros_like(nodes)
    weights[:, 1:] += to_right
    weights[:, :-1] += probability - to_right
    weights[:, -1] += 1 - below[:, -1]
    return weights
