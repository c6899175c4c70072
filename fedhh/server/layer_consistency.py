"""Consistency of two layers of a trie: a child is held by no more clients than its parent.

What contradicts that is noise, or an attack on one layer alone. Neither rule here stops an attack
that supports a prefix in every layer, and averaging makes one on a parent stronger.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

_Floats = npt.NDArray[np.float64]
_Indices = npt.NDArray[np.int64]

ALARM_Z = 5.0
"""Standard deviations by which a child exceeds its parent for `num_exceeding` to count it."""


def capped(children: _Floats, parents: _Floats, parent_of: _Indices) -> _Floats:
    """Return ``(c,) float64``: each child's estimate, at most its parent's.

    The noise of the parent then lowers the child's: where both are held by the same clients, by
    sqrt((v_parent + v_child) / (2 pi)) on average.

    Args:
        children: ``(c,) float64`` estimates.
        parents: ``(p,) float64`` estimates of the layer before, in the same unit.
        parent_of: ``(c,) int64``: each child's parent.
    """
    return np.minimum(children, parents[parent_of])


def averaged(
    children: _Floats,
    parents: _Floats,
    parent_of: _Indices,
    *,
    child_variance: float,
    parent_variance: float,
) -> tuple[_Floats, _Floats]:
    """Return the estimates of least squares whose children add up to their parent.

    Constrained inference (Hay, Rastogi, Miklau, Suciu 2010, "Boosting the accuracy of
    differentially private histograms through consistency", PVLDB 3) over one parent and all of its
    k children, with different variances: the gap g between the parent and the sum of its children
    moves each child by g v_child / (v_parent + k v_child), and the parent to their new sum. It is
    for clients with one value each, whose children add up.

    A parent that fake votes lift by A lifts each of its children by A v_child / (v_parent +
    k v_child), which no fake vote was for.

    Args:
        children: ``(c,) float64`` estimates, all children of each parent.
        parents: ``(p,) float64``, in the same unit.
        parent_of: ``(c,) int64``: each child's parent.
        child_variance: Of a child's estimate.
        parent_variance: Of a parent's.

    Returns:
        ``(c,)`` and ``(p,) float64``: children and parents.
    """
    sums = np.bincount(parent_of, weights=children, minlength=len(parents))
    numbers = np.bincount(parent_of, minlength=len(parents))
    step = (parents - sums) * child_variance / (parent_variance + numbers * child_variance)
    return children + step[parent_of], np.asarray(sums + numbers * step, dtype=np.float64)


def shares_of(estimate: _Floats, variance: _Floats, num_clients: int) -> _Floats:
    """Return ``(c, 2) float64``: estimated shares of clients, and the variance of each.

    Args:
        estimate: ``(c,) float64`` counts.
        variance: ``(c,) float64``, theirs.
        num_clients: Clients that were asked.
    """
    clients = max(num_clients, 1)
    return np.stack([estimate / clients, variance / clients**2], axis=1)


def num_exceeding(children: _Floats, parents: _Floats) -> int:
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
    return num_candidates * float(ndtr(-ALARM_Z))
