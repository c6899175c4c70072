"""What chance alone does to a candidate's votes, and how far above it a candidate lies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import scipy

from fedhh import oracles
from fedhh.arrays import Floats, Ints
from fedhh.oracles import PureOracle
from fedhh.oracles.base import PureVotes
from fedhh.privacy_loss.binomial import upper_tail
from fedhh.questions.noise_shares import NoiseShares

if TYPE_CHECKING:
    from fedhh.oracles import SketchOracle


# Cells are counted by their distance from their row's mean, in this many steps per deviation.
_STEPS = 64
_ROWS_AT_ONCE = 1024
_VOTES_AT_ONCE = 2**15
# Where a Chernoff bound is looked for, in deviations: from hardly any to far beyond all doubt.
_TILTS = np.geomspace(0.01, 2000, 140)


@dataclass(frozen=True, kw_only=True, eq=False)
class SketchNoise:
    """The distribution of a sketch's support of a value that no client holds, given the sketch.

    The hash functions send such a value to a uniform cell of each row, independently, so its
    support is a sum of k independent numbers, each a uniform cell of its row. That holds what the
    randomizer does, and what frequent values do to those that share a cell with them.

    Attributes:
        oracle: Whose sketch it is.
        center: Its expectation.
        variance: Its variance.
        num_rows: k.
        steps: ``(b,) float64``: distances of a cell from its row's mean, over all rows.
        chances: ``(b,) float64``: how often each occurs.
    """

    oracle: SketchOracle
    center: float
    variance: float
    num_rows: int
    steps: Floats
    chances: Floats

    @classmethod
    def of(cls, oracle: PureOracle, aggregate: Ints) -> SketchNoise | None:
        """Return the distribution for an ``(aggregate_size,) int64`` sketch.

        None if all its cells are equal, or if the oracle counts every value by itself.
        """
        # Kernels load with sketches, and with nothing else here.
        if not oracle.is_sketch or not isinstance(oracle, oracles.SketchOracle):
            return None
        cells = oracle.cells(aggregate)[0]
        rows, size = cells.shape
        chunks = [slice(a, a + _ROWS_AT_ONCE) for a in range(0, rows, _ROWS_AT_ONCE)]
        means = cells.mean(axis=1)
        variance = float(sum(cells[chunk].var(axis=1).sum() for chunk in chunks))
        if variance == 0:
            return None
        width = math.sqrt(variance / rows) / _STEPS
        lowest = float((cells.min(axis=1) - means).min())
        highest = float((cells.max(axis=1) - means).max())
        counts = np.zeros(round((highest - lowest) / width) + 2, dtype=np.int64)
        for chunk in chunks:
            distances = (cells[chunk] - means[chunk, None] - lowest) / width
            counts += np.bincount(
                np.rint(distances).astype(np.int64).ravel(), minlength=len(counts)
            )
        (occurring,) = np.nonzero(counts)
        chances = counts[occurring] / (rows * size)
        steps: Floats = occurring * np.float64(width)
        return cls(
            oracle=oracle,
            center=float(means.sum()),
            variance=variance,
            num_rows=rows,
            # Rounding must not move the mean.
            steps=steps - float(chances @ steps),
            chances=chances,
        )

    def z(self, votes: Ints) -> Floats:
        """Return the standard normal quantile of the Chernoff exponent of each number of votes.

        With K the logarithm of the moment generating function, sqrt(2 max_t (t x - K(t))), the
        leading term of the saddlepoint approximation: for a normal distribution, x over its
        deviation, and less where the tail is heavier. K takes the rows as drawn from their mixture,
        which can only raise it. 0 where votes are below the expectation.
        """
        tilts = _TILTS / math.sqrt(self.variance)
        logs = np.log(self.chances)
        cumulants = np.array([scipy.special.logsumexp(tilt * self.steps + logs) for tilt in tilts])
        cumulants *= self.num_rows
        above = votes - self.center
        exponents = [
            (above[a : a + _VOTES_AT_ONCE, None] * tilts - cumulants).max(axis=1)
            for a in range(0, len(votes), _VOTES_AT_ONCE)
        ]
        best = np.concatenate([np.zeros(0), *exponents])
        return np.asarray(np.sqrt(2 * np.maximum(best, 0.0)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Noise:
    """What chance does in one round.

    Attributes:
        oracle: The randomizer of the reports; or `ClientVotes`, where clients are counted.
        num_reports: How many reports, or clients, were counted, n.
        sketch: The distribution of a sketch, where reports were counted in one.
    """

    oracle: PureVotes
    num_reports: int
    sketch: SketchNoise | None = None

    @classmethod
    def of_aggregate(cls, oracle: PureOracle, num_reports: int, aggregate: Ints) -> Noise:
        """Return the noise of a round whose reports were added up as ``aggregate``."""
        return cls(oracle=oracle, num_reports=num_reports, sketch=SketchNoise.of(oracle, aggregate))

    @property
    def votes_mean(self) -> float:
        """Expected votes of a candidate that no client holds."""
        return self.num_reports * self.oracle.q

    @property
    def votes_std(self) -> float:
        """Their standard deviation."""
        return math.sqrt(self.votes_mean * (1 - self.oracle.q))

    def estimate(self, votes: Ints) -> Floats:
        """Return ``(c,) float64``: unbiased estimates of the contributions behind some votes."""
        return self.oracle.estimate(votes, self.num_reports)

    @property
    def std(self) -> float:
        """Standard deviation of the estimate of a candidate that no client holds."""
        alone = float(self.oracle.variance(0, self.num_reports))
        return math.sqrt(alone + self._excess)

    def variance(self, estimate: Floats) -> Floats:
        """Return the variance of some candidates' estimates.

        To that of the randomizer, a sketch adds what other frequent values do together
        (`SketchOracle.collision_variance`), here as the sketch shows it.

        Args:
            estimate: ``(c,) float64``: clients that hold each.
        """
        held = np.clip(estimate, 0, self.num_reports)
        variance = self.oracle.variance(held, self.num_reports)
        if self.sketch is None:
            return variance
        own = self.sketch.oracle.collision_variance(held)
        return np.asarray(variance + np.maximum(self._excess - own, 0.0))

    def z(self, votes: Ints) -> Floats:
        """Return how far votes lie above those of a candidate that no client holds.

        Such a candidate's votes are Binomial(n, q). The result is the standard normal quantile of
        P(fewer votes), computed from the exact tail: where n q is small the tail is heavier than a
        normal one, and (votes - n q) / standard deviation would call noise significant. In a sketch
        that frequent values weigh on, the tail is heavier still: there it is the smaller of this
        and `SketchNoise.z`.

        Args:
            votes: ``(c,) int64``.

        Returns:
            ``(c,) float64``; infinite where the noise cannot reach the votes at all.
        """
        expected, spread = self.votes_mean, self.votes_std
        exact = -scipy.special.ndtri(upper_tail(votes, self.num_reports, self.oracle.q))
        if spread:
            # Beyond 37 deviations the tail underflows; the normal value is as good as any there.
            exact = np.where(np.isposinf(exact), (votes - expected) / spread, exact)
        return np.asarray(exact if self.sketch is None else np.minimum(exact, self.sketch.z(votes)))

    @property
    def _excess(self) -> float:
        """What equal values add to the variance of an estimate, as the sketch shows it."""
        if self.sketch is None:
            return 0.0
        by_chance = self.num_reports * self.oracle.q * (1 - self.oracle.q)
        return max(self.sketch.variance - by_chance, 0.0) / (self.oracle.p - self.oracle.q) ** 2


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

    def estimate(self, votes: Ints) -> Floats:
        """Return ``(c,) float64``: the sums themselves."""
        return votes.astype(np.float64)

    def variance(self, estimate: Floats) -> Floats:
        """Return the variances of some estimates, which are all alike."""
        return np.full(len(estimate), self.std**2)

    def z(self, votes: Ints) -> Floats:
        """Return how far sums lie above noise alone: the normal quantile of P(noise < sum)."""
        return self.noise.z(votes, self.part)


AnyNoise = Noise | SumNoise
"""What chance does in a round, to votes or to sums."""
