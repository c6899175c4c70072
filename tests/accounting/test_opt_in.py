from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from fedhh.accounting.opt_in import head_list_threshold, laplace_scale
from fedhh.validation import InputError
from tests.thinned import thinned

EPSILON, DELTA = 1.5, 1e-3
CASES = [(1.5, 1, 1e-3), (0.4, 1, 1e-2), (1.5, 2, 1e-3), (4.0, 2, 1e-3)]


def released(count: int, threshold: float, scale: float, cells: int) -> np.ndarray:
    """Chances of what becomes of a word: not released, or released with a count in some cell."""
    grid = np.linspace(threshold, threshold + 12 * scale, cells)
    # The likelihoods have their kinks at whole counts.
    whole = np.arange(math.ceil(threshold), math.ceil(threshold) + 8)
    edges = np.concatenate([np.union1d(grid, whole[whole > threshold]), [np.inf]])
    below = np.where(
        edges < count,
        np.exp(-np.abs(edges - count) / scale) / 2,
        1 - np.exp(-np.abs(edges - count) / scale) / 2,
    )
    if count == 0:
        # Nobody holds the word, so nobody draws noise for it.
        return np.concatenate([[1.0], np.zeros(len(edges) - 1)])
    return np.concatenate([below[:1], np.diff(below)])


def lost(
    before: tuple[int, ...],
    after: tuple[int, ...],
    threshold: float,
    records: int,
    *,
    epsilon: float = EPSILON,
    cells: int = 100,
) -> float:
    """The delta of these two histograms at epsilon, outputs rounded to cells."""
    scale = laplace_scale(epsilon=epsilon, records=records)
    distributions = []
    for counts in (before, after):
        distribution = np.ones(1)
        for count in counts:
            distribution = np.outer(distribution, released(count, threshold, scale, cells)).ravel()
        distributions.append(distribution)
    return float(np.maximum(distributions[0] - math.exp(epsilon) * distributions[1], 0).sum())


def swaps(records: int, threshold: float):
    """All swaps of a user's records among two words, that few or many others hold."""
    held = [
        each for each in itertools.product(range(records + 1), repeat=2) if sum(each) <= records
    ]
    others = (0, 1, math.ceil(threshold))
    for rest in itertools.product(others, repeat=2):
        for one, other in itertools.permutations(held, 2):
            yield tuple(np.add(rest, one).tolist()), tuple(np.add(rest, other).tolist())


@pytest.mark.parametrize(("epsilon", "records", "delta"), thinned(CASES))
def test_no_swap_costs_more_than_epsilon_and_delta_and_the_worst_one_costs_it(
    epsilon, records, delta
):
    threshold = head_list_threshold(epsilon=epsilon, delta=delta, records=records)
    worst = max(
        lost(*pair, threshold, records, epsilon=epsilon) for pair in swaps(records, threshold)
    )
    assert worst <= delta * (1 + 1e-9)
    # A word that one user alone holds; with several such words, the union bound is loose by that.
    assert worst >= delta * (1 - delta / 2)


@pytest.mark.parametrize("records", [3, 4, 10])
def test_many_records_are_worst_on_one_word_or_on_a_word_each(records):
    for epsilon in (0.5, 2.0, 4.0, 8.0):
        threshold = head_list_threshold(epsilon=epsilon, delta=DELTA, records=records)
        scale = laplace_scale(epsilon=epsilon, records=records)
        worst = 0.0
        for words in range(1, records + 1):
            counts = np.array([records - words + 1, *[1] * (words - 1)])
            kept = np.exp(-(threshold - counts) / scale) / 2
            worst = max(worst, 1 - math.prod((1 - kept).tolist()))
        assert DELTA * (1 - DELTA / 2) <= worst <= DELTA * (1 + 1e-9)


@pytest.mark.parametrize(
    ("epsilon", "records"), thinned([(1.5, 1), (0.4, 1), (1.5, 2), (4.0, 2)], keep=2)
)
def test_on_the_edge_of_the_proof_the_delta_still_holds(epsilon, records):
    one_word, own_words = math.exp(epsilon / 2), records * math.exp(epsilon / 2 / records)
    edge = max(one_word, own_words) / one_word * -math.expm1(-epsilon / 2 / records)
    inside, outside = edge * (1 - 1e-9), edge * (1 + 1e-9)
    threshold = head_list_threshold(epsilon=epsilon, delta=inside, records=records)
    worst = max(
        lost(*pair, threshold, records, epsilon=epsilon) for pair in swaps(records, threshold)
    )
    # The sum over outputs is rounded.
    assert worst <= inside * (1 + 1e-12)
    with pytest.raises(InputError, match=f"a smaller delta for epsilon={epsilon}"):
        head_list_threshold(epsilon=epsilon, delta=outside, records=records)


@pytest.mark.parametrize(("epsilon", "records", "delta"), CASES)
def test_a_threshold_that_is_lower_by_a_tenth_of_the_scale_costs_more(epsilon, records, delta):
    threshold = head_list_threshold(epsilon=epsilon, delta=delta, records=records)
    threshold -= laplace_scale(epsilon=epsilon, records=records) / 10
    worst = max(
        lost(*pair, threshold, records, epsilon=epsilon) for pair in swaps(records, threshold)
    )
    assert worst > 1.05 * delta


def test_less_noise_costs_more():
    threshold = head_list_threshold(epsilon=EPSILON, delta=DELTA, records=1)
    # Noise for one record, where a user adds two.
    assert lost((8, 8), (6, 10), threshold, 1) > DELTA


def test_settings_without_a_proof_are_refused():
    with pytest.raises(InputError, match=r"a smaller delta for epsilon=0\.1"):
        head_list_threshold(epsilon=0.1, delta=0.5, records=1)
    with pytest.raises(InputError, match="0 < delta < 1"):
        head_list_threshold(epsilon=1.0, delta=1.0, records=1)
