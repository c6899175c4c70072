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

from fedhh.privacy_loss.binomial import (
    Floats,
    Lattice,
    binomial_excess,
    excess_of_coins,
    lower_tail,
    width_of_coins,
)

LARGEST_LOG_ODDS = 32.0
"""-ln of the smallest delta, about the slope of ln delta in ln(number of blanket reports)."""
_ROWS_AT_ONCE = 400_000
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

    def mean_excess(self, *, share: float, per_other: float) -> float:
        """Return an upper bound on the expectation, within the bins, of an excess.

        Of X ~ Bin(T, 1/2), E[(X - T share - K per_other)_+] / T, at the counts of the bins.

        Args:
            share: At least 1/2.
            per_other: At least 0.
        """
        rows = max(1, _ROWS_AT_ONCE // self.others.shape[1])
        table = self._of_coins
        inside = 0.0
        for start in range(0, self.probability.size, rows):
            part = slice(start, start + rows)
            total = self.smallest[part]
            threshold = total * share + per_other * self._others_of_smallest[part]
            threshold *= _ROUNDED_DOWN
            if table is None:
                excess = binomial_excess(total, threshold)
            else:
                threshold -= np.floor(total / 2)
                excess = _between_counts(table[part], np.maximum(threshold, 0.0, out=threshold))
            mean = np.einsum("ij,ij->i", self.weights[part], excess)
            inside += float(np.dot(self.probability[part], mean / total[:, 0]))
        return inside

    @cached_property
    def _others_of_smallest(self) -> Floats:
        """Nodes of K at the smallest T of a bin, where K / T is that of the largest."""
        return self.smallest * (self.others / self.largest)

    @cached_property
    def _of_coins(self) -> Floats | None:
        """`excess_of_coins` of each bin, or None if that is too much to keep."""
        if self.smallest.size * width_of_coins(self.smallest) > _LARGEST_TABLE:
            return None
        return excess_of_coins(self.smallest)


def _between_counts(table: Floats, thresholds: Floats) -> Floats:
    """Return ``(m, j)`` excesses, which are linear between whole thresholds.

    Args:
        table: ``(m, w)``, at thresholds 0 to w - 1. It falls: the last holds further right, too.
        thresholds: ``(m, j)``, at least 0.
    """
    rows, width = table.shape
    place = np.minimum(thresholds.astype(np.intp), width - 2)
    part = np.minimum(thresholds - place, 1.0)
    place += width * np.arange(rows)[:, None]
    flat = table.ravel()
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
