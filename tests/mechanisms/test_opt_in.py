from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from fedhh.mechanisms.opt_in import head_list_threshold, laplace_scale
from fedhh.validation import InputError

EPSILON, DELTA = 1.5, 1e-3


def released(count: int, threshold: float, scale: float) -> np.ndarray:
    """Chances of what becomes of a word: not released, or released with a count in some cell."""
    edges = threshold + np.concatenate([np.linspace(0, 12 * scale, 400), [np.inf]])
    below = np.where(
        edges < count,
        np.exp(-np.abs(edges - count) / scale) / 2,
        1 - np.exp(-np.abs(edges - count) / scale) / 2,
    )
    if count == 0:
        # Nobody holds the word, so nobody draws noise for it.
        return np.concatenate([[1.0], np.zeros(len(edges) - 1)])
    return np.concatenate([below[:1], np.diff(below)])


def lost(before: list[int], after: list[int], threshold: float, records: int) -> float:
    """The delta of these two histograms at EPSILON, outputs rounded to cells."""
    scale = laplace_scale(epsilon=EPSILON, records=records)
    laws = []
    for counts in (before, after):
        law = np.ones(1)
        for count in counts:
            law = np.outer(law, released(count, threshold, scale)).ravel()
        laws.append(law)
    return float(np.maximum(laws[0] - math.exp(EPSILON) * laws[1], 0).sum())


SWAPS = [
    (1, [1, 0], [0, 1]),
    (1, [1, 5], [0, 6]),
    (1, [6, 0], [5, 1]),
    (1, [12, 9], [11, 10]),
    (2, [1, 1], [0, 0]),
    (2, [2, 0], [0, 2]),
    (2, [1, 8], [0, 9]),
]


@pytest.mark.parametrize(("records", "before", "after"), SWAPS)
def test_a_swap_of_one_user_costs_at_most_epsilon_and_delta(records, before, after):
    threshold = head_list_threshold(epsilon=EPSILON, delta=DELTA, records=records)
    assert lost(before, after, threshold, records) <= DELTA
    assert lost(after, before, threshold, records) <= DELTA


def test_a_threshold_that_is_lower_by_one_scale_costs_more():
    for records in (1, 2):
        threshold = head_list_threshold(epsilon=EPSILON, delta=DELTA, records=records)
        scale = laplace_scale(epsilon=EPSILON, records=records)
        worst = max(
            lost(*pair, threshold - scale, records)
            for each, before, after in SWAPS
            for pair in itertools.permutations([before, after])
            if each == records
        )
        assert worst > DELTA


def test_less_noise_costs_more():
    threshold = head_list_threshold(epsilon=EPSILON, delta=DELTA, records=1)
    # Noise for one record, where a user adds two.
    assert lost([8, 8], [6, 10], threshold, 1) > DELTA


def test_settings_without_a_proof_are_refused():
    with pytest.raises(InputError, match=r"a smaller delta for epsilon=0\.1"):
        head_list_threshold(epsilon=0.1, delta=0.5, records=1)
    with pytest.raises(InputError, match="0 < delta < 1"):
        head_list_threshold(epsilon=1.0, delta=1.0, records=1)
