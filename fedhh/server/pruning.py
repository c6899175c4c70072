"""Which candidates a round keeps: the top eta by votes, or those that noise does not explain."""

from __future__ import annotations

import numpy as np
import scipy

from fedhh.arrays import Ints
from fedhh.questions.noise import Noise
from fedhh.random import GOLDEN, scatter
from fedhh.validation import require_at_least, require_choice

TIES = ("strict", "paper")


def top_eta(votes: Ints, eta_max: int, *, ties: str) -> tuple[Ints, int]:
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
    # A fixed order that follows no alphabet: SplitMix64 of the candidates' numbers.
    order = scatter(tied.astype(np.uint64) + GOLDEN)
    tied = tied[np.argsort(order, kind="stable")][: eta_max - len(above)]
    return np.sort(np.concatenate([above, tied])), threshold


def above_noise(noise: Noise, votes: Ints, *, noise_kept: float, most: int) -> Ints:
    """Return the candidates whose votes noise does not explain, most votes first.

    A candidate is kept if its z (`Noise.z`, by the exact tail) is at least the standard normal
    quantile of 1 - noise_kept / c, where c is the number of candidates. So, of candidates that
    no client holds, ``noise_kept`` are expected to be kept at most, whatever c is. For small
    epsilon that is a threshold of about 2 sqrt(2 n ln(c / noise_kept)) / epsilon on the estimated
    count: the sqrt(n log d) / epsilon of Bassily et al. (2017), with d counted as what is looked
        at.

    Args:
        noise: What chance does in the round.
        votes: ``(c,) int64``.
        noise_kept: Above 0; all candidates are eligible if there are no more.
        most: Most candidates kept.

    Returns:
        ``int64`` candidate numbers; equal votes in ascending order of them.
    """
    if not len(votes):
        return np.zeros(0, dtype=np.int64)
    distinct, places = np.unique(votes, return_inverse=True)
    least = float(-scipy.special.ndtri(min(noise_kept / len(votes), 1.0)))
    kept = np.flatnonzero((noise.z(distinct) >= least)[places])
    return kept[np.argsort(-votes[kept], kind="stable")][:most]
