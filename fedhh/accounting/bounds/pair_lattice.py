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
import numpy.typing as npt

from fedhh.arrays import Floats
from fedhh.privacy_loss.binomial import (
    Lattice,
    binomial_excess,
    excess_of_coins,
    lower_tail,
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
            thresholds = above_half[part, None] * cells.totals
            thresholds += per_other[part, None] * cells.others
            thresholds += cells.halves
            thresholds *= _ROUNDED_DOWN
            found[part] = np.einsum("kc,c->k", cells.excesses(thresholds), cells.weights)
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
        row, node = np.nonzero(self.weights * self.probability[:, None])
        total = self.smallest[row, 0]
        return _Cells(
            totals=total,
            halves=total / 2 - np.floor(total / 2),
            others=self._others_of_smallest[row, node],
            weights=self.weights[row, node] * self.probability[row] / total,
            rows=row,
            table=excess_of_coins(self.smallest),
        )


@dataclass(frozen=True, kw_only=True)
class _Cells:
    """Nodes of all bins, ``(c,)`` each.

    Attributes:
        totals: T.
        halves: T / 2 less its whole part.
        others: K.
        weights: Their weights, divided by T.
        rows: The rows of the table that are about T.
        table: ``(m, w)``, `excess_of_coins` of each T.
    """

    totals: Floats
    halves: Floats
    others: Floats
    weights: Floats
    rows: npt.NDArray[np.intp]
    table: Floats

    def excesses(self, thresholds: Floats) -> Floats:
        """Return ``(k, c)`` excesses, which are linear between whole thresholds.

        Args:
            thresholds: ``(k, c)``, at least 0, from the whole part of T / 2 on; overwritten. The
                table falls: its last column holds further right, too.
        """
        width = self.table.shape[1]
        place = np.minimum(thresholds.astype(np.intp), width - 2)
        thresholds -= place
        part = np.minimum(thresholds, 1.0, out=thresholds)
        place += width * self.rows
        flat = self.table.ravel()
        found: Floats = part * flat[1:].take(place)
        np.subtract(1.0, part, out=part)
        part *= flat.take(place)
        found += part
        return found


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
        p: Success probability in [0, 1], of all rows or of each.
        slope: Largest expected |d ln f / dX| at the mean: where it is large, nodes are dense, and
            more of them lie to the left. It matters for tightness only.
        spacing: Distance of nodes, in units over which ln f changes by 1, but at most two
            standard deviations. The bound is larger by about ``spacing**2 / 12``, relatively.

    Returns:
        ``(m, j) float64`` each: whole numbers, non-decreasing along a row, 0 first; non-negative
        weights, rows summing to 1.
    """
    p = np.broadcast_to(p, trials.shape)
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
    return nodes, _weights(nodes, trials[:, None], p[:, None])


def _weights(nodes: Floats, trials: Floats, p: Floats) -> Floats:
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
