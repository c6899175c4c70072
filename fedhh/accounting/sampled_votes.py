"""Privacy of one round in which a sample of the clients votes, and a threshold decides.

m of n clients are sampled without replacement, each votes for one prefix or for none, and the set
of prefixes with at least theta votes is published. Neighbors replace one client's vote. The proof
is in docs/accounting.md, section 8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedhh.arrays import Floats
from fedhh.privacy_loss.binomial import log_binomial, log_hypergeometric

_FINE, _COARSE = 1.008, 1.015
"""Ratios of neighboring numbers of holders where not every number is looked at."""

_TILTS = np.geomspace(1.0, 1e7, 80)
"""Exponents of the Chernoff bound."""

_LEFT_OUT = 1e-30
"""More than the probability of the counts that are left out, far above the threshold."""

_FEW_CLIENTS = 10_000


@dataclass(frozen=True, kw_only=True)
class SampledVotes:
    """One round.

    Attributes:
        num_clients: Clients n.
        sample_size: Clients m sampled of them, from 1 to n - 1.
        threshold: Votes theta that keep a prefix, from 1 to m.
    """

    num_clients: int
    sample_size: int
    threshold: int

    @property
    def rate(self) -> float:
        """Return m / n, the probability that a client is sampled."""
        return self.sample_size / self.num_clients

    @property
    def absence_epsilon(self) -> float:
        """Return ln(1 / (1 - m / n)), the least epsilon that `deltas` is for."""
        return -math.log1p(-self.rate)

    def deltas(self, epsilons: Floats) -> Floats:
        """Return upper bounds on the largest hockey-stick divergence of two neighbors.

        Args:
            epsilons: ``(k,) float64``, rising, not below `absence_epsilon`.

        Returns:
            ``(k,) float64``, non-increasing.
        """
        bounds = self._of_the_kept(epsilons) + self.rate * self._of_the_others(epsilons)
        # What holds at an epsilon holds at a larger one.
        return np.minimum(np.minimum.accumulate(bounds), 1.0)

    def _of_the_kept(self, epsilons: Floats) -> Floats:
        """Return bounds where the client's prefix is kept: tau of the proof, over all A."""
        fewest, chance, absent = self._kept
        # Of these votes and more, x (1 - votes / A) < 1.
        first = np.floor(fewest * -np.expm1(-epsilons[:, None])) + 1 - self.threshold
        places = np.clip(first, 0, chance.shape[1] - 1).astype(np.int64)
        rows = np.arange(len(fewest))
        terms = chance[rows, places] - np.exp(epsilons[:, None]) * absent[rows, places]
        return np.asarray(np.maximum(terms.max(axis=1), 0.0) + _LEFT_OUT)

    @cached_property
    def _kept(self) -> tuple[Floats, Floats, Floats]:
        """Return some A, and for each the sums from every number of votes on.

        They are of its probability, and of that times the share of samples without the client.
        From A = (theta - 1) / (1 - e**-epsilon) on, tau falls. Between two neighboring A of the
        grid, votes have the distribution of the larger, and the likelihood ratio of the smaller.
        """
        threshold = self.threshold
        top = max(threshold, math.ceil((threshold - 1) / self.rate))
        most = _grid(threshold, min(self.num_clients, top), _FINE)
        fewest = np.concatenate([most[:1], most[:-1] + 1])
        highest = math.ceil(threshold + 12 * math.sqrt(threshold) + 80)
        votes = np.arange(threshold, min(self.sample_size, int(most[-1]), highest) + 1.0)
        log_chance = log_hypergeometric(
            self.num_clients, most[:, None], self.sample_size, votes[None, :]
        )
        chance = np.exp(log_chance)
        absent = np.maximum(1 - votes / fewest[:, None], 0.0)
        return fewest, _sums_from(chance), _sums_from(chance * absent)

    def _of_the_others(self, epsilons: Floats) -> Floats:
        """Return bounds where it is not: zeta of the proof, at most 1."""
        factors = np.expm1(epsilons) * (1 - self.rate) / self.rate
        bounds = np.minimum(self._by_chernoff(factors), 1.0)
        alone = self.sample_size - 1 < 2 * (self.threshold - 1)
        if alone and self.num_clients <= _FEW_CLIENTS:
            bounds = np.minimum(bounds, self._by_one_prefix(factors))
        return bounds

    def _by_chernoff(self, factors: Floats) -> Floats:
        """Return bounds on zeta from independent counts, given their sum."""
        # max over u of (1 - factor u)_+ e**(tilt u), for every factor and tilt.
        ratio = _TILTS[None, :] / factors[:, None]
        constant = np.where(ratio <= 1, 0.0, ratio - 1 - np.log(np.maximum(ratio, 1.0)))
        return np.asarray(np.exp(np.minimum((constant + self._log_moments).min(axis=1), 0.0)))

    @cached_property
    def _log_moments(self) -> Floats:
        """Return bounds on ln E e**(tilt (f - 1)), f the share of clients who would change T."""
        others, sampled = self.num_clients - 1, self.sample_size - 1
        votes = self.threshold - 1
        chance = max(sampled, 0.5) / others
        most = _grid(self.threshold, others, _COARSE)
        if not len(most):
            return -_TILTS
        fewest = np.concatenate([most[:1], most[:-1] + 1])
        # The probability of so many votes has one mode in the number of holders.
        likely = np.clip(np.floor(votes / chance), fewest, most)
        log_pivotal = np.minimum(log_binomial(likely, votes, chance), 0.0)
        share = np.minimum((most - votes) / (self.num_clients - self.sample_size), 1.0)
        tilted = _TILTS[:, None] * share[None, :]
        moments = np.logaddexp(0.0, log_pivotal + tilted + np.log(-np.expm1(-tilted)))
        largest = others * (moments / fewest).max(axis=1)
        total = log_binomial(np.asarray(float(others)), sampled, chance, upwards=False)
        return np.asarray(largest - _TILTS - total)

    def _by_one_prefix(self, factors: Floats) -> Floats:
        """Return bounds on zeta where no two prefixes can lack one vote at a time."""
        others, votes = self.num_clients - 1, self.threshold - 1
        holders = np.arange(self.threshold, others + 1, dtype=np.float64)
        chance = np.exp(
            log_hypergeometric(others, holders, self.sample_size - 1, np.float64(votes))
        )
        left = 1 - (holders - votes) / (self.num_clients - self.sample_size)
        bounds = np.empty(len(factors))
        for place, factor in enumerate(factors):
            terms = chance * np.maximum(1 - factor * np.maximum(left, 0.0), 0.0)
            # From a factor of 2 on, a prefix counts only if most of the others hold it.
            several = others * (terms / holders).max(initial=0.0)
            bounds[place] = terms.max(initial=0.0) if factor >= 2 else several
        return bounds


def _grid(first: int, last: int, ratio: float) -> Floats:
    """Return whole numbers from first to last, every one or so many that neighbors are close."""
    if last < first:
        return np.zeros(0)
    dense = np.arange(first, min(last, math.ceil(1 / (ratio - 1)) + first) + 1)
    steps = max(2, math.ceil(math.log(last / dense[-1]) / math.log(ratio)) + 1)
    sparse = np.floor(np.geomspace(dense[-1], last, steps))
    grid = np.unique(np.concatenate([dense, sparse, [last]]))
    return grid[grid <= last].astype(np.float64)


def _sums_from(terms: Floats) -> Floats:
    """Return row-wise sums of each term and all after it, and 0 at the end."""
    padded = np.pad(terms, ((0, 0), (0, 1)))
    return np.asarray(np.cumsum(padded[:, ::-1], axis=1)[:, ::-1])
