from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from fedhh.accounting.sample_and_threshold import SampledCounts, sampled_counts
from fedhh.validation import InputError
from tests.accounting.releases_enumerated import divergence
from tests.every import every


def published(holders: int, counts: SampledCounts, most: int) -> np.ndarray:
    """Return the chances that a word is not published, and of each published number."""
    chances = np.zeros(most + 1)
    if holders:
        chances = binom.pmf(np.arange(most + 1), holders, counts.rate)
    else:
        chances[0] = 1.0
    tau = counts.threshold
    return np.concatenate([[chances[:tau].sum()], chances[tau:]])


def literature_delta(counts: SampledCounts, epsilon: float) -> float:
    """Return the exact delta of one client more or less, summed up over numbers of senders."""
    share = 1 - (1 - counts.rate) * math.exp(-epsilon)
    largest = 0.0
    for holders in range(counts.threshold, 3 * math.ceil(counts.threshold / share)):
        first = max(counts.threshold, math.ceil(share * holders))
        senders = np.arange(first, holders + 1)
        terms = binom.pmf(senders, holders, counts.rate) - math.exp(epsilon) * binom.pmf(
            senders, holders - 1, counts.rate
        )
        largest = max(largest, terms.sum())
    return largest


def test_the_published_point():
    counts = SampledCounts(rate=0.1, threshold=20)
    assert f"{counts.delta_of_one(1.0):.2e}" == "2.76e-15"
    # The bound by relative entropy: with c holders at which tau senders are what epsilon allows.
    share = 1 - 0.9 * math.exp(-1.0)
    entropy = share * math.log(share / 0.1) + (1 - share) * math.log((1 - share) / 0.9)
    assert f"{math.exp(-20 / share * entropy):.1e}" == "6.2e-13"


@every("rate", [0.02, 0.1, 0.4, 0.7])
@every("threshold", [1, 5, 20])
@every("epsilon", [0.3, 1.0, 2.5])
def test_delta_is_exact(rate, threshold, epsilon):
    counts = SampledCounts(rate=rate, threshold=threshold)
    expected = literature_delta(counts, epsilon)
    assert expected * (1 - 1e-9) <= counts.delta_of_one(epsilon) <= expected * (1 + 1e-6)


@pytest.mark.parametrize("rate", [0.05, 0.3])
@pytest.mark.parametrize("threshold", [2, 4])
def test_both_orders_bound_every_number_of_holders(rate, threshold):
    counts = SampledCounts(rate=rate, threshold=threshold)
    most = 60
    for epsilon in (0.0, 0.02, 0.1, 0.3, 1.0):
        loss, gain = 0.0, 0.0
        for holders in range(1, most):
            one, other = (published(k, counts, most) for k in (holders, holders - 1))
            loss = max(loss, divergence([one], [other], epsilon))
            gain = max(gain, divergence([other], [one], epsilon))
        at = np.array([epsilon])
        assert loss <= counts.deltas_of_loss(at)[0] * (1 + 1e-9)
        assert gain <= counts.deltas_of_gain(at)[0] * (1 + 1e-9) + 1e-12
        if epsilon > 2 * rate:
            assert loss == pytest.approx(counts.deltas_of_loss(at)[0], rel=1e-6)


def swap_delta(counts: SampledCounts, epsilon: float, most: int) -> float:
    """Return the largest divergence of one word's client that takes another word instead."""
    chances = [published(k, counts, most) for k in range(most + 1)]
    return max(
        divergence([chances[k], chances[other - 1]], [chances[k - 1], chances[other]], epsilon)
        for k in range(1, most, 1)
        for other in range(1, most, 2)
    )


@pytest.mark.parametrize(
    ("rate", "threshold", "delta", "most"), [(0.3, 4, 1e-2, 24), (0.2, 5, 1e-3, 36)]
)
def test_swaps_of_tiny_data_are_within_epsilon_and_delta(rate, threshold, delta, most):
    counts = SampledCounts(rate=rate, threshold=threshold)
    epsilon = counts.epsilon_of_replacement(1, delta=delta)
    found = swap_delta(counts, epsilon, most)
    assert 0.8 * delta < found <= delta
    # Exact delta of one client more or less is too little for a replacement: two words move.
    assert counts.delta_of_one(epsilon) < found
    # Controls: more clients sampled, and fewer votes asked for.
    assert swap_delta(SampledCounts(rate=1.3 * rate, threshold=threshold), epsilon, most) > delta
    assert swap_delta(SampledCounts(rate=rate, threshold=threshold - 1), epsilon, most) > delta


def test_swaps_of_two_words_are_within_epsilon_and_delta():
    counts, delta, most = SampledCounts(rate=0.2, threshold=3), 0.05, 12
    epsilon = counts.epsilon_of_replacement(2, delta=delta)
    assert epsilon > counts.epsilon_of_replacement(1, delta=delta)
    chances = [published(k, counts, most) for k in range(most + 1)]
    found = 0.0
    for lost in itertools.combinations_with_replacement((1, 3, 4, 7), 2):
        for gained in itertools.combinations_with_replacement((1, 5, 11), 2):
            before = [chances[k] for k in lost] + [chances[k - 1] for k in gained]
            after = [chances[k - 1] for k in lost] + [chances[k] for k in gained]
            found = max(found, divergence(before, after, epsilon))
    assert delta / 4 < found <= delta


def test_the_settings_chosen_for_a_large_delta_have_the_privacy():
    found = sampled_counts(epsilon=4.0, delta=1e-3, max_items=1)
    assert found.epsilon_of_replacement(1, delta=1e-3) <= 4.0
    more = SampledCounts(rate=1.02 * found.rate, threshold=found.threshold)
    assert more.epsilon_of_replacement(1, delta=1e-3) > 4.0


@pytest.mark.slow("::test_the_settings_chosen_for_a_large_delta_have_the_privacy")
def test_the_chosen_settings_have_the_privacy_and_need_few_contributors():
    for epsilon, delta, items in ((1.0, 1e-6, 1), (1.0, 1e-6, 3)):
        found = sampled_counts(epsilon=epsilon, delta=delta, max_items=items)
        reached = found.epsilon_of_replacement(items, delta=delta)
        assert epsilon * (1 - 1e-3) <= reached <= epsilon
        needed = found.threshold / found.rate
        for threshold in (found.threshold - 1, found.threshold + 1):
            rate = found.rate * threshold / found.threshold * 1.001
            other = SampledCounts(rate=rate, threshold=threshold)
            assert other.epsilon_of_replacement(items, delta=delta) > epsilon
        # Half of the words with so many contributors are published.
        assert 0.4 < found.release_chance(round(needed)) < 0.6


def test_a_given_rate_gets_the_least_threshold():
    found = sampled_counts(epsilon=1.0, delta=1e-6, max_items=1, rate=0.1)
    assert found.rate == 0.1
    assert found.epsilon_of_replacement(1, delta=1e-6) <= 1.0
    less = SampledCounts(rate=0.1, threshold=found.threshold - 1)
    assert less.epsilon_of_replacement(1, delta=1e-6) > 1.0


def test_a_rate_that_no_threshold_makes_private_is_refused_with_the_largest_that_is():
    with pytest.raises(InputError, match=r"sample_rate <= 0\.\d+, the largest .* sample_rate=0.99"):
        sampled_counts(epsilon=0.1, delta=1e-6, max_items=1, rate=0.99)


def test_where_all_holders_may_be_sampled_the_loss_is_infinite():
    assert SampledCounts(rate=0.5, threshold=2).epsilon_of_replacement(1, delta=0.25) == math.inf
    assert SampledCounts(rate=0.5, threshold=2).epsilon_of_replacement(1, delta=0.6) < math.inf


def test_bounds_that_rise_by_rounding_are_taken_as_they_were_before_it():
    # A threshold of 1: whoever holds a word alone is found with the rate, by every bound.
    counts = SampledCounts(rate=1 / 128, threshold=1)
    assert 0.0 <= counts.epsilon_of_replacement(1, delta=0.01) < 0.02
    assert counts.epsilon_of_replacement(1, delta=0.0078) == math.inf
