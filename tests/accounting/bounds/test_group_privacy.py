"""Group privacy with unequal steps: the inequality, the search for its best, and its limits."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedhh.accounting import Clones, group_epsilon, subset_selection_blanket
from fedhh.validation import InputError
from tests.accounting.brute_force import hockey_stick
from tests.accounting.exact_losses import Shift, delta_of_shift
from tests.thinned import thinned

BOUND = Clones(local_epsilon=6.0, num_reports=10**5)


def test_the_inequality_holds_for_any_distributions_and_any_epsilons():
    rng = np.random.default_rng(5)
    tightest = 0.0
    for _ in range(300):
        distributions = rng.dirichlet(np.full(4, 0.7), size=4)
        epsilons = rng.exponential(0.5, size=3)
        steps = [
            hockey_stick(distributions[i], distributions[i + 1], epsilons[i]) for i in range(3)
        ]
        bound = sum(math.exp(epsilons[:i].sum()) * step for i, step in enumerate(steps))
        truth = hockey_stick(distributions[0], distributions[3], epsilons.sum())
        assert truth <= bound + 1e-12
        if bound > 0:
            tightest = max(tightest, truth / bound)
    # Not by a mile: an inequality that could be halved would be seen here.
    assert tightest > 0.5


@pytest.mark.parametrize("steps", thinned([1, 2, 7, 60], keep=2))
def test_unequal_steps_are_never_worse_than_the_best_equal_ones(steps):
    delta = 1e-8
    found = group_epsilon(BOUND, steps=steps, delta=delta)
    # The right-hand side of the inequality, as it is written.
    assert all(
        BOUND.delta(float(each)) * np.exp(each * np.arange(steps)).sum() > delta
        for each in np.linspace(0, found / steps, 200)[:-1]
    )


def test_two_steps_are_the_best_of_all_pairs():
    delta = 1e-8
    found = group_epsilon(BOUND, steps=2, delta=delta)
    epsilons = np.linspace(0.3 * found, 0.8 * found, 500)
    deltas = np.array([BOUND.delta(float(each)) for each in epsilons])
    keeps = deltas[:, None] + np.exp(epsilons)[:, None] * deltas <= delta
    best = np.where(keeps, epsilons[:, None] + epsilons, math.inf).min()
    assert best * (1 - 2e-3) <= found <= best


def test_one_step_costs_what_the_bound_says():
    assert group_epsilon(BOUND, steps=1, delta=1e-8) == pytest.approx(BOUND.epsilon(1e-8), rel=1e-6)


@pytest.mark.parametrize(("mu", "steps"), [(0.1, 3), (0.05, 40), (0.2, 10)])
def test_gaussian_shifts_add_up_without_loss(mu, steps):
    # Their hybrids are met by one event, so the inequality is an equality for the right epsilons.
    delta = 1e-6
    bound = Shift(distance=mu)
    found = group_epsilon(bound, steps=steps, delta=delta)
    assert delta_of_shift(found, steps * mu) <= delta
    assert delta_of_shift(found * (1 - 5e-3), steps * mu) > delta


def test_a_group_costs_its_local_epsilons_at_most_and_nothing_where_delta_covers_it():
    few = Clones(local_epsilon=16.0, num_reports=3)
    assert group_epsilon(few, steps=3, delta=1e-10) == 48.0
    assert group_epsilon(Shift(distance=0.01), steps=2, delta=0.1) == 0.0


@pytest.mark.slow(
    "::test_a_group_costs_its_local_epsilons_at_most_and_nothing_where_delta_covers_it"
)
def test_huge_groups_and_hopeless_ones_cost_at_most_their_local_epsilons():
    few = Clones(local_epsilon=16.0, num_reports=200)
    assert group_epsilon(few, steps=100, delta=1e-10) == 1600.0
    assert group_epsilon(BOUND, steps=300, delta=1e-8) <= 300 * 6.0
    private = subset_selection_blanket(
        local_epsilon=0.1, num_reports=10**9, domain_size=50, subset_size=24
    )
    assert group_epsilon(private, steps=2, delta=0.1) == 0.0


@pytest.mark.parametrize(
    ("change", "message"), [({"steps": 0}, "steps=0"), ({"delta": 0.0}, "delta=0.0")]
)
def test_wrong_input_is_named(change, message):
    with pytest.raises(InputError, match=message):
        group_epsilon(BOUND, **{"steps": 2, "delta": 1e-8, **change})
