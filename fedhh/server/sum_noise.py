"""What known integer noise does to sums of plain votes, and how far above it a sum lies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fedhh.questions.noise_shares import NoiseShares

_Floats = npt.NDArray[np.float64]
_Sums = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class SumNoise:
    """The noise in the sums of one round; a sum itself is an unbiased estimate of the votes.

    Attributes:
        noise: All of it.
        part: What arrived of it, in (0, 1].
    """

    noise: NoiseShares
    part: float = 1.0

    votes_mean: ClassVar[float] = 0.0
    """Expected sum of a candidate that no client holds."""

    @property
    def std(self) -> float:
        """Standard deviation of a sum, whoever holds the candidate."""
        return math.sqrt(self.part) * self.noise.std

    votes_std = std

    def estimate(self, votes: _Sums) -> _Floats:
        """Return ``(c,) float64``: the sums themselves."""
        return votes.astype(np.float64)

    def variance(self, estimate: _Floats) -> _Floats:
        """Return the variances of some estimates, which are all alike."""
        return np.full(len(estimate), self.std**2)

    def z(self, votes: _Sums) -> _Floats:
        """Return how far sums lie above noise alone: the normal quantile of P(noise < sum)."""
        return self.noise.z(votes, self.part)

    def threshold_z(self, threshold: int, *, num_dropped: int) -> float:
        """Return `z` of a round's threshold; NaN if the round dropped no candidate."""
        return float(self.z(np.array([threshold]))[0]) if num_dropped else math.nan
