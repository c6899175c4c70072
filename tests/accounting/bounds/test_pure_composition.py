"""Composition of pure privacy against exact sums over binomials, and against other mechanisms."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from fedhh.accounting.bounds.pure_composition import (
    advanced_composition,
    basic_composition,
    early_advanced_composition,
    optimal_composition,
)
from fedhh.accounting.guarantees import NotApplicable
from fedhh.validation import InputError

Kinds = dict[float, int]

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
OTHERS: list[Kinds] = [{math.log(3): 12, 1.0: 9}, {math.pi: 3, 0.11: 30}]
DELTAS = [1e-2, 1e-6, 1e-10]


def exact_delta(kinds: Kinds, epsilon: float) -> float:
    """Return the delta of randomized responses by summing over how many of each kind are true."""
    laws = []
    for each, count in kinds.items():
        true = 1 / (1 + math.exp(-each))
        laws.append(
            [
                (
                    (2 * hits - count) * each,
                    math.comb(count, hits) * true**hits * (1 - true) ** (count - hits),
                )
                for hits in range(count + 1)
            ]
        )
    total = 0.0
    for outcome in itertools.product(*laws):
        loss = sum(part for part, _ in outcome)
        if loss > epsilon:
            total += math.prod(p for _, p in outcome) * -math.expm1(epsilon - loss)
    return total


def optimal(kinds: Kinds, delta: float) -> float:
    found = optimal_composition(list(kinds), list(kinds.values()), delta=delta)
    assert isinstance(found, float)
    return found


@pytest.mark.parametrize("kinds", COMMENSURATE, ids=str)
@pytest.mark.parametrize("delta", DELTAS)
def test_optimal_composition_is_the_exact_sum_over_binomials(kinds: Kinds, delta: float) -> None:
    epsilon = optimal(kinds, delta)
    assert exact_delta(kinds, epsilon) <= delta * (1 + 1e-9)
    # A part in 10**5 of epsilon less, and it no longer holds.
    below = epsilon * (1 - 1e-5) - 1e-4 * delta
    assert epsilon == 0 or exact_delta(kinds, below) > delta


@pytest.mark.parametrize("kinds", OTHERS, ids=str)
@pytest.mark.parametrize("delta", DELTAS)
def test_epsilons_without_a_common_divisor_are_rounded_up(kinds: Kinds, delta: float) -> None:
    epsilon = optimal(kinds, delta)
    assert exact_delta(kinds, epsilon) <= delta * (1 + 1e-9)
    assert exact_delta(kinds, epsilon * 0.995) > delta


def test_a_record_that_is_forgotten_is_noticed() -> None:
    for kinds in COMMENSURATE[1:]:
        first = next(iter(kinds))
        fewer = {**kinds, first: kinds[first] - 1}
        assert exact_delta(kinds, optimal(fewer, 1e-6)) > 1e-6


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
    laws = [[stay if out == value else (1 - stay) / (size - 1) for out in range(size)]
            for value in (0, 1)]  # fmt: skip
    for at in (0.0, 0.7, 1.5, 2.9):
        delta = sum(
            max(
                0.0,
                math.prod(laws[0][out] for out in outs)
                - math.exp(at) * math.prod(laws[1][out] for out in outs),
            )
            for outs in itertools.product(range(size), repeat=count)
        )
        assert delta < exact_delta({epsilon: count}, at)


def test_order_of_the_bounds() -> None:
    rng = np.random.default_rng(5)
    improved = 0
    for _ in range(60):
        kinds = {
            float(each): int(rng.integers(0, 300))
            for each in rng.choice([0.1, 0.25, 0.5, 1.0, 2.0, 4.0], size=3, replace=False)
        }
        delta = float(10.0 ** -rng.uniform(2, 12))
        epsilons, counts = list(kinds), np.array(list(kinds.values()))
        total = float(basic_composition(epsilons, counts))
        later = float(advanced_composition(epsilons, counts, delta=delta))
        early = float(early_advanced_composition(epsilons, counts, delta=delta))
        best = optimal(kinds, delta)
        assert best <= later * (1 + 1e-9)
        assert best <= early * (1 + 1e-9)
        assert later <= total
        improved += later < total
    assert improved > 20


def test_advanced_composition_by_hand() -> None:
    epsilons, counts, delta = [0.1], np.array([10_000]), 1e-6
    mean = 10_000 * 0.1 * math.tanh(0.05)
    spread = math.sqrt(2 * 10_000 * 0.01 * math.log(1e6))
    assert advanced_composition(epsilons, counts, delta=delta) == pytest.approx(mean + spread)
    early = 10_000 * 0.1 * math.expm1(0.1) + spread
    assert early_advanced_composition(epsilons, counts, delta=delta) == pytest.approx(early)
    # With a delta this large, the other logarithm is the smaller one.
    counts, delta = np.array([4]), 0.09
    logs = min(math.log(math.e + math.sqrt(4 * 0.01) / delta), math.log(1 / delta))
    bound = 0.4 * math.tanh(0.05) + math.sqrt(2 * 0.04 * logs)
    assert advanced_composition(epsilons, counts, delta=delta) == pytest.approx(min(0.4, bound))
    assert logs < math.log(1 / 0.09) or bound > 0.4
    many = advanced_composition([1.0, 2.0], np.array([[0, 0], [3, 1], [500, 100]]), delta=1e-6)
    assert many.shape == (3,)
    assert many[:2].tolist() == [0, 5]


def test_no_record_costs_nothing_and_no_randomizer_everything() -> None:
    epsilons, counts = [1.0, math.inf], np.array([[0, 0], [2, 0], [2, 1]])
    assert basic_composition(epsilons, counts).tolist() == [0, 2, math.inf]
    assert advanced_composition(epsilons, counts, delta=1e-6).tolist() == [0, 2, math.inf]
    assert early_advanced_composition(epsilons, counts, delta=1e-6)[2] == math.inf
    assert optimal_composition([1.0, math.inf], [0, 0], delta=1e-6) == 0
    assert optimal_composition([1.0, math.inf], [1, 1], delta=1e-6) == math.inf


def test_what_cannot_be_certified_is_not_claimed() -> None:
    found = optimal_composition([math.pi, 0.11], [300, 3000], delta=1e-14)
    assert isinstance(found, NotApplicable)
    assert "double precision" in found.reason
    with pytest.raises(InputError, match="delta"):
        optimal_composition([1.0], [1], delta=0.5)
    with pytest.raises(InputError, match="epsilon"):
        optimal_composition([0.0], [1], delta=1e-6)
    with pytest.raises(InputError, match="count"):
        optimal_composition([1.0], [-1], delta=1e-6)
