"""Searches return the safe end."""

from __future__ import annotations

import math

import pytest

from fedhh.privacy_loss.search import smallest_epsilon, smallest_true
from tests.accounting.largest_epsilon import largest_epsilon_above
from tests.every import every


def steps(epsilon: float) -> float:
    """A bound in steps of 0.01: the worst case for a search that interpolates."""
    return math.exp(-5 * math.ceil(epsilon * 100) / 100)


@every("function", [lambda e: math.exp(-20 * e), steps, lambda e: 0.5 * (e < 2)])
@every("delta", [1e-14, 1e-3, 0.3])
def test_the_epsilon_found_satisfies_delta_and_hardly_less_would(function, delta):
    found = smallest_epsilon(function, delta=delta, upper=30.0)
    assert function(found) <= delta
    assert function(found * (1 - 1e-7)) > delta
    below = largest_epsilon_above(function, delta=delta, upper=30.0)
    assert function(below) > delta
    assert below == pytest.approx(found, rel=1e-7)


def test_a_useless_guess_from_below_does_no_harm():
    function = lambda epsilon: math.exp(-epsilon)  # noqa: E731
    plain = smallest_epsilon(function, delta=0.1, upper=8.0)
    assert smallest_epsilon(function, delta=0.1, upper=8.0, lower=5.0) == pytest.approx(plain)
    assert smallest_epsilon(function, delta=0.1, upper=8.0, lower=1.0) == pytest.approx(plain)


def test_ends_are_returned_where_nothing_is_between_them():
    assert smallest_epsilon(lambda _: 0.0, delta=0.1, upper=3.0) == 0.0
    assert smallest_epsilon(lambda e: float(e < 3.0), delta=0.1, upper=3.0) == 3.0
    assert largest_epsilon_above(lambda _: 0.0, delta=0.1, upper=3.0) == 0.0


def test_smallest_true_finds_the_border():
    for border in (2, 3, 17, 999_999_999, 10**9):
        assert smallest_true(lambda n, border=border: n >= border, low=2, high=10**9) == border
        assert smallest_true(lambda n, border=border: n >= border, low=1) == border
    assert smallest_true(lambda _: False, low=-2, high=10**9) == 10**9
    assert smallest_true(lambda n: n > -1, low=-7, high=5) == 0
