"""What integer noise on counts costs: check values, exact enumeration, another package."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_distribution import from_discrete_laplace_mechanism
from scipy.special import ndtr

from fedhh.accounting.noise_privacy import (
    least_noise,
    loss_of_move,
    missing_shares_epsilon,
    noise_epsilon,
    pure_epsilon,
)
from fedhh.questions.noise_shares import DiscreteLaplace, NoiseShares, noise_of
from fedhh.validation import InputError
from tests.every import every
from tests.thinned import thinned


def laplace(decay: float) -> DiscreteLaplace:
    return DiscreteLaplace(std=1 / (math.sqrt(2) * math.sinh(decay / 2)))


def exact_delta(
    noise: NoiseShares, moves: tuple[int, ...], epsilon: float, part: float = 1.0
) -> float:
    """The hockey-stick divergence of counts that move, over all values of all counts."""
    masses = noise.distribution(part).masses
    two_sided = np.concatenate([masses[:0:-1], masses])
    here = there = np.ones(1)
    for move in moves:
        padding = np.zeros(abs(move))
        one = np.concatenate([two_sided, padding])
        other = np.concatenate([padding, two_sided])
        if move < 0:
            one, other = other, one
        here, there = np.outer(here, one).ravel(), np.outer(there, other).ravel()
    return float(np.maximum(here - math.exp(epsilon) * there, 0).sum())


def exact_epsilon(noise: NoiseShares, moves: tuple[int, ...], delta: float, part=1.0) -> float:
    low, high = 0.0, 60.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (
            (low, middle) if exact_delta(noise, moves, middle, part) <= delta else (middle, high)
        )
    return high


@pytest.mark.parametrize(
    ("part", "expected"), [(1.0, 0.1575), (0.9, 0.214199), (0.7, 0.392504), (0.5, 0.702184)]
)
def test_missing_shares_cost_what_the_closed_form_says(part, expected):
    # Computed independently, from the closed form at a = .1575 and D = 1.
    assert round(missing_shares_epsilon(0.1575, part), 6) == expected
    ratio = laplace(0.1575).distribution(part).ratios[0]
    assert -math.log(ratio) == pytest.approx(missing_shares_epsilon(0.1575, part), rel=1e-11)


@every("decay", [0.002, 0.3, 2.0])
@every("part", [0.99, 0.5, 0.02])
@every("move", [1, 2, 7])
def test_the_closed_form_is_the_ratio_of_a_numeric_convolution(decay, part, move):
    masses = laplace(decay).distribution(part).masses
    expected = math.log(masses[0] / masses[move])
    assert missing_shares_epsilon(decay, part, move=move) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "epsilon", "delta", "counts", "expected"),
    thinned(
        [
            # Item level, replace-one: two counts. Computed independently; by Renyi divergences
            # Skellam's two are 6.49 and 26.55 (Agarwal, Kairouz, Liu 2021), a tenth too much.
            ("skellam", 1.0, 1e-6, 2, 5.807),
            ("discrete-laplace", 0.315, 1e-10, 2, 8.970),
            ("skellam", 0.315, 1e-10, 2, 25.194),
        ]
    ),
)
def test_the_least_noise_of_an_item_has_the_check_values(name, epsilon, delta, counts, expected):
    std = least_noise(name, epsilon=epsilon, counts=counts, delta=delta)
    assert std == pytest.approx(expected, abs=6e-4)
    stated = noise_epsilon(noise_of(name, std), counts=counts, delta=delta)
    assert epsilon * (1 - 1e-4) <= stated <= epsilon
    less = noise_of(name, std * (1 - 1e-3))
    assert exact_epsilon(less, (1, -1), delta) > epsilon


def gaussian_std(epsilon: float, delta: float, norm: float) -> float:
    """The analytic Gaussian mechanism's standard deviation (Balle, Wang 2018, Theorem 8)."""
    low, high = 1e-3, 1e6
    for _ in range(100):
        std = math.sqrt(low * high)
        a, b = norm / (2 * std), epsilon * std / norm
        spent = ndtr(a - b) - math.exp(epsilon) * ndtr(-a - b)
        low, high = (low, std) if spent <= delta else (std, high)
    return high


def test_sixty_items_take_less_noise_by_their_losses_than_by_adding_epsilons_up():
    noise = {
        name: least_noise(name, epsilon=0.315, counts=120, delta=1e-10)
        for name in ("discrete-laplace", "skellam")
    }
    # 538.7 for epsilons that add up, 205.5 for Skellam by Renyi divergences.
    assert pure_epsilon(noise_of("discrete-laplace", 538.73), total=120) == pytest.approx(
        0.315, rel=1e-4
    )
    assert noise["discrete-laplace"] < 0.51 * 538.7
    gaussian = gaussian_std(0.315, 1e-10, math.sqrt(120))
    assert gaussian == pytest.approx(195.7, abs=0.05)
    assert gaussian * (1 - 1e-4) < noise["skellam"] < gaussian * (1 + 1e-3)


@every("name", ["discrete-laplace", "skellam"])
@every("part", [1.0, 0.8, 0.3])
@every(("std", "delta"), [(1.5, 1e-3), (4.0, 1e-6), (0.4, 1e-4)])
@every("moves", [(1,), (1, -1)])
def test_the_stated_epsilon_is_the_exact_one_rounded_up(name, part, std, delta, moves):
    noise = noise_of(name, std)
    stated = noise_epsilon(noise, counts=len(moves), delta=delta, part=part)
    exact = exact_epsilon(noise, moves, delta, part)
    assert exact * (1 - 1e-9) <= stated <= exact * 1.003 + 1e-9
    # Half the noise would not do.
    half = noise_of(name, std / 2)
    assert exact_delta(half, moves, stated, part) > delta


@pytest.mark.parametrize("name", ["discrete-laplace", "skellam"])
def test_three_counts_and_a_part_of_the_noise(name):
    noise = noise_of(name, 0.8)
    stated = noise_epsilon(noise, counts=3, delta=1e-3, part=0.6)
    exact = exact_epsilon(noise, (1, 1, -1), 1e-3, 0.6)
    assert exact <= stated <= exact * 1.003


@pytest.mark.parametrize(("decay", "counts"), [(0.2, 2), (0.05, 40), (0.01, 300)])
def test_dp_accounting_states_the_same_of_discrete_laplace_noise(decay, counts):
    stated = noise_epsilon(laplace(decay), counts=counts, delta=1e-8)
    other = from_discrete_laplace_mechanism(decay, 1, value_discretization_interval=decay / 4)
    theirs = other.self_compose(counts).get_epsilon_for_delta(1e-8)
    assert stated == pytest.approx(theirs, rel=2e-3)


@pytest.mark.parametrize("decay", [0.05, 0.4, 1.5])
def test_one_count_that_moves_far_costs_more_than_several_that_share_the_way(decay):
    noise = laplace(decay)
    for total in (2, 3, 4):
        far = loss_of_move(noise, total, 1.0, 1)
        for first, second in itertools.combinations_with_replacement(range(1, total), 2):
            if first + second != total:
                continue
            for epsilon in np.linspace(0, total * decay * 0.999, 23).tolist():
                whole = exact_delta(noise, (total,), epsilon)
                assert far.delta(epsilon) == pytest.approx(whole, rel=1e-6, abs=1e-15)
                masses = [loss_of_move(noise, each, 1.0, 1) for each in (first, second)]
                losses = np.add.outer(*(each.losses for each in masses))
                chances = np.multiply.outer(*(each.masses for each in masses))
                shared = (chances * np.maximum(-np.expm1(epsilon - losses), 0)).sum()
                assert shared <= whole * (1 + 1e-6)


def test_moves_in_other_noise_have_no_bound():
    with pytest.raises(InputError, match="a move of 1 under skellam noise"):
        noise_epsilon(noise_of("skellam", 3.0), counts=2, delta=1e-6, move=2)
    with pytest.raises(InputError, match=r"of which 0\.5 arrives"):
        noise_epsilon(noise_of("discrete-laplace", 3.0), counts=2, delta=1e-6, move=2, part=0.5)


def test_an_epsilon_that_no_noise_reaches_is_refused():
    with pytest.raises(InputError, match=r"an epsilon of at least .* got 1e-07; ask for more"):
        least_noise("discrete-laplace", epsilon=1e-7, counts=2, delta=1e-10)
    found = least_noise("discrete-laplace", epsilon=90.0, counts=2, delta=1e-3)
    assert noise_epsilon(noise_of("discrete-laplace", found), counts=2, delta=1e-3) <= 90


@pytest.mark.slow("::test_an_epsilon_that_no_noise_reaches_is_refused")
def test_what_no_noise_reaches_is_refused_with_the_nearest():
    with pytest.raises(InputError, match=r"an epsilon of at least .* got 1e-07; ask for more"):
        least_noise("skellam", epsilon=1e-7, counts=2, delta=1e-10)
    found = least_noise("discrete-laplace", epsilon=90.0, counts=2, delta=1e-10)
    assert noise_epsilon(noise_of("discrete-laplace", found), counts=2, delta=1e-10) <= 90


def test_the_page_shows_what_missing_shares_cost():
    page = (Path(__file__).parents[2] / "docs" / "accounting.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"\| shares that may be missing.*?(?=\n\n)", page, re.DOTALL)
    head, _, *rows = table.split("\n")
    missing = [float(each) / 100 for each in re.findall(r"(\d+)(?= %| \|)", head)]
    assert missing == [0, 0.05, 0.1, 0.2, 0.3, 0.5]
    kinds = itertools.product((2, 20), ("discrete-laplace", "skellam"))
    for row, (counts, name) in zip(rows, kinds, strict=True):
        shown = [float(each.replace(",", "")) for each in re.findall(r"[\d.,]+(?= \|)", row)]
        epsilons = [
            noise_epsilon(noise_of(name, std), counts=counts, delta=1e-10, part=1 - each)
            for std, each in zip(shown, missing, strict=True)
        ]
        assert epsilons == pytest.approx([1.0] * 6, rel=4e-3)


def test_half_of_the_shares_take_more_noise_for_two_counts():
    whole, half = (
        least_noise("discrete-laplace", epsilon=1.0, counts=2, delta=1e-3, part=part)
        for part in (1.0, 0.5)
    )
    assert whole * 1.2 < half


@pytest.mark.slow("::test_half_of_the_shares_take_more_noise_for_two_counts")
def test_fewer_shares_take_more_noise():
    chosen = [
        least_noise("discrete-laplace", epsilon=1.0, counts=20, delta=1e-8, part=part)
        for part in (1.0, 0.9, 0.5)
    ]
    assert chosen == sorted(chosen)
    assert chosen[0] * 1.05 < chosen[1]
