"""A round whose candidates are judged by their votes, as the loop hears of it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedhh.found import Found
from fedhh.protocol import Heard, KeptBy, State
from fedhh.server.noise import Noise
from fedhh.server.sum_noise import SumNoise
from fedhh.words.trie import Codes


def judged(
    own: State,
    noise: Noise | SumNoise,
    *,
    threshold: int,
    num_candidates: int,
    num_kept: int,
    found: Found | None = None,
    kept: npt.NDArray[np.int64] | Codes | None = None,
    kept_by: KeptBy = "votes",
) -> Heard[State]:
    """Return what a round says whose candidates are judged by their votes; see `Heard`."""
    return Heard(
        own=own,
        num_kept=num_kept,
        num_candidates=num_candidates,
        found=found,
        kept=kept,
        threshold=threshold,
        threshold_z=noise.threshold_z(threshold, num_dropped=num_candidates - num_kept),
        noise_std=noise.std,
        kept_by=kept_by,
    )
