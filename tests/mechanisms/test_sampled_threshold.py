from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import gammaln

from fedhh.mechanisms.sampled_threshold import triehh_delta, triehh_epsilon, triehh_parameters
from fedhh.validation import InputError


@pytest.mark.parametrize(
    ("num_clients", "expected"),
    # The second is a published result of the authors' code for 123,831,776 clients.
    [(650_000, (15, 14_286)), (123_831_776, (15, 2_721_656))],
)
def test_parameters_are_those_of_independent_computations(num_clients, expected):
    got = triehh_parameters(num_clients=num_clients, epsilon=4.0, delta=2.3e-12, num_rounds=10)
    assert (got.threshold, got.sample_size) == expected


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 4.0, 8.0])
@pytest.mark.parametrize("delta", [1e-6, 1e-10])
def test_parameters_are_the_largest_sample_and_the_least_threshold_within_the_target(
    epsilon, delta
):
    n, rounds = 1_000_000, 11
    got = triehh_parameters(num_clients=n, epsilon=epsilon, delta=delta, num_rounds=rounds)
    settings = {"num_clients": n, "threshold": got.threshold, "num_rounds": rounds}
    assert triehh_epsilon(sample_size=got.sample_size, **settings) <= epsilon
    assert triehh_epsilon(sample_size=got.sample_size + 1, **settings) > epsilon
    assert triehh_delta(got.threshold) <= delta
    assert got.threshold == 4 or triehh_delta(got.threshold - 1) > delta


def test_epsilon_is_the_papers_formula():
    n, m, theta, rounds = 650_000, 14_286, 15, 10
    gamma = m / math.sqrt(n)
    expected = rounds * math.log(1 + 1 / (math.sqrt(n) / (gamma * theta) - 1))
    got = triehh_epsilon(num_clients=n, sample_size=m, threshold=theta, num_rounds=rounds)
    assert math.isclose(got, expected, rel_tol=1e-12)


def test_delta_is_the_papers_formula():
    assert math.isclose(triehh_delta(4), 2 / 24)
    assert math.isclose(triehh_delta(15), 13 / (12 * math.factorial(15)))


def test_targets_that_a_population_cannot_meet_are_refused():
    with pytest.raises(InputError, match="Raise epsilon, or ask a larger population"):
        triehh_parameters(num_clients=1_000, epsilon=0.1, delta=1e-10, num_rounds=10)


def test_settings_outside_the_theorem_are_refused():
    with pytest.raises(InputError, match="threshold >= 4, got threshold=3"):
        triehh_delta(3)
    with pytest.raises(InputError, match="sample_size"):
        triehh_epsilon(num_clients=1_000, sample_size=200, threshold=5, num_rounds=10)
    with pytest.raises(InputError, match="0 < delta < 1"):
        triehh_parameters(num_clients=1_000, epsilon=1.0, delta=0.0, num_rounds=10)


def kept_law(n, m, a, b, threshold):
    """Chance of each of (both, only a, only b, none) kept, for words that a and b clients hold."""
    x, y = np.arange(min(a, m) + 1)[:, None], np.arange(min(b, m) + 1)[None, :]
    rest = m - x - y
    possible = (rest >= 0) & (rest <= n - a - b)
    log_p = (
        log_comb(a, x) + log_comb(b, y) + log_comb(n - a - b, np.clip(rest, 0, n - a - b))
    ) - log_comb(n, m)
    p = np.where(possible, np.exp(log_p), 0.0)
    kept = np.stack(np.broadcast_arrays(x >= threshold, y >= threshold))
    return np.array([p[(kept[0] == i) & (kept[1] == j)].sum() for i in (0, 1) for j in (0, 1)])


def log_comb(n, k):
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def worst_delta(n, m, threshold, epsilon):
    """Largest exact delta of one round over neighbors that swap a vote for another."""
    worst = 0.0
    for a in [*range(threshold - 1, 4 * threshold), n // 4, n // 3]:
        for b in (0, threshold - 1, threshold, 2 * threshold, 4 * threshold, n // 4):
            p, q = (kept_law(n, m, a + i, b + 1 - i, threshold) for i in (1, 0))
            for first, second in ((p, q), (q, p)):
                worst = max(worst, float(np.maximum(first - np.exp(epsilon) * second, 0).sum()))
    return worst


@pytest.mark.parametrize(("n", "m", "threshold"), [(300, 20, 5), (400, 40, 8), (1_000, 60, 10)])
def test_one_round_is_as_private_as_the_theorem_says_for_swapped_users(n, m, threshold):
    epsilon = triehh_epsilon(num_clients=n, sample_size=m, threshold=threshold, num_rounds=1)
    delta = triehh_delta(threshold)
    assert 0 < worst_delta(n, m, threshold, epsilon) <= delta
    # A hundredth of the epsilon would not do.
    assert worst_delta(n, m, threshold, epsilon / 100) > delta
