"""Composition of rounds, where its result is known in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from fedhh.mechanisms.sampled_threshold import composed_epsilon


def randomized_response(pure: float):
    """Deltas of one binary randomized response, in both orders the same."""
    return lambda epsilons: np.maximum(
        (math.exp(pure) - np.exp(epsilons)) / (1 + math.exp(pure)), 0.0
    )


def exact_delta(pure: float, rounds: int, epsilon: float, lost: float = 0.0) -> float:
    truths = np.arange(rounds + 1)
    chance = binom.pmf(truths, rounds, 1 / (1 + math.exp(-pure)))
    losses = pure * (2 * truths - rounds)
    finite = float(chance @ np.maximum(-np.expm1(epsilon - losses), 0))
    any_lost = -math.expm1(rounds * math.log1p(-lost))
    return any_lost + (1 - any_lost) * finite


@pytest.mark.parametrize("rounds", [1, 2, 3, 10, 31])
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-10])
def test_randomized_responses_compose_as_they_do_exactly(rounds, delta):
    pure = 0.25
    got = composed_epsilon(randomized_response(pure), lowest=pure, num_rounds=rounds, delta=delta)
    assert exact_delta(pure, rounds, got) <= delta
    assert exact_delta(pure, rounds, 0.99 * got - 1e-6) > delta or got == 0


def test_what_is_lost_in_every_round_adds_up():
    pure, lost = 0.5, 1e-4
    round_of = randomized_response(pure)

    def deltas(epsilons):
        return lost + (1 - lost) * round_of(epsilons)

    asked = {"lowest": 0.1, "num_rounds": 5}
    assert composed_epsilon(deltas, delta=4.9e-4, **asked) == math.inf
    got = composed_epsilon(deltas, delta=1e-3, **asked)
    assert exact_delta(pure, 5, got, lost) <= 1e-3
    assert got <= 5 * pure
