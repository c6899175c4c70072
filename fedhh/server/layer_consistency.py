"""Consistency of two layers of a trie: a child is held by no more clients than its parent.

What contradicts that is noise, or an attack on one layer alone. An attack that supports a prefix in
every layer does not.
"""

from __future__ import annotations

import numpy as np
import scipy

from fedhh.arrays import Floats

ALARM_Z = 5.0
"""Standard deviations by which a child exceeds its parent for `num_exceeding` to count it."""


def shares_of(estimate: Floats, variance: Floats, num_clients: int) -> Floats:
    """Return ``(c, 2) float64``: estimated shares of clients, and the variance of each.

    Args:
        estimate: ``(c,) float64`` counts.
        variance: ``(c,) float64``, theirs.
        num_clients: Clients that were asked.
    """
    clients = max(num_clients, 1)
    return np.stack([estimate / clients, variance / clients**2], axis=1)


def num_exceeding(children: Floats, parents: Floats) -> int:
    """Return how many children's shares exceed their parents' by more than chance.

    By `ALARM_Z` standard deviations of the difference, whose noises are independent, since layers
    ask different clients. Shares are of clients that contribute a prefix: where clients hold more
    prefixes than B, and fewer of them in a later layer, an honest child may exceed its parent.

    Args:
        children: ``(c, 2) float64``, see `shares_of`.
        parents: ``(c, 2) float64``: of each child's parent.
    """
    deviation = np.sqrt(children[:, 1] + parents[:, 1])
    return int(np.count_nonzero(children[:, 0] - parents[:, 0] > ALARM_Z * deviation))


def expected_alarms(num_candidates: int) -> float:
    """Return how many candidates exceed their parents by chance, at most, with normal noise.

    Which candidates a layer keeps depends on their noise, so all candidates count.
    """
    return num_candidates * float(scipy.special.ndtr(-ALARM_Z))
