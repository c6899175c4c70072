"""How two estimates of the same shares are blended: the trusted curator's, and other clients'.

Source: Avent et al. (2017), BLENDER, the algorithms EstimateOptinProbabilities,
EstimateClientProbabilities and BlendProbabilities; numbering not verified. Shares are of clients:
of those who contribute a word when asked. With one record per client, that is the paper's
probability of a record. Why the curator is private stands in `fedhh.accounting.opt_in`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedhh.arrays import Floats, Ints
from fedhh.oracles import PureOracle


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


def client_shares(votes: Ints, oracle: PureOracle, *, num_clients: int, num_reports: int) -> Shares:
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
