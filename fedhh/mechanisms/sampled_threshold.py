"""Central privacy from sampling and a threshold, without noise: TrieHH's theorem as arithmetic.

Source: Zhu, Kairouz, McMahan, Sun, Li (2020), "Federated heavy hitters discovery with differential
privacy", AISTATS, the privacy theorem of TrieHH and its corollary; the settings agree with those of
the authors' code. The unit is a user with one word (or one vote drawn from its words) per round.
Neighbors swap one user; for one round, tests confirm by enumeration that the theorem covers that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fedhh.mechanisms.base import Mechanism
from fedhh.validation import InputError, require_at_least, require_inside, require_positive

LEAST_THRESHOLD = 4
"""The fewest votes that the theorem covers."""


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


def triehh_parameters(
    *, num_clients: int, epsilon: float, delta: float, num_rounds: int
) -> TrieHHParameters:
    """Return the least threshold and the largest sample with (epsilon, delta) privacy.

    The threshold follows from delta alone (and is at least e**(epsilon / num_rounds) - 1); the
    sample then from epsilon.

    Args:
        num_clients: Users n of the population.
        epsilon: Central privacy of the whole discovery.
        delta: Its delta.
        num_rounds: Rounds L: symbols of the longest word, the end symbol included.

    Raises:
        InputError: The population is too small for the target.

    >>> triehh_parameters(num_clients=650_000, epsilon=4.0, delta=2.3e-12, num_rounds=10)
    TrieHHParameters(threshold=15, sample_size=14286)
    """
    require_at_least(1, num_clients=num_clients, num_rounds=num_rounds)
    require_positive(epsilon=epsilon)
    require_inside(0, 1, delta=delta)
    threshold = max(LEAST_THRESHOLD, math.ceil(math.expm1(epsilon / num_rounds)))
    while triehh_delta(threshold) > delta:
        threshold += 1
    sample_size = math.floor(num_clients * -math.expm1(-epsilon / num_rounds) / threshold)
    if threshold > math.sqrt(num_clients) or sample_size < threshold:
        raise InputError(
            f"Expected more clients for epsilon={epsilon} and delta={delta}: the threshold is "
            f"{threshold} votes, but num_clients={num_clients:,} allow a sample of only "
            f"{sample_size:,}. Raise epsilon, or ask a larger population."
        )
    return TrieHHParameters(threshold=threshold, sample_size=sample_size)


def triehh_epsilon(*, num_clients: int, sample_size: int, threshold: int, num_rounds: int) -> float:
    """Return the central epsilon of TrieHH: L ln(1 + 1 / (n / (m theta) - 1)).

    The paper writes m = gamma sqrt(n).

    Args:
        num_clients: Users n.
        sample_size: Users m asked per round.
        threshold: Votes theta that keep a prefix.
        num_rounds: Rounds L.

    Raises:
        InputError: The theorem does not cover these settings.
    """
    require_at_least(1, num_clients=num_clients, sample_size=sample_size, num_rounds=num_rounds)
    require_at_least(LEAST_THRESHOLD, threshold=threshold)
    if sample_size * (threshold + 1) > num_clients or threshold**2 > num_clients:
        raise InputError(
            f"Expected sample_size * (threshold + 1) <= num_clients and threshold**2 <= "
            f"num_clients, got {sample_size} * {threshold + 1} and {threshold**2} with "
            f"num_clients={num_clients}."
        )
    return -num_rounds * math.log1p(-sample_size * threshold / num_clients)


def triehh_delta(threshold: int) -> float:
    """Return the delta of TrieHH: (theta - 2) / ((theta - 3) theta!).

    Args:
        threshold: Votes theta that keep a prefix, at least 4.
    """
    require_at_least(LEAST_THRESHOLD, threshold=threshold)
    return (threshold - 2) / ((threshold - 3) * math.factorial(threshold))
