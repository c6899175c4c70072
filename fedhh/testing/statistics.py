"""The one statistical test of exact distributions: Pearson's chi-square on counts of categories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

ALPHA = 1e-9
"""Chance that a right sampler fails one test at a fresh seed."""

_FEWEST_EXPECTED = 5


def distribution_p_value(
    draws: Iterable[Hashable] | npt.NDArray[Any], distribution: Mapping[Any, float]
) -> float:
    """Return the p-value of draws under a distribution; 0 if one of them is impossible.

    Categories with fewer than five expected draws are pooled, rarest first.

    Args:
        draws: Independent outcomes; of a table, one in each row, which the distribution has as a
            tuple.
        distribution: Each outcome's probability.
    """
    counts = Counter(_outcomes(draws) if isinstance(draws, np.ndarray) else draws)
    if any(distribution.get(outcome, 0.0) <= 0 for outcome in counts):
        return 0.0
    num_draws = sum(counts.values())
    outcomes = sorted(
        (o for o in distribution if distribution[o] > 0), key=lambda o: distribution[o]
    )
    observed, expected = [0.0], [0.0]
    for outcome in outcomes:
        if expected[-1] >= _FEWEST_EXPECTED:
            observed.append(0.0)
            expected.append(0.0)
        observed[-1] += counts[outcome]
        expected[-1] += num_draws * distribution[outcome]
    if expected[-1] < _FEWEST_EXPECTED and len(expected) > 1:
        observed[-2] += observed.pop()
        expected[-2] += expected.pop()
    if len(expected) == 1:
        return 1.0
    scale = num_draws / sum(expected)
    return float(stats.chisquare(observed, np.array(expected) * scale).pvalue)


def follows_distribution(
    draws: Iterable[Hashable] | npt.NDArray[Any], distribution: Mapping[Any, float]
) -> bool:
    """Return whether `distribution_p_value` is above `ALPHA`."""
    return distribution_p_value(draws, distribution) > ALPHA


def rows(array: npt.NDArray[Any]) -> list[tuple[Any, ...]]:
    """Return one hashable outcome per entry of the first axis."""
    return [tuple(row) for row in np.asarray(array).reshape(len(array), -1).tolist()]


def _outcomes(array: npt.NDArray[Any]) -> list[Any]:
    """Return one hashable outcome per entry, of a table per row."""
    entries: list[Any] = rows(array) if array.ndim > 1 else array.tolist()
    return entries
