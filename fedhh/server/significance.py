"""Which of many candidates noise does not explain, by how many of noise there may be."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from fedhh.server.noise import Noise

_Ints = npt.NDArray[np.int64]


def above_noise(noise: Noise, votes: _Ints, *, noise_kept: float, most: int) -> _Ints:
    """Return the candidates whose votes noise does not explain, most votes first.

    A candidate is kept if its z (`Noise.z`, by the exact tail) is at least the standard normal
    quantile of 1 - noise_kept / c, where c is the number of candidates. So, of candidates that
    nobody holds, ``noise_kept`` are expected to be kept at most, whatever c is. For small epsilon
    that is a threshold of about 2 sqrt(2 n ln(c / noise_kept)) / epsilon on the estimated count:
    the sqrt(n log d) / epsilon of Bassily et al. (2017), with d counted as what is looked at.

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
    least = float(-ndtri(min(noise_kept / len(votes), 1.0)))
    kept = np.flatnonzero((noise.z(distinct) >= least)[places])
    return kept[np.argsort(-votes[kept], kind="stable")][:most]
