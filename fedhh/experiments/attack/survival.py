"""The exact chance that a word nobody holds survives LDP TrieHH's layers, by its fake clients.

A layer keeps a prefix that has at least so many votes. Of the n reports of honest clients, who do
not hold it, Bin(n, q) support it; a fake client's B crafted reports all do. Which fake clients a
layer's cohort has is a draw without replacement, so their numbers over the layers are multivariate
hypergeometric.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from fedhh.arrays import Floats


@dataclass(frozen=True, kw_only=True)
class LayerCut:
    """What a layer asks of a prefix.

    Attributes:
        num_clients: Clients of its cohort, the fake ones included.
        max_items: B, reports of each.
        q: Chance that a report of another value supports the prefix.
        threshold: Fewest votes of a prefix that it keeps.
    """

    num_clients: int
    max_items: int
    q: float
    threshold: int

    def survival(self, fakes: npt.ArrayLike) -> Floats:
        """Return the chance that a target survives with so many fake clients in the cohort.

        >>> gboard = LayerCut(num_clients=500_000, max_items=60, q=4.548752e-05, threshold=1451)
        >>> gboard.survival([2, 3, 4]).round(4).tolist()
        [0.822, 0.995, 1.0]
        """
        numbers = np.asarray(fakes, dtype=np.int64)
        honest = (self.num_clients - numbers) * self.max_items
        needed = self.threshold - numbers * self.max_items
        return np.asarray(stats.binom.sf(needed - 1, honest, self.q))


def survival(cuts: Sequence[LayerCut], *, fakes: int, num_clients: int) -> float:
    """Return the chance that a target survives all layers.

    Args:
        cuts: The layers, whose cohorts do not overlap.
        fakes: Fake clients that push it, of all clients.
        num_clients: All clients, asked or not, the fake ones included.
    """
    left = num_clients
    # By how many fakes have not been asked so far.
    chances = np.zeros(fakes + 1)
    chances[fakes] = 1.0
    for cut in cuts:
        asked = np.arange(min(fakes, cut.num_clients) + 1)
        kept = cut.survival(asked)
        after = np.zeros(fakes + 1)
        for remaining in np.flatnonzero(chances).tolist():
            here = asked[: remaining + 1]
            drawn = stats.hypergeom.pmf(here, left, remaining, cut.num_clients)
            after[remaining - here] += chances[remaining] * drawn * kept[: len(here)]
        chances = after
        left -= cut.num_clients
    return float(chances.sum())
