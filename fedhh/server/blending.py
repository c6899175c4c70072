"""What BLENDER's trusted curator publishes, and how two estimates of the same shares are blended.

Source: Avent et al. (2017), BLENDER, the algorithms EstimateOptinProbabilities,
EstimateClientProbabilities and BlendProbabilities; numbering not verified. Shares are of clients:
of those who contribute a word when asked. With one record per client, that is the paper's
probability of a record. Why the curator is private stands in `fedhh.accounting.opt_in`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedhh.accounting.opt_in import head_list_threshold, laplace_scale
from fedhh.oracles import PureOracle
from fedhh.random import Stream, generator

Floats = npt.NDArray[np.float64]
_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Shares:
    """Estimated shares of clients, and the variances of those estimates: ``(c,) float64`` each."""

    share: Floats
    variance: Floats

    def blend(self, other: Shares) -> Shares:
        """Return the mean by inverse variances: the one with the least variance.

        The weight of this estimate is v' / (v + v'). Variances are estimates themselves, so the
        result is unbiased only up to what those owe to the shares.
        """
        total = self.variance + other.variance
        weight = other.variance / total
        return Shares(
            share=weight * self.share + (1 - weight) * other.share,
            variance=self.variance * other.variance / total,
        )


def opt_in_shares(noisy_counts: Floats, *, num_clients: int, scale: float) -> Shares:
    """Return what the opt-in group says, whose counts have Laplace noise of scale b.

    With s the noisy count over n, the variance is s (1 - s) / (n - 1) + 2 b**2 / (n (n - 1)):
    unbiased for clients drawn independently, since s (1 - s) falls short by the noise's own
    2 b**2 / n**2.

    Args:
        noisy_counts: ``(c,) float64``: clients that contributed each word, and noise.
        num_clients: n, at least 2.
        scale: b.
    """
    n = num_clients
    share = noisy_counts / n
    return Shares(share=share, variance=(share * (1 - share) + 2 * scale**2 / n) / (n - 1))


def client_shares(
    votes: _Ints, oracle: PureOracle, *, num_clients: int, num_reports: int
) -> Shares:
    """Return what clients say who randomize each of their B contributions.

    With s the estimated count over n, r = s p + (1 - s) q and B = num_reports / n, the variance is
    (r (1 - r) + (B - 1) q (1 - q)) / ((n - 1) (p - q)**2): unbiased for clients drawn independently
    who send B reports each. With B = 1, that is the paper's for randomized response.

    Args:
        votes: ``(c,) int64``: reports that support each word.
        oracle: The randomizer.
        num_clients: n, at least 2.
        num_reports: Reports of all of them.
    """
    n, p, q = num_clients, oracle.p, oracle.q
    share = oracle.estimate(votes, num_reports) / n
    rate = share * p + (1 - share) * q
    others = (num_reports / n - 1) * q * (1 - q)
    variance = (rate * (1 - rate) + others) / ((n - 1) * (p - q) ** 2)
    return Shares(share=share, variance=variance)


def with_floor(shares: Shares, floor: float) -> Shares:
    """Return the shares with variances that are at least ``floor``.

    An estimated variance may be 0 or less where an estimated share is not in [0, 1].
    """
    return Shares(share=shares.share, variance=np.maximum(shares.variance, floor))


@dataclass(frozen=True, kw_only=True)
class Curator:
    """The settings that the curator keeps to.

    Attributes:
        epsilon: Central privacy of a client who opted in.
        delta: Its delta.
        head_items: Words that a client contributes to finding the list, at most.
        max_items: Words that a client contributes to counting it, at most.
        seed: Of the noise: one fixed draw for each layer of a run.
    """

    epsilon: float
    delta: float
    head_items: int
    max_items: int
    seed: int

    @property
    def threshold(self) -> float:
        """Noisy count that a word of the head list exceeds."""
        return head_list_threshold(epsilon=self.epsilon, delta=self.delta, records=self.head_items)

    @property
    def head_scale(self) -> float:
        """Scale of the Laplace noise on counts of words as the list is made."""
        return laplace_scale(epsilon=self.epsilon, records=self.head_items)

    @property
    def opt_in_scale(self) -> float:
        """Scale of the Laplace noise on counts of the list's words."""
        return laplace_scale(epsilon=self.epsilon, records=self.max_items)

    def head_list(self, messages: _Ints, *, layer: int, most: int) -> npt.NDArray[np.uint16]:
        """Return the words whose noisy count exceeds the threshold, most frequent first.

        Args:
            messages: ``(m, length + 1) int64``: a word's symbols, and how often a client sends it.
            layer: Of the run.
            most: Words of the list, at most.

        Returns:
            ``(c, length) uint16``.
        """
        words, places = np.unique(messages[:, :-1], axis=0, return_inverse=True)
        counts = np.zeros(len(words), dtype=np.int64)
        np.add.at(counts, places.ravel(), messages[:, -1])
        noisy = counts + self.noise(layer, len(words), self.head_scale)
        order = np.argsort(-noisy, kind="stable")
        kept = order[noisy[order] > self.threshold][:most]
        return words[kept].astype(np.uint16)

    def shares(self, counts: _Ints, *, layer: int, num_clients: int) -> Shares:
        """Return what the opt-in group says of the list's words.

        Args:
            counts: ``(c,) int64``: clients that contributed each word.
            layer: Of the run.
            num_clients: Of the group.
        """
        scale = self.opt_in_scale
        noisy = counts + self.noise(layer, len(counts), scale)
        shares = opt_in_shares(noisy, num_clients=num_clients, scale=scale)
        return with_floor(shares, 2 * scale**2 / num_clients**2)

    def noise(self, layer: int, size: int, scale: float) -> Floats:
        """Return the noise of a layer: ``(size,) float64``."""
        rng = generator(self.seed, Stream.CURATOR, 0, layer)
        return rng.laplace(scale=scale, size=size)
