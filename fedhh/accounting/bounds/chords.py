"""Binomials on few nodes: expectations of convex falling functions, bounded from above."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedhh.privacy_loss.binomial import Floats, lower_tail

_RIGHT = 4.0
"""Standard deviations right of the mean that nodes cover; a falling function needs no more."""
_LEFT = 9.0
"""Standard deviations left of the mean, of the law tilted by the function: what lies further left
has probability e**-40, and the chord from there to 0 is harmless unless f grows by more."""


@dataclass(frozen=True, kw_only=True)
class Chords:
    """Nodes and weights with E f(X) <= sum of weights * f(nodes) for every convex falling f.

    Attributes:
        nodes: ``(m, j) float64``, whole numbers, non-decreasing along a row, 0 first.
        weights: ``(m, j) float64``, non-negative, rows summing to 1.
    """

    nodes: Floats
    weights: Floats


def chords(trials: Floats, p: float, *, slope: float, spacing: float = 0.25) -> Chords:
    """Return nodes and weights for X ~ Bin(trials, p), one row for each number of trials.

    Between nodes, f is replaced by its chord; right of the last node by its value there.

    Args:
        trials: ``(m,) float64``, whole numbers >= 0.
        p: Success probability in [0, 1].
        slope: Largest expected |d ln f / dX| at the mean: where it is large, nodes are dense, and
            more of them lie to the left. It matters for tightness only.
        spacing: Distance of nodes, in units over which ln f changes by 1, but at most two
            standard deviations. The bound is larger by about ``spacing**2 / 12``, relatively.
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
    return Chords(nodes=nodes, weights=_weights(nodes, trials[:, None], p))


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
