"""TrieHH's privacy as its paper states it; fedhh claims nothing by it.

Source: Zhu, Kairouz, McMahan, Sun, Li (2020), "Federated heavy hitters discovery with differential
privacy", AISTATS, the privacy theorem and its corollary; the settings agree with those of the
authors' code. The theorem needs samples of at least sqrt(n) clients, and some swaps exceed its
delta even there; what fedhh claims is in `fedhh.plans.sampled_threshold`.
"""

from __future__ import annotations

import math

from fedhh.plans.sampled_threshold import TrieHHParameters
from fedhh.validation import InputError


def stated_parameters(
    *, num_clients: int, epsilon: float, delta: float, num_rounds: int
) -> TrieHHParameters:
    """Return the paper's least threshold for delta, and its largest sample for epsilon.

    Args:
        num_clients: Users n of the population.
        epsilon: Central privacy of the whole discovery, as the paper states it.
        delta: Its delta.
        num_rounds: Rounds L: symbols of the longest word, the end symbol included.

    Raises:
        InputError: The sample is smaller than sqrt(n), or than the threshold.
    """
    threshold = max(4, math.ceil(math.expm1(epsilon / num_rounds)))
    while stated_delta(threshold) > delta:
        threshold += 1
    sample_size = math.floor(num_clients * -math.expm1(-epsilon / num_rounds) / threshold)
    if sample_size < max(threshold, math.sqrt(num_clients)):
        raise InputError(
            f"Expected a sample of at least sqrt(num_clients) and threshold={threshold} clients, "
            f"got {sample_size:,} with num_clients={num_clients:,}. Raise epsilon, or ask a larger "
            "population."
        )
    return TrieHHParameters(threshold=threshold, sample_size=sample_size)


def stated_epsilon(*, num_clients: int, sample_size: int, threshold: int, num_rounds: int) -> float:
    """Return L ln(1 + 1 / (n / (m theta) - 1)); the paper writes m = gamma sqrt(n).

    Args:
        num_clients: Users n.
        sample_size: Users m asked per round.
        threshold: Votes theta that keep a prefix.
        num_rounds: Rounds L.
    """
    return -num_rounds * math.log1p(-sample_size * threshold / num_clients)


def stated_delta(threshold: int) -> float:
    """Return (theta - 2) / ((theta - 3) theta!).

    Args:
        threshold: Votes theta that keep a prefix, at least 4.
    """
    return (threshold - 2) / ((threshold - 3) * math.factorial(threshold))
