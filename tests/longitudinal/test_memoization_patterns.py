"""What is stated of two histories, against the enumeration of all reports."""

import itertools
import math

import numpy as np
import pytest

from fedhh.audit import stated_bits
from fedhh.longitudinal.memoization import dbitflip, one_bit_mean
from fedhh.longitudinal.memoization.bits import same_pattern
from fedhh.validation import InputError
from tests.longitudinal.memoized_histories import (
    TINY,
    distribution_of,
    publics_of,
    publics_of_buckets,
)
from tests.thinned import thinned

TOLERANCE = 1e-9


def enumerated(answer, values, days, publics):
    """Yield each two histories, and their exact epsilon: the worst public draw and report."""
    histories = list(itertools.product(values, repeat=days))
    distributions = np.array(
        [
            [distribution_of(answer, history, public)[1] for history in histories]
            for public in publics
        ]
    )
    for i, j in itertools.combinations(range(len(histories)), 2):
        first, second = distributions[:, i], distributions[:, j]
        possible = np.maximum(first, second) > -math.inf
        yield histories[i], histories[j], float(np.abs(first[possible] - second[possible]).max())


@pytest.mark.parametrize(
    ("num_buckets", "num_drawn", "days"),
    thinned(
        [(2, 1, 2), (3, 1, 2), (3, 1, 3), (3, 2, 2), (4, 1, 2), (4, 2, 2), (4, 3, 2), (3, 2, 3)]
    ),
)
def test_histories_of_buckets_have_a_bound_if_and_only_if_one_is_stated(
    num_buckets, num_drawn, days
):
    answer = dbitflip(epsilon=1.0, num_buckets=num_buckets, num_drawn=num_drawn)
    publics = publics_of_buckets(num_buckets, num_drawn)
    widest = dict.fromkeys(range(1, min(days, num_buckets) + 1), 0.0)
    for first, second, worst in enumerated(answer, range(num_buckets), days, publics):
        stated = answer.epsilon_of_histories(first, second)
        assert worst <= stated + TOLERANCE
        assert (worst == math.inf) == (stated == math.inf)
        if same_pattern(np.array(first), np.array(second)):
            width = len(set(first))
            widest[width] = max(widest[width], worst)
    for width, worst in widest.items():
        assert worst == pytest.approx(answer.epsilon_of_same_pattern(width))


@pytest.mark.parametrize("name", ["basic-rappor", "one-time-rappor"])
def test_histories_of_one_pattern_have_rappors_bound_and_others_what_the_daily_noise_hides(name):
    answer = TINY[name]
    elsewhere = 0.0
    for first, second, worst in enumerated(answer, range(2), 2, publics_of(name)):
        if same_pattern(np.array(first), np.array(second)):
            assert worst <= answer.epsilon_of_histories(first, second) + TOLERANCE
        else:
            elsewhere = max(elsewhere, worst)
    assert (elsewhere == math.inf) == (answer.daily_zero == 0)


@pytest.mark.parametrize(("num_steps", "above"), [(1, 3.079), (2, 2.105)])
def test_one_bit_means_patterns_are_those_of_rounded_values(num_steps, above):
    answer = one_bit_mean(epsilon=0.5, maximum=4.0, num_steps=num_steps)
    on_grid, of_numbers = 0.0, 0.0
    for first, second, worst in enumerated(
        answer, [0.0, 0.5, 2.0, 3.5, 4.0], 2, [np.empty((1, 0), dtype=np.int64)]
    ):
        stated = answer.epsilon_of_histories(first, second)
        assert worst <= stated + TOLERANCE
        if not same_pattern(np.array(first), np.array(second)):
            assert stated == math.inf
            continue
        of_numbers = max(of_numbers, worst)
        if stated < math.inf:
            on_grid = max(on_grid, worst)
    # Two grid points in turn attain it; numbers between them show far more.
    assert on_grid == pytest.approx(answer.epsilon_of_same_pattern(2)) == pytest.approx(1.0)
    assert of_numbers == pytest.approx(above, abs=1e-3)
    # On three days nothing bounds them.
    distributions = [
        distribution_of(answer, history, np.empty((1, 0), dtype=np.int64))[1]
        for history in ([0.0, 0.5, 1.0], [0.0, 1.0, 0.5])
    ]
    assert (np.isneginf(distributions[0]) != np.isneginf(distributions[1])).any()


def test_numbers_are_covered_where_every_offset_rounds_them_alike():
    answer = one_bit_mean(epsilon=0.5, maximum=4.0, num_steps=2)
    assert answer.epsilon_of_histories([0.5, 0.5], [3.1, 3.1]) == pytest.approx(0.5)
    # Two numbers with a grid point between them are never rounded to one; others are, by some.
    assert answer.epsilon_of_histories([0.0, 2.0], [4.0, 2.0]) == pytest.approx(1.0)
    assert answer.epsilon_of_histories([0.0, 2.5], [4.0, 1.0]) == pytest.approx(1.0)
    assert answer.epsilon_of_histories([0.0, 1.5], [4.0, 1.0]) == math.inf
    assert answer.epsilon_of_histories([0.5, 3.5], [3.5, 0.5]) == pytest.approx(1.0)
    # Two numbers that swap are rounded to one, or to two, in both histories.
    assert answer.epsilon_of_histories([0.5, 1.5], [1.5, 0.5]) == pytest.approx(1.0)
    assert answer.epsilon_of_histories([0.5, 1.5], [0.5, 1.0]) == math.inf
    assert answer.epsilon_of_histories([0.0, 2.5], [2.5, 0.0]) == pytest.approx(1.0)


def test_nothing_is_stated_of_numbers_that_are_rounded_to_another_pattern():
    answer = one_bit_mean(epsilon=0.5, maximum=4.0)
    with pytest.raises(InputError, match="once they are rounded"):
        stated_bits(answer, np.resize([0.0, 1.0], 6), np.resize([0.0, 4.0], 6))
    stated = stated_bits(answer, np.resize([0.0, 4.0], 6), np.resize([4.0, 0.0], 6))
    assert stated.epsilon == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [([0, 1], [0], "one length"), ([], [], "at least one day"), ([[0]], [[1]], "at least one day")],
)
def test_what_are_no_two_histories_is_named(first, second, message):
    with pytest.raises(InputError, match=message):
        TINY["dbitflip"].epsilon_of_histories(first, second)
