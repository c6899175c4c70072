"""Composition of records with pure privacy against sums over binomials, and other mechanisms."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from fedhh.accounting.bounds.composition import (
    basic_composition,
    optimal_composition,
)
from fedhh.validation import InputError
from tests.accounting.exact_losses import Kinds, delta_of_responses
from tests.accounting.long_double import delta_of_sum, needs_long_double
from tests.every import every

COMMENSURATE: list[Kinds] = [
    {1.0: 1},
    {1.0: 7},
    {0.3: 40},
    {4.0: 60},
    {8.0: 730},
    {1.0: 5, 2.0: 3},
    {2.0: 4, 6.0: 4},
    {1.0: 3, 2.0: 2, 4.0: 1},
    {0.5: 20, 0.75: 9},
]
OTHERS: list[Kinds] = [
    {math.log(3): 12, 1.0: 9},
    {math.pi: 3, 0.11: 30},
    {0.5: 20, math.pi / 3: 15},
]
DELTAS = [1e-2, 1e-6, 1e-10]


def optimal(kinds: Kinds, delta: float) -> float:
    found = optimal_composition(list(kinds), list(kinds.values()), delta=delta)
    assert isinstance(found, float)
    return found


@every("kinds", COMMENSURATE)
@every("delta", DELTAS)
def test_optimal_composition_is_the_exact_sum_over_binomials(kinds: Kinds, delta: float) -> None:
    epsilon = optimal(kinds, delta)
    assert delta_of_responses(kinds, epsilon) <= delta * (1 + 1e-13)
    assert epsilon <= math.fsum(each * count for each, count in kinds.items())
    # A part in 10**5 of epsilon less, and it no longer holds.
    below = epsilon * (1 - 1e-5) - 1e-4 * delta
    assert epsilon == 0 or delta_of_responses(kinds, below) > delta


@every("kinds", OTHERS)
@every("delta", DELTAS)
def test_epsilons_without_a_common_divisor_are_rounded_up(kinds: Kinds, delta: float) -> None:
    epsilon = optimal(kinds, delta)
    assert delta_of_responses(kinds, epsilon) <= delta * (1 + 1e-13)
    assert delta_of_responses(kinds, epsilon * 0.995) > delta


def test_a_record_that_is_forgotten_is_noticed() -> None:
    for kinds in COMMENSURATE[1:]:
        first = next(iter(kinds))
        fewer = {**kinds, first: kinds[first] - 1}
        assert delta_of_responses(kinds, optimal(fewer, 1e-6)) > 1e-6


@pytest.mark.parametrize(("epsilon", "count"), [(1.0, 30), (0.2, 200), (2.0, 12)])
def test_it_agrees_with_dp_accounting(epsilon: float, count: int) -> None:
    from dp_accounting.pld import common, privacy_loss_distribution

    losses = privacy_loss_distribution.from_privacy_parameters(
        common.DifferentialPrivacyParameters(epsilon, 0.0), value_discretization_interval=epsilon
    )
    found = losses.self_compose(count).get_epsilon_for_delta(1e-6)
    assert optimal({epsilon: count}, 1e-6) == pytest.approx(found, rel=1e-6)


def test_randomized_response_is_the_worst_of_its_epsilon() -> None:
    """Three answers of GRR over 4 values, all outputs enumerated, for the worst two inputs."""
    epsilon, size, count = 1.2, 4, 3
    stay = math.exp(epsilon) / (math.exp(epsilon) + size - 1)
    distributions = [[stay if out == value else (1 - stay) / (size - 1) for out in range(size)]
            for value in (0, 1)]  # fmt: skip
    for at in (0.0, 0.7, 1.5, 2.9):
        delta = sum(
            max(
                0.0,
                math.prod(distributions[0][out] for out in outs)
                - math.exp(at) * math.prod(distributions[1][out] for out in outs),
            )
            for outs in itertools.product(range(size), repeat=count)
        )
        assert delta < delta_of_responses({epsilon: count}, at)


@pytest.mark.slow("::test_optimal_composition_is_the_exact_sum_over_binomials")
def test_optimal_composition_is_at_most_the_sum() -> None:
    rng = np.random.default_rng(5)
    improved = 0
    for _ in range(60):
        kinds = {
            float(each): int(rng.integers(0, 300))
            for each in rng.choice([0.1, 0.25, 0.5, 1.0, 2.0, 4.0], size=3, replace=False)
        }
        total = float(basic_composition(list(kinds), np.array(list(kinds.values()))))
        best = optimal(kinds, float(10.0 ** -rng.uniform(2, 12)))
        assert best <= total
        improved += best < total
    assert improved > 20


def test_no_record_costs_nothing_and_no_randomizer_everything() -> None:
    epsilons, counts = [1.0, math.inf], np.array([[0, 0], [2, 0], [2, 1]])
    assert basic_composition(epsilons, counts).tolist() == [0, 2, math.inf]
    assert optimal_composition([1.0, math.inf], [0, 0], delta=1e-6) == 0
    assert optimal_composition([1.0, math.inf], [1, 1], delta=1e-6) == math.inf


@needs_long_double
@pytest.mark.parametrize("delta", [1e-14, 1e-9])
def test_many_records_of_small_deltas_are_on_the_safe_side(delta: float) -> None:
    # 0.11 is eleven hundredths and 3.14 is 314: a grid on which both are exact.
    kinds = {3.14: 300, 0.11: 3000}
    parts = []
    for epsilon, steps in ((3.14, 314), (0.11, 11)):
        masses = np.zeros(2 * steps + 1)
        masses[0], masses[-1] = 1 / (1 + math.exp(epsilon)), 1 / (1 + math.exp(-epsilon))
        parts.append((-steps, masses, 0.0, kinds[epsilon]))
    found = optimal(kinds, delta)
    assert delta_of_sum(parts, gap=0.01, epsilon=found) <= delta
    assert delta_of_sum(parts, gap=0.01, epsilon=0.995 * found) > delta


def test_wrong_input_is_named() -> None:
    with pytest.raises(InputError, match="delta"):
        optimal_composition([1.0], [1], delta=0.5)
    with pytest.raises(InputError, match="epsilon"):
        optimal_composition([0.0], [1], delta=1e-6)
    with pytest.raises(InputError, match="count"):
        optimal_composition([1.0], [-1], delta=1e-6)
