"""Which candidates a layer keeps: the top eta by votes, with a stated tie rule."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedhh.random import scatter
from fedhh.validation import require_at_least, require_choice

TIES = ("strict", "paper")


def top_eta(
    votes: npt.NDArray[np.int64], eta_max: int, *, ties: str
) -> tuple[npt.NDArray[np.int64], int]:
    """Return the candidates with the most votes, and the votes of the last one kept.

    Gboard paper, Algorithm 2, lines 22-23: the threshold is the eta_max-th largest entry.

    Args:
        votes: ``(c,) int64``, c at least 1.
        eta_max: How many to keep; all are kept if there are no more.
        ties: "paper" keeps every candidate at the threshold, so more than ``eta_max`` may stay
            (but none without a vote: where fewer than ``eta_max`` have one, the paper's rule would
            keep all candidates, and the trie would grow by the alphabet's size in each layer);
            "strict" keeps exactly ``eta_max``, choosing among those at the threshold by a fixed
            hash of the candidate's number (which favors no part of the alphabet).

    Returns:
        Ascending ``int64`` candidate numbers, and the threshold.

    >>> top_eta(np.array([5, 9, 5, 1]), 2, ties="paper")
    (array([0, 1, 2]), 5)
    >>> len(top_eta(np.array([5, 9, 5, 1]), 2, ties="strict")[0])
    2
    """
    require_at_least(1, eta_max=eta_max)
    require_choice(TIES, ties=ties)
    if len(votes) <= eta_max:
        return np.arange(len(votes)), int(votes.min())
    threshold = int(np.partition(votes, len(votes) - eta_max)[len(votes) - eta_max])
    if ties == "paper":
        return np.flatnonzero(votes >= max(threshold, 1)), threshold
    above = np.flatnonzero(votes > threshold)
    tied = np.flatnonzero(votes == threshold)
    tied = tied[np.argsort(_scatter(tied), kind="stable")][: eta_max - len(above)]
    return np.sort(np.concatenate([above, tied])), threshold


def _scatter(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    return scatter(numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15))
