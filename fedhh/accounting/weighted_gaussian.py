"""Weighted Gaussian selection of words, in one round or several: weights, noise, thresholds.

Source: Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin (2020), "Differentially private set
union", ICML; as stated by Dick, Joseph, Raman (2026), "Missing mass for differentially private
domain discovery", arXiv 2603.14016, Theorem 3.2. Several rounds: Swanberg, Desfontaines, Haney
(2023), "DP-SIPS: a simpler, more scalable mechanism for differentially private partition
selection", PoPETs. Numbering not verified.

A client with k = min(number of its words, D) words gives 1 / sqrt(k) to each. Every word that
somebody gives to gets Gaussian noise on its sum of weights, and is published from a threshold on:

    T = max over t <= D of 1 / sqrt(t) + sigma Phi^-1((1 - delta / 2)**(1 / t)),

with sigma such that noise of delta / 2 at epsilon covers what a neighbor moves. That is 1 where
neighbors have one client more or less, as in the sources, and sqrt(2) under replace-one, which all
of fedhh's guarantees are for: two vectors of norm 1 (or 0) without negative entries are at most
sqrt(2) apart.

**Theorem.** One round is (epsilon, delta)-private for a user, neighbors being replace-one.

*Proof.* By (1) of `fedhh.accounting.trusted_aggregator`: if S has t words, each of U has weight
1 / sqrt(t) and U has at most t words, so one of them is published with chance at most delta / 2, by
the choice of T. On all other words, noise has delta / 2. []

**Several rounds.** Round i removes from every client's words those that earlier rounds published,
and has a share w_i = .3**(rounds - i) / (sum of these) of the budget. fedhh composes the rounds'
Gaussian noise exactly and not by adding up epsilons: with mu such that noise moved by mu has
delta / 2 at epsilon, round i has sigma_i = sqrt(2) / mu_i with mu_i = mu w_i / sqrt(sum of w_j**2),
and the threshold of delta / 2 times w_i. So mu is the root of the sum of mu_i**2, and the chances
r_i add up to at most delta / 2.

**Theorem.** All rounds together are (epsilon, delta)-private for a user under replace-one.

*Proof.* By (2) there: whatever earlier rounds published, a client's weights have norm 1 at most,
and a round shows the replacement with chance at most r_i on either side. []

Basic composition would give the last of three rounds .719 of epsilon; this gives it .954 of mu.

**One contribution.** A client with one word gives it 1, and if that is replaced, both norm and
threshold are those of a user: no better bound for an item holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from fedhh.accounting.gaussian_noise import gaussian_mu, quantile_of_any
from fedhh.accounting.trusted_aggregator import TrustedAggregatorPlan
from fedhh.validation import require_at_least, require_choice, require_inside, require_positive

ROUND_SHARE = 0.3
"""Of the budget of a round, what the round before it has."""

REPLACE_ONE, ADD_OR_REMOVE = "replace-one", "add or remove"

_SENSITIVITY = {REPLACE_ONE: math.sqrt(2), ADD_OR_REMOVE: 1.0}


@dataclass(frozen=True, kw_only=True)
class WeightRelease:
    """How one round publishes words by their sums of weights.

    Attributes:
        sigma: Standard deviation of the noise.
        threshold: Noisy sum of weights from which a word is published.
    """

    sigma: float
    threshold: float

    def release_chance(self, weight: float) -> float:
        """Return the chance that a word of such a sum of weights is published, if it is above 0."""
        return float(ndtr((weight - self.threshold) / self.sigma))


@lru_cache(maxsize=256)
def weight_releases(
    *, epsilon: float, delta: float, max_items: int, rounds: int = 1, neighbors: str = REPLACE_ONE
) -> tuple[WeightRelease, ...]:
    """Return how to publish words with a privacy of a user: the module has the proof.

    Args:
        epsilon: Central privacy of a user, above 0.
        delta: Above 0 and below 1.
        max_items: D, words that a client contributes to a round at most.
        rounds: How many.
        neighbors: "replace-one", or "add or remove" (one client more or less), as in the sources.

    Returns:
        One for each round.

    >>> (published,) = weight_releases(
    ...     epsilon=1.0, delta=1e-5, max_items=60, neighbors="add or remove"
    ... )
    >>> round(published.sigma, 5), round(published.threshold, 3)
    (3.88414, 20.455)
    """
    require_positive(epsilon=epsilon)
    require_inside(0, 1, delta=delta)
    require_at_least(1, max_items=max_items, rounds=rounds)
    require_choice(_SENSITIVITY, neighbors=neighbors)
    mu = gaussian_mu(epsilon=epsilon, delta=delta / 2)
    shares = ROUND_SHARE ** np.arange(rounds - 1, -1, -1.0)
    parts = shares / math.sqrt(float((shares**2).sum()))
    sigmas = (_SENSITIVITY[neighbors] / (mu * parts)).tolist()
    chances = (delta / 2 * shares / shares.sum()).tolist()
    return tuple(
        WeightRelease(sigma=sigma, threshold=_threshold(sigma, chance, max_items))
        for sigma, chance in zip(sigmas, chances, strict=True)
    )


def _threshold(sigma: float, chance: float, max_items: int) -> float:
    return max(
        1 / math.sqrt(items) + sigma * quantile_of_any(chance, items)
        for items in range(1, max_items + 1)
    )


@dataclass(frozen=True, kw_only=True)
class WeightedGaussian(TrustedAggregatorPlan):
    """Rounds of plain words, of which those with enough noisy weight are published.

    Attributes:
        releases: How each round publishes words.
    """

    method: ClassVar[str] = "weighted Gaussian"
    theorem: ClassVar[str] = (
        "weighted Gaussian noise under replace-one, rounds composed as Gaussians; proof in "
        "fedhh.accounting.weighted_gaussian"
    )

    releases: tuple[WeightRelease, ...]

    def release_chance(self, contributors: int) -> float:
        """Return an upper bound on the chance that a word is published.

        A client gives a word 1 at most, and rounds have noise of their own.
        """
        if contributors < 1:
            return 0.0
        missed = [1 - each.release_chance(contributors) for each in self.releases]
        return 1 - math.prod(missed)
