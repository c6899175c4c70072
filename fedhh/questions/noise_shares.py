"""Integer noise in shares: each of n clients adds a share, and the sum has a known distribution.

Two distributions that are sums of n equal, independent shares for every n (infinitely divisible):

* Discrete Laplace: P(k) proportional to e**(-a |k|). With e = e**-a, its generating function is
  ((1 - e)**2 / ((1 - e t) (1 - e / t))); the share of one of n clients, the difference of two
  negative binomials with shape 1/n and success probability 1 - e (Polya), has the n-th root of it.
* Skellam: the difference of two Poisson variables with mean mu each; a share has mean mu / n.

Where only a part b of the shares arrives, the exponent of the generating function is b, and mu is
b mu: both are computed here for any b in (0, 1]. Probabilities are made of the ratios
r(k) = P(k) / P(k - 1), which a three-term recurrence gives, stable from large k down since P is its
minimal solution:

* Skellam, x = 2 mu b: P(k) = e**-x I_k(x), and I_{k-1} - I_{k+1} = (2 k / x) I_k gives
  r(k) = 1 / (2 k / x + r(k + 1)).
* Polya: G' t (1 - e t) (1 - e / t) = b G e (t - 1 / t) for the generating function G, so
  (1 + e**2) k P(k) = e (k - 1 + b) P(k - 1) + e (k + 1 - b) P(k + 1), and
  r(k) = e (k - 1 + b) / ((1 + e**2) k - e (k + 1 - b) r(k + 1)).

Every step multiplies an error of r by less than r(k) r(k + 1) or e**2, so that a start far out
leaves nothing of it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
import scipy

from fedhh.arrays import Floats, Ints
from fedhh.privacy_loss.search import smallest_true
from fedhh.validation import InputError, require_between

NoiseName = Literal["discrete-laplace", "skellam"]

LEAST_STD, MOST_STD = 0.05, 100_000.0
"""Standard deviations that are computed with."""

WRAP_CHANCE = 1e-12
"""Of a run in which a sum modulo M wraps around."""

_LOG_BEYOND = math.log(1e-22)
"""Of the probability of noise that is so large that its distribution is not kept."""
_FORGOTTEN = 40.0
"""-ln of what is left of the recurrence's start."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Distribution:
    """The distribution of what arrives of some noise, which is symmetric.

    Attributes:
        ratios: ``(K,) float64``: P(k) / P(k - 1) for k = 1 to K.
        masses: ``(K + 1,) float64``: P(k) for k = 0 to K.
        tails: ``(K + 2,) float64``: P(noise >= k) for k = 0 to K + 1, without what is beyond K.
    """

    ratios: Floats
    masses: Floats
    tails: Floats

    @property
    def last(self) -> int:
        """K; larger noise has a probability below 1e-22."""
        return len(self.ratios)


@dataclass(frozen=True, kw_only=True)
class NoiseShares(ABC):
    """Symmetric integer noise, made of equal and independent shares.

    Attributes:
        std: Standard deviation of all shares together.
    """

    name: ClassVar[NoiseName]

    std: float

    def __post_init__(self) -> None:
        require_between(LEAST_STD, MOST_STD, std=self.std)

    @abstractmethod
    def draw(self, part: float, size: int, *, rng: np.random.Generator) -> Ints:
        """Return ``(size,) int64``: in each entry, independently, the sum of a part of the shares.

        Args:
            part: Of all shares, in (0, 1]: a number of clients over n.
            size: Entries.
            rng: Source of the noise.
        """

    @abstractmethod
    def log_tail(self, least: float) -> float:
        """Return an upper bound on ln P(noise >= least), of any part of the shares.

        Args:
            least: At least 1.
        """

    @abstractmethod
    def _ratios(self, part: float, last: int) -> Floats:
        """Return ``(last,) float64``: P(k) / P(k - 1) for k = 1 to ``last``."""

    def distribution(self, part: float = 1.0) -> Distribution:
        """Return the distribution of the sum of a part of the shares."""
        return _distribution(self, part)

    def reach(self, log_chance: float) -> int:
        """Return the least T with a certified ln P(noise > T) of at most this, of any part."""
        return smallest_true(lambda last: self.log_tail(last + 1) <= log_chance, low=1)

    def least_sum(self, chance: float, part: float = 1.0) -> int:
        """Return the least sum that noise alone reaches with at most a probability; at least 1.

        Args:
            chance: The probability, above 0.
            part: Of the shares that arrived.
        """
        tails = self.distribution(part).tails
        # Tails fall, and what is not kept of them is far below any chance in question.
        place = int(np.searchsorted(-tails, -chance))
        if place < len(tails) - 1:
            return max(place, 1)
        return max(self.reach(math.log(chance)) + 1, place)

    def z(self, sums: Ints, part: float = 1.0) -> Floats:
        """Return how far sums lie above noise alone: the normal quantile of P(noise < sum).

        By the exact tail, which is heavier than a normal one; far out by its bound.

        Args:
            sums: ``(c,) int64``.
            part: Of the shares that arrived.
        """
        tails = self.distribution(part).tails
        distinct, places = np.unique(sums, return_inverse=True)
        logs = np.empty(len(distinct))
        for i, value in enumerate(distinct.tolist()):
            if value > len(tails) - 2:
                logs[i] = self.log_tail(value)
            elif value > 0:
                logs[i] = math.log(tails[value])
            else:
                logs[i] = math.log1p(-tails[min(1 - value, len(tails) - 1)])
        return np.asarray(-scipy.special.ndtri_exp(logs)[places.reshape(-1)])


@dataclass(frozen=True, kw_only=True)
class DiscreteLaplace(NoiseShares):
    """Discrete Laplace noise, in Polya shares."""

    name: ClassVar[NoiseName] = "discrete-laplace"

    @property
    def decay(self) -> float:
        """a: P(k) is proportional to e**(-a |k|); the variance is 1 / (2 sinh(a / 2)**2)."""
        return 2 * math.asinh(1 / (math.sqrt(2) * self.std))

    def draw(self, part: float, size: int, *, rng: np.random.Generator) -> Ints:
        negated = self._negative_binomial(part, size, rng)
        return self._negative_binomial(part, size, rng) - negated

    def _negative_binomial(self, shape: float, size: int, rng: np.random.Generator) -> Ints:
        """Return ``(size,)`` draws; those of a small shape as a Poisson number of clusters.

        A negative binomial is a sum of Poisson(-shape ln(1 - e)) logarithmic variables with
        parameter e. In all entries together there are so few clusters that drawing them, and the
        entry of each, costs far less than a draw for every entry.
        """
        remains = math.exp(-self.decay)
        stops = -math.expm1(-self.decay)
        clusters = -shape * math.log(stops)
        if clusters >= 1:
            return rng.negative_binomial(shape, stops, size=size)
        number = int(rng.poisson(clusters * size))
        entries = rng.integers(size, size=number)
        sizes = rng.logseries(remains, size=number)
        drawn: Ints = np.zeros(size, dtype=np.int64)
        np.add.at(drawn, entries, sizes)
        return drawn

    def log_tail(self, least: float) -> float:
        """Return ln of e**(-a least) / (1 + e**-a), exact where all shares arrive.

        A part of the shares has a smaller tail: the rest is independent, symmetric and unimodal,
        and so is the part, so adding it makes no interval around 0 likelier (Anderson 1955).
        """
        return -self.decay * least - math.log1p(math.exp(-self.decay))

    def _ratios(self, part: float, last: int) -> Floats:
        a, b = self.decay, part
        e = math.exp(-a)
        if b == 1:
            return np.full(last, e)
        square = 1 + e * e
        far = last + math.ceil(_FORGOTTEN / (2 * a))
        ratio = e
        ratios: Floats = np.empty(last)
        for k in range(far, 0, -1):
            ratio = e * (k - 1 + b) / (square * k - e * (k + 1 - b) * ratio)
            if k <= last:
                ratios[k - 1] = ratio
        return ratios


@dataclass(frozen=True, kw_only=True)
class Skellam(NoiseShares):
    """The difference of two Poisson variables, in shares of the same kind."""

    name: ClassVar[NoiseName] = "skellam"

    def draw(self, part: float, size: int, *, rng: np.random.Generator) -> Ints:
        mean = part * self.std**2 / 2
        return rng.poisson(mean, size=size) - rng.poisson(mean, size=size)

    def log_tail(self, least: float) -> float:
        """Return Chernoff's bound, v (cosh s - 1) - s least, at sinh s = least / v.

        v is the variance; a part of the shares has a smaller one, and a smaller bound.
        """
        variance = self.std**2
        slope = math.asinh(least / variance)
        # cosh s - 1 = 2 sinh(s / 2)**2, without cancellation.
        return 2 * variance * math.sinh(slope / 2) ** 2 - slope * least

    def _ratios(self, part: float, last: int) -> Floats:
        x = part * self.std**2
        # Beyond 10 standard deviations an error falls by e**(-k / x) with each step.
        far = last + math.ceil(_FORGOTTEN * max(x / last, 1.0))
        ratio = 0.0
        ratios: Floats = np.empty(last)
        for k in range(far, 0, -1):
            ratio = 1 / (2 * k / x + ratio)
            if k <= last:
                ratios[k - 1] = ratio
        return ratios


NOISES: dict[NoiseName, type[NoiseShares]] = {
    kind.name: kind for kind in (DiscreteLaplace, Skellam)
}
"""The distributions by name."""


def noise_of(name: NoiseName, std: float) -> NoiseShares:
    """Return the noise of a name and a standard deviation.

    Raises:
        InputError: The standard deviation is not between 0.05 and 100,000.
    """
    if not LEAST_STD <= std <= MOST_STD:
        raise InputError(
            f"Expected {LEAST_STD:g} <= noise_std <= {MOST_STD:,.0f}, got noise_std={std:g}."
        )
    return NOISES[name](std=std)


@lru_cache(maxsize=32)
def _distribution(noise: NoiseShares, part: float) -> Distribution:
    last = noise.reach(_LOG_BEYOND)
    ratios = noise._ratios(part, last)
    masses = np.concatenate([[1.0], np.cumprod(ratios)])
    masses /= 2 * math.fsum(masses[1:]) + 1
    tails = np.append(np.cumsum(masses[::-1])[::-1], 0.0)
    for array in (ratios, masses, tails):
        array.flags.writeable = False
    return Distribution(ratios=ratios, masses=masses, tails=tails)
