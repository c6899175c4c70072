from __future__ import annotations

import math

import pytest

from fedhh.accounting.triehh import triehh_delta, triehh_epsilon, triehh_parameters
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
