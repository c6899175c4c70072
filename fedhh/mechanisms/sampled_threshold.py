"""Central privacy from sampling and a threshold, without noise: what TrieHH rests on.

The mechanism is that of Zhu, Kairouz, McMahan, Sun, Li (2020), "Federated heavy hitters discovery
with differential privacy", AISTATS, Algorithm 1. Its privacy is computed, not taken from that
paper, whose theorem needs samples of at least sqrt(n) clients and does not cover all swaps: the
divergence of a round is bounded over all numbers of holders (docs/accounting.md, section 8), and
rounds are composed by their privacy losses. The unit is a user with one vote, drawn from its words,
per round. Neighbors swap all data of one user.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from fedhh.mechanisms.base import Mechanism
from fedhh.mechanisms.composed_rounds import composed_epsilon
from fedhh.mechanisms.sampled_votes import SampledVotes
from fedhh.validation import InputError, require_at_least, require_inside, require_positive

_GROWTH = 1.25
"""Of one sample size to the next that is tried."""
_PARTS = 1000
"""A sample is the largest to one in so many."""


@dataclass(frozen=True, kw_only=True)
class SampledThreshold(Mechanism):
    """Every round samples clients from all; what too few of them vote for is dropped.

    Attributes:
        sample_size: Clients m asked per round.
        threshold: Votes theta that keep a prefix.
    """

    sample_size: int
    threshold: int
    reuses_clients: bool = True


@dataclass(frozen=True, kw_only=True)
class TrieHHParameters:
    """Settings that a privacy target allows.

    Attributes:
        threshold: Votes theta that keep a prefix.
        sample_size: Users m asked per round.
    """

    threshold: int
    sample_size: int


@lru_cache(maxsize=4096)
def triehh_epsilon(
    *, num_clients: int, sample_size: int, threshold: int, num_rounds: int, delta: float
) -> float:
    """Return an epsilon that TrieHH has at delta; infinite if none is proven.

    The unit is a user, neighbors are swaps; docs/accounting.md, section 8, has the proof.

    Args:
        num_clients: Users n.
        sample_size: Users m asked per round.
        threshold: Votes theta that keep a prefix.
        num_rounds: Rounds L.
        delta: Above 0 and below 1.

    >>> round(triehh_epsilon(num_clients=650_000, sample_size=14_286, threshold=15,
    ...                      num_rounds=10, delta=2.3e-12), 2)
    0.42
    """
    require_at_least(
        1,
        num_clients=num_clients,
        sample_size=sample_size,
        threshold=threshold,
        num_rounds=num_rounds,
    )
    require_inside(0, 1, delta=delta)
    if threshold > sample_size:
        return 0.0  # Nothing is ever kept.
    if sample_size >= num_clients:
        return math.inf
    votes = SampledVotes(num_clients=num_clients, sample_size=sample_size, threshold=threshold)
    return composed_epsilon(
        votes.deltas, lowest=votes.absence_epsilon, num_rounds=num_rounds, delta=delta
    )


@lru_cache(maxsize=256)
def triehh_parameters(
    *, num_clients: int, epsilon: float, delta: float, num_rounds: int
) -> TrieHHParameters:
    """Return the threshold and the sample with (epsilon, delta) privacy that keep most prefixes.

    That is the least share theta / m of a sample that a prefix needs: the threshold is a local
    optimum of it, the sample the largest one for that threshold.

    Args:
        num_clients: Users n of the population.
        epsilon: Central privacy of the whole discovery.
        delta: Its delta.
        num_rounds: Rounds L: symbols of the longest word, the end symbol included.

    Raises:
        InputError: The population is too small for the target.

    >>> triehh_parameters(num_clients=650_000, epsilon=4.0, delta=2.3e-12, num_rounds=10)
    TrieHHParameters(threshold=17, sample_size=112674)
    """
    require_at_least(1, num_clients=num_clients, num_rounds=num_rounds)
    require_positive(epsilon=epsilon)
    require_inside(0, 1, delta=delta)
    search = _Search(num_clients=num_clients, epsilon=epsilon, delta=delta, num_rounds=num_rounds)
    found = search.best()
    if found is None:
        raise InputError(
            f"Expected more clients for epsilon={epsilon} and delta={delta}: no sample of "
            f"num_clients={num_clients:,} and no threshold have this privacy over "
            f"num_rounds={num_rounds}. Raise epsilon or delta, or ask a larger population."
        )
    return found


@dataclass(frozen=True, kw_only=True)
class _Search:
    """The search for the best parameters of a target."""

    num_clients: int
    epsilon: float
    delta: float
    num_rounds: int

    def best(self) -> TrieHHParameters | None:
        """Return a threshold none of whose neighbors has a smaller share, with its sample."""
        best = self._start()
        if best is None:
            return None
        for step in (4, 2, 1):
            while (better := self._better(best, -step) or self._better(best, step)) is not None:
                best = better
        return best

    def _start(self) -> TrieHHParameters | None:
        """Return parameters that do, for a threshold near the best one of large populations."""
        threshold = max(2, math.ceil(-0.7 * math.log(self.delta)))
        # More than (1 - m / n)**-L of losses is rarely affordable.
        top = math.ceil(-math.expm1(-1.5 * self.epsilon / self.num_rounds) * self.num_clients)
        while threshold < self.num_clients:
            sample_size = min(top, self.num_clients - 1)
            while sample_size >= threshold:
                if self._enough(threshold, sample_size):
                    return self._largest(threshold, sample_size)
                sample_size = min(sample_size - 1, math.floor(sample_size / _GROWTH))
            threshold *= 2
        return None

    def _better(self, than: TrieHHParameters, step: int) -> TrieHHParameters | None:
        """Return the parameters of a neighboring threshold if its share is smaller."""
        threshold = than.threshold + step
        # By more than samples are apart, so that the search ends.
        share = (1 - 2 / _PARTS) * than.threshold / than.sample_size
        sample_size = math.ceil(threshold / share)
        if threshold < 1 or not self._enough(threshold, sample_size):
            return None
        return self._largest(threshold, sample_size)

    def _largest(self, threshold: int, enough: int) -> TrieHHParameters:
        """Return a threshold with its largest sample, given one that does."""
        low, high = enough, self.num_clients
        tried = math.ceil(_GROWTH * low)
        while tried < high and self._enough(threshold, tried):
            low, tried = tried, math.ceil(_GROWTH * tried)
        high = min(high, tried)
        while high - low > max(1, low // _PARTS):
            middle = (low + high) // 2
            low, high = (middle, high) if self._enough(threshold, middle) else (low, middle)
        return TrieHHParameters(threshold=threshold, sample_size=low)

    def _enough(self, threshold: int, sample_size: int) -> bool:
        if not threshold <= sample_size < self.num_clients:
            return False
        return self.epsilon >= triehh_epsilon(
            num_clients=self.num_clients,
            sample_size=sample_size,
            threshold=threshold,
            num_rounds=self.num_rounds,
            delta=self.delta,
        )
