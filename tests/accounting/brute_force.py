"""Whole shuffles enumerated, for small domains and cohorts: what the bounds must not miss."""

from __future__ import annotations

import itertools
import math

import numpy as np


def subset_selection_distribution(
    local_epsilon: float, domain_size: int, subset_size: int
) -> np.ndarray:
    """``(values, reports)``: probabilities of all d-subsets, from the definition alone."""
    growth = math.exp(local_epsilon)
    subsets = list(itertools.combinations(range(domain_size), subset_size))
    distribution = np.array(
        [[growth if v in s else 1.0 for s in subsets] for v in range(domain_size)]
    )
    return distribution / distribution.sum(axis=1, keepdims=True)


def multiset_distribution(distribution: np.ndarray, values: tuple[int, ...]) -> np.ndarray:
    """Distribution of how often each report occurs, one axis for each report but the last."""
    kinds = distribution.shape[1]
    counts = np.zeros((len(values) + 1,) * (kinds - 1))
    counts[(0,) * (kinds - 1)] = 1.0
    for value in values:
        counts = add_report(counts, distribution[value])
    return counts


def add_report(counts: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Distribution of the counts after one more report; the axes are wide enough."""
    total = counts * probabilities[-1]
    for axis, probability in enumerate(probabilities[:-1]):
        total += probability * np.roll(counts, 1, axis=axis)
    return total


def worst_deltas(distribution: np.ndarray, num_reports: int, epsilons: np.ndarray) -> np.ndarray:
    """Largest hockey-stick divergence over all data of the others, for the pair of values 0, 1.

    Subset selection treats all values alike, so there one pair stands for all.
    """
    worst = np.zeros(len(epsilons))
    for others in itertools.combinations_with_replacement(
        range(distribution.shape[0]), num_reports - 1
    ):
        worst = np.maximum(worst, deltas_given(distribution, others, epsilons))
    return worst


def deltas_given(
    distribution: np.ndarray, others: tuple[int, ...], epsilons: np.ndarray
) -> np.ndarray:
    """Hockey-stick divergences when the other clients hold ``others``, the larger direction."""
    kinds = distribution.shape[1]
    padded = np.zeros((len(others) + 2,) * (kinds - 1))
    padded[(slice(0, len(others) + 1),) * (kinds - 1)] = multiset_distribution(distribution, others)
    first, second = add_report(padded, distribution[0]), add_report(padded, distribution[1])
    return np.array([max(hockey_stick(first, second, e), hockey_stick(second, first, e))
                     for e in epsilons])  # fmt: skip


def hockey_stick(first: np.ndarray, second: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(first - math.exp(epsilon) * second, 0.0).sum())
