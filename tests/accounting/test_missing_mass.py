from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

import fedhh
from fedhh.accounting import largest_release_chances, missing_mass_lower_bound
from fedhh.accounting.noisy_histogram import histogram_release
from fedhh.accounting.sample_and_threshold import SampledCounts
from fedhh.accounting.truncated_geometric import TruncatedGeometric
from fedhh.accounting.weighted_gaussian import weight_releases
from fedhh.validation import InputError

EPSILON, DELTA = 1.0, 1e-6


def test_no_protocol_publishes_a_word_more_often_than_any_mechanism_may():
    holders = np.arange(0, 200)
    most = largest_release_chances(holders, epsilon=EPSILON, delta=DELTA)
    (weighted,) = weight_releases(epsilon=EPSILON, delta=DELTA, max_items=1)
    three = weight_releases(epsilon=EPSILON, delta=DELTA, max_items=1, rounds=3)
    sampled = SampledCounts(rate=0.2, threshold=20)
    assert sampled.epsilon_of_replacement(1, delta=DELTA) <= EPSILON
    settings = {"epsilon": EPSILON, "delta": DELTA, "max_items": 1}
    chances = {
        "Laplace": histogram_release(**settings, noise="laplace").release_chance,
        "Gaussian": histogram_release(**settings, noise="gaussian").release_chance,
        "minimum": histogram_release(**settings, min_contributors=1).release_chance,
        "weights": lambda n: weighted.release_chance(n) if n else 0.0,
        "rounds": lambda n: max(r.release_chance(n) for r in three) if n else 0.0,
        "sample": sampled.release_chance,
    }
    for name, chance in chances.items():
        found = np.array([chance(int(n)) for n in holders])
        assert (found <= most * (1 + 1e-9)).all(), name
        assert found[-1] > 0.99, name
    # Selection that is private for one client more or less is as good as it gets.
    best = TruncatedGeometric(epsilon=EPSILON, delta=DELTA)
    assert [best.chance(int(n)) for n in holders] == most.tolist()


def test_group_privacy_is_what_it_says():
    most = largest_release_chances(np.arange(60), epsilon=0.5, delta=1e-3)
    for fewer, more in pairwise(most):
        assert more <= math.exp(0.5) * fewer + 1e-3 + 1e-12
        assert 1 - fewer <= math.exp(0.5) * (1 - more) + 1e-3 + 1e-12


@pytest.mark.slow("::test_no_protocol_publishes_a_word_more_often_than_any_mechanism_may")
def test_runs_miss_no_less_than_the_bound():
    population = fedhh.synthetic_population("chat", 4_000, seed=0)
    shares = population.word_counts().typed / population.word_counts().typed.sum()
    bound = missing_mass_lower_bound(
        shares, population.word_counts().holders, epsilon=4.0, delta=1e-6
    )
    assert bound > 0.05
    for sampler in ("random", "greedy"):
        protocol = fedhh.TeeHistogram(
            central_epsilon=4.0, delta=1e-6, max_items=20, sampler=sampler, length=30
        )
        coverage = fedhh.simulate(protocol, population, seed=0).metrics.coverage
        assert 0.05 < coverage < 1 - bound


def test_the_bound_adds_up_what_each_word_misses():
    found = missing_mass_lower_bound([0.5, 0.3, 0.2], [0, 1, 10_000], epsilon=1.0, delta=0.01)
    assert found == pytest.approx(0.5 + 0.3 * 0.99)


@pytest.mark.parametrize(
    ("masses", "holders", "message"),
    [([0.5], [-1], "holders >= 0, got -1"), ([0.5], [1, 2], "one for each of 2 words, got 1")],
)
def test_bad_values_are_named(masses, holders, message):
    with pytest.raises(InputError, match=message):
        missing_mass_lower_bound(masses, holders, epsilon=1.0, delta=1e-6)
