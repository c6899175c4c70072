from __future__ import annotations

import math

import pytest

from fedhh.validation import InputError
from papers.triehh_theorem import stated_delta, stated_epsilon, stated_parameters


@pytest.mark.parametrize(
    ("num_clients", "expected"),
    # The second is a published result of the authors' code for 123,831,776 clients.
    [(650_000, (15, 14_286)), (123_831_776, (15, 2_721_656))],
)
def test_parameters_are_those_of_independent_computations(num_clients, expected):
    got = stated_parameters(num_clients=num_clients, epsilon=4.0, delta=2.3e-12, num_rounds=10)
    assert (got.threshold, got.sample_size) == expected


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 4.0, 8.0])
@pytest.mark.parametrize("delta", [1e-6, 1e-10])
def test_parameters_are_the_largest_sample_and_the_least_threshold_within_the_target(
    epsilon, delta
):
    n, rounds = 1_000_000, 11
    got = stated_parameters(num_clients=n, epsilon=epsilon, delta=delta, num_rounds=rounds)
    settings = {"num_clients": n, "threshold": got.threshold, "num_rounds": rounds}
    assert stated_epsilon(sample_size=got.sample_size, **settings) <= epsilon
    assert stated_epsilon(sample_size=got.sample_size + 1, **settings) > epsilon
    assert stated_delta(got.threshold) <= delta
    assert got.threshold == 4 or stated_delta(got.threshold - 1) > delta


def test_epsilon_and_delta_are_the_papers_formulas():
    n, m, theta, rounds = 650_000, 14_286, 15, 10
    gamma = m / math.sqrt(n)
    expected = rounds * math.log(1 + 1 / (math.sqrt(n) / (gamma * theta) - 1))
    got = stated_epsilon(num_clients=n, sample_size=m, threshold=theta, num_rounds=rounds)
    assert math.isclose(got, expected, rel_tol=1e-12)
    assert math.isclose(stated_delta(4), 2 / 24)
    assert math.isclose(stated_delta(15), 13 / (12 * math.factorial(15)))


def test_samples_below_the_root_of_the_clients_are_not_the_theorems():
    # m 17 and theta 14, of 1,000 clients.
    with pytest.raises(InputError, match="sqrt"):
        stated_parameters(num_clients=1_000, epsilon=2.75, delta=1e-10, num_rounds=11)
