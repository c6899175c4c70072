import numpy as np
import pytest

from fedhh.testing import ALPHA, distribution_p_value, follows_distribution
from fedhh.testing.statistics import rows

PROBABILITIES = {"a": 0.5, "b": 0.3, "c": 0.2}


def draws(probabilities, seed=0, size=20_000):
    return (
        np.random.default_rng(seed).choice(list(PROBABILITIES), p=probabilities, size=size).tolist()
    )


def test_draws_from_the_distribution_pass():
    assert follows_distribution(draws([0.5, 0.3, 0.2]), PROBABILITIES)


@pytest.mark.parametrize("probabilities", [[0.54, 0.28, 0.18], [0.46, 0.32, 0.22]])
def test_draws_from_a_distribution_four_percent_off_fail(probabilities):
    assert distribution_p_value(draws(probabilities), PROBABILITIES) < ALPHA


def test_an_impossible_draw_fails():
    assert distribution_p_value([*draws([0.5, 0.3, 0.2]), "d"], PROBABILITIES) == 0
    assert distribution_p_value(["a", "b"], {"a": 1.0, "b": 0.0}) == 0


@pytest.mark.parametrize("spread", [1, 2**40])
def test_an_array_has_the_p_value_of_its_rows(spread):
    rng = np.random.default_rng(3)
    drawn = rng.integers(-1, 2, size=(4_000, 2)) * spread
    distribution = {(x * spread, y * spread): 1 / 9 for x in (-1, 0, 1) for y in (-1, 0, 1)}
    assert (
        0.01
        < distribution_p_value(drawn, distribution)
        == distribution_p_value(rows(drawn), distribution)
    )
    assert distribution_p_value(drawn != 0, {(True, True): 0.5, (True, False): 0.5}) == 0
    drawn[0] = 5
    assert distribution_p_value(drawn, distribution) == 0
    assert distribution_p_value(drawn[:, 0].astype(float), {0.0: 1.0}) == 0
    single = {value * spread: 1 / 3 for value in (-1, 0, 1)}
    assert (
        1e-6
        < distribution_p_value(drawn[1:, 0], single)
        == distribution_p_value(drawn[1:, 0].tolist(), single)
    )


def test_p_values_of_a_few_draws_are_spread_over_the_unit_interval():
    values = [
        distribution_p_value(draws([0.5, 0.3, 0.2], seed, 500), PROBABILITIES) for seed in range(60)
    ]
    assert 0.35 < np.mean(values) < 0.65
    assert 0 < np.mean(np.array(values) < 0.1) < 0.25


@pytest.mark.slow("::test_p_values_of_a_few_draws_are_spread_over_the_unit_interval")
def test_p_values_of_the_distribution_itself_are_spread_over_the_unit_interval():
    values = [
        distribution_p_value(draws([0.5, 0.3, 0.2], seed, 500), PROBABILITIES)
        for seed in range(400)
    ]
    assert 0.4 < np.mean(values) < 0.6
    assert 0.05 < np.mean(np.array(values) < 0.1) < 0.15


def test_rare_categories_are_pooled_and_still_count():
    distribution = dict.fromkeys(range(5_000), 1e-4) | {"rest": 0.5}
    rng = np.random.default_rng(1)
    right = [int(i) if i < 5_000 else "rest" for i in rng.integers(0, 10_000, size=20_000)]
    wrong = [int(i) if i < 5_000 else "rest" for i in rng.integers(0, 8_000, size=20_000)]
    assert follows_distribution(right, distribution)
    assert not follows_distribution(wrong, distribution)
