"""How many reports tell a pair of values apart, in bins, and what lies beside them, in nodes.

Bounds of Subset Selection's blanket are expectations over T, the reports that contain just one of
two values v, v', and over a weight K of the others. Given T, those that contain v are binomial;
what is averaged is convex and falling in K, so that chords between nodes of K bound it from above
(Edmundson, Madansky). A bin of T is taken at its smallest count for a mean over T reports, which
falls with T, and at its largest for K / T.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedhh.arrays import Floats
from fedhh.privacy_loss.binomial import (
    Lattice,
    binomial_excess,
    excess_of_coins,
    lower_tail,
    pmf,
    width_of_coins,
)

LARGEST_LOG_ODDS = 32.0
"""-ln of the smallest delta, about the slope of ln delta in ln(number of blanket reports)."""
_ROWS_AT_ONCE = 400_000
_CELLS_AT_ONCE = 1 << 15
"""Of a table, which then stay in a processor's cache."""
_LARGEST_TABLE = 1 << 21
"""Excesses that a lattice keeps at most."""
_ROUNDED_DOWN = 1 - 2e-15
"""Of a threshold: next to T, where hardly anything exceeds it, a unit in the last place counts."""
_RIGHT = 4.0
"""Standard deviations right of the mean that nodes cover; a falling function needs no more."""
_LEFT = 9.0
"""Standard deviations left of the mean, of the tilted distribution: what lies further left
has probability e**-40, and the chord from there to 0 is harmless unless f grows by more."""
_NOTHING = 1e-80
"""A probability, or a standard deviation, that is as good as 0."""


@dataclass(frozen=True, kw_only=True)
class PairLattice:
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

    @classmethod
    def of(cls, pairs: Lattice, trials: int, *, others: Floats, weights: Floats) -> PairLattice:
        """Return the lattice of T - 1 ~ Bin(trials, p), cut into ``pairs``.

        ``others`` and ``weights`` have a row for each number of `left_of`.
        """
        return cls(
            smallest=np.append(pairs.first, pairs.last[-1] + 1)[:, None] + 1,
            largest=np.append(pairs.last, trials)[:, None] + 1,
            probability=np.append(pairs.probability, pairs.above),
            others=others,
            weights=weights,
            below=pairs.below,
        )

    def mean_excesses(self, *, above_half: Floats, per_other: Floats) -> Floats:
        """Return ``(k,)`` upper bounds on the expectations, within the bins, of excesses.

        Of X ~ Bin(T, 1/2), E[(X - T / 2 - T above_half - K per_other)_+] / T, at the counts of the
        bins.

        Args:
            above_half: ``(k,)``, at least 0.
            per_other: ``(k,)``, at least 0.
        """
        cells = self._cells
        if cells is None:
            return np.array(list(map(self._by_tails, above_half, per_other)))
        found: Floats = np.empty(len(above_half))
        at_once = max(1, _CELLS_AT_ONCE // cells.weights.size)
        for start in range(0, len(found), at_once):
            part = slice(start, start + at_once)
            found[part] = cells.means(above_half[part, None], per_other[part, None])
        return found

    def _by_tails(self, above_half: float, per_other: float) -> float:
        """Return one mean of `mean_excesses`, by a tail for each threshold."""
        rows = max(1, _ROWS_AT_ONCE // self.others.shape[1])
        inside = 0.0
        for start in range(0, self.probability.size, rows):
            part = slice(start, start + rows)
            total = self.smallest[part]
            threshold = total * (0.5 + above_half) + per_other * self._others_of_smallest[part]
            excess = binomial_excess(total, threshold * _ROUNDED_DOWN)
            mean = np.einsum("ij,ij->i", self.weights[part], excess)
            inside += float(np.dot(self.probability[part], mean / total[:, 0]))
        return inside

    @cached_property
    def _others_of_smallest(self) -> Floats:
        """Nodes of K at the smallest T of a bin, where K / T is that of the largest."""
        return self.smallest * (self.others / self.largest)

    @cached_property
    def _cells(self) -> _Cells | None:
        """The nodes that have a weight, or None if their excesses are too much to keep."""
        if self.smallest.size * width_of_coins(self.smallest) > _LARGEST_TABLE:
            return None
        probability = self.weights * self.probability[:, None]
        row, node = np.nonzero(probability > _NOTHING)
        total = self.smallest[row, 0]
        table = excess_of_coins(self.smallest)
        return _Cells(
            totals=total * _ROUNDED_DOWN,
            halves=(total / 2 - np.floor(total / 2)) * _ROUNDED_DOWN,
            others=self._others_of_smallest[row, node] * _ROUNDED_DOWN,
            weights=probability[row, node] / total,
            left_out=float(probability[probability <= _NOTHING].sum()),
            first=(row * table.shape[1]).astype(np.float64),
            width=table.shape[1],
            table=np.append(table, 0.0),
        )


@dataclass(frozen=True, kw_only=True)
class _Cells:
    """Nodes of all bins, ``(c,)`` each; numbers that thresholds are made of are rounded down.

    Attributes:
        totals: T.
        halves: T / 2 less its whole part.
        others: K.
        weights: Their weights, divided by T.
        left_out: The sum of all weights that are next to nothing, not divided.
        first: Where the row of the table starts that is about T.
        width: Of the rows.
        table: `excess_of_coins` of each T, row after row, and a 0.
    """

    totals: Floats
    halves: Floats
    others: Floats
    weights: Floats
    left_out: float
    first: Floats
    width: int
    table: Floats

    def means(self, above_half: Floats, per_other: Floats) -> Floats:
        """Return ``(k,)`` means of excesses, which are linear between whole thresholds.

        Args:
            above_half: ``(k, 1)``, as of `PairLattice.mean_excesses`.
            per_other: ``(k, 1)``.
        """
        thresholds = above_half * self.totals
        thresholds += per_other * self.others
        thresholds += self.halves
        # Excesses fall: those of the last column hold further right, too.
        np.minimum(thresholds, self.width - 1.0, out=thresholds)
        whole = np.floor(thresholds)
        thresholds -= whole
        whole += self.first
        place = whole.astype(np.intp)
        right = self.table[1:].take(place)
        right *= thresholds
        np.subtract(1.0, thresholds, out=thresholds)
        thresholds *= self.table.take(place)
        right += thresholds
        means: Floats = np.einsum("kc,c->k", right, self.weights)
        return means + self.left_out


def left_of(pairs: Lattice, trials: int) -> Floats:
    """Return how many reports are left for K in each bin of T, ``(m,)``.

    The last is 0, and stands for all counts to the right of the lattice.
    """
    return np.append(trials - pairs.last, 0.0)


def spacing(tolerance: float) -> float:
    """Return the distance of nodes for `chords` that suits a lattice's tolerance."""
    return min(0.75, max(0.25, 50 * math.sqrt(tolerance)))


def chords(
    trials: Floats, p: float | Floats, *, slope: float, spacing: float = 0.25
) -> tuple[Floats, Floats]:
    """Return nodes and weights with E f(X) <= sum of weights * f(nodes) for convex falling f.

    X ~ Bin(trials, p), one row for each number of trials. Between nodes, f is replaced by its
    chord; right of the last node by its value there.

    Args:
        trials: ``(m,) float64``, whole numbers >= 0.
        p: Success probability in [0, 1), of all rows or of each.
        slope: Largest expected |d ln f / dX| at the mean: where it is large, nodes are dense, and
            more of them lie to the left. It matters for tightness only.
        spacing: Distance of nodes, in units over which ln f changes by 1, but at most two
            standard deviations. The bound is larger by about ``spacing**2 / 12``, relatively.

    Returns:
        ``(m, j) float64`` each: whole numbers, non-decreasing along a row, 0 first; non-negative
        weights, rows summing to 1.
    """
    # Of no success at all there is no logarithm.
    p = np.broadcast_to(np.maximum(p, np.finfo(np.float64).tiny), trials.shape)
    mean = trials * p
    deviation = np.sqrt(mean * (1 - p))
    largest = float(deviation.max())
    if largest < _NOTHING:
        return np.zeros((mean.size, 1)), np.ones((mean.size, 1))
    tilt = slope * largest
    step = max(1.0, np.floor(largest * min(2.0, spacing / max(tilt, 1e-9))))
    low = np.maximum(0.0, np.floor(mean - (_LEFT + tilt) * deviation - 1))
    high = np.minimum(trials, np.ceil(mean + _RIGHT * deviation + 1))
    count = int(np.ceil((high - low).max() / step)) + 1
    dense = np.minimum(low[:, None] + step * np.arange(count), high[:, None])
    nodes = np.concatenate([np.zeros((trials.size, 1)), dense], axis=1)
    return nodes, _weights(nodes, trials[:, None], p[:, None])


def _weights(nodes: Floats, trials: Floats, p: Floats) -> Floats:
    """Return what each node receives when every count is split between its two neighbors."""
    # Without one trial, whose success makes the rest of a partial mean.
    fewer = lower_tail(nodes - 2, trials - 1, p)
    below = fewer + (1 - p) * pmf(nodes - 1, trials - 1, p)
    partial_mean = trials * p * fewer
    probability = np.maximum(np.diff(below, axis=1), 0.0)
    width = np.diff(nodes, axis=1)
    offset = np.diff(partial_mean, axis=1) - nodes[:, :-1] * probability
    to_right = np.divide(offset, width, out=np.zeros_like(width), where=width > 0)
    to_right = np.clip(to_right, 0.0, probability)
    weights = np.zeros_like(nodes)
    weights[:, 1:] += to_right
    weights[:, :-1] += probability - to_right
    weights[:, -1] += np.maximum(1 - below[:, -1], 0.0)
    return weights
