"""User level: two valid bounds, the shortcut that is not one, and composition."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest

from fedhh.accounting import (
    Clones,
    Clones2023,
    NotApplicable,
    Precision,
    Use,
    composed_epsilon,
    disjoint_epsilon,
    group_epsilon,
    subset_selection_blanket,
    user_level_epsilon,
)
from fedhh.accounting.composition import QUICK
from fedhh.accounting.user_level import user_level_from
from fedhh.validation import InputError

GBOARD = {"local_epsilon": 10.0, "num_clients": 500_000, "max_items": 60}


# Independently computed reference, to three digits.
@pytest.mark.parametrize(
    ("delta", "groups", "slots", "blanket_slots"),
    [(1e-6, 27.5, 24.9, 8.62), (1e-8, 30.4, 30.6, 10.05), (1e-10, 32.9, 36.0, 11.30)],
)
def test_gboards_users_have_the_known_epsilons(delta, groups, slots, blanket_slots):
    found = user_level_epsilon(bound="clones", **GBOARD, delta=delta)
    assert found.slots == pytest.approx(slots, rel=3e-3)
    # The reference searched its groups on a grid; ours are tighter, and checked below.
    assert 0.985 * groups <= found.groups <= groups
    assert found.epsilon == min(found.groups, found.slots)
    assert found.method == ("slots" if found.slots < found.groups else "groups")
    tight = user_level_epsilon(bound="blanket", **GBOARD, delta=delta, domain_size=1_000_001)
    assert tight.slots == pytest.approx(blanket_slots, rel=3e-3)


@pytest.mark.parametrize("steps", [1, 2, 7, 60])
def test_the_group_bound_is_the_smallest_that_its_formula_allows(steps):
    bound = Clones(local_epsilon=6.0, num_reports=10**5)
    delta = 1e-8
    found = group_epsilon(bound, steps=steps, delta=delta)

    def of_group(each: float) -> float:
        return bound.delta(each) * sum(math.exp(each * i) for i in range(steps))

    assert of_group(found / steps * (1 + 1e-12)) <= delta * (1 + 1e-4)
    finer = np.linspace(0, found / steps, 300)[:-1]
    assert all(of_group(float(each)) > delta * (1 - 1e-4) for each in finer)


def randomized_response_of_one_user(
    epsilon: float, *, local_epsilon: float, num_clients: int, max_items: int
) -> float:
    """Exact delta of the sum of all bits when one client turns all its bits, the others hold 0."""
    flip = 1 / (math.exp(local_epsilon) + 1)

    def law(bits: int, one: float) -> np.ndarray:
        return np.array(
            [math.exp(math.lgamma(bits + 1) - math.lgamma(k + 1) - math.lgamma(bits - k + 1)
                      + k * math.log(one) + (bits - k) * math.log1p(-one))
             for k in range(bits + 1)]
        )  # fmt: skip

    others = law((num_clients - 1) * max_items, flip)
    first, second = (np.convolve(others, law(max_items, one)) for one in (flip, 1 - flip))
    return max(
        float(np.maximum(a - math.exp(epsilon) * b, 0).sum())
        for a, b in ((first, second), (second, first))
    )


def test_composing_the_pair_of_all_reports_would_be_wrong():
    case = {"local_epsilon": 2.0, "num_clients": 500, "max_items": 10}
    truth = randomized_response_of_one_user(1.0, **case)
    assert truth == pytest.approx(2.9e-4, rel=0.01)
    # The shortcut, written out by hand: ten uses of the pair for n = N B = 5,000.
    for bound in (Clones, Clones2023):
        all_reports = bound(local_epsilon=2.0, num_reports=5000)
        shortcut = composed_epsilon([Use(bound=all_reports, times=10)], delta=truth)
        assert shortcut < 0.5
        assert randomized_response_of_one_user(shortcut, **case) > 10 * truth
    # Both valid bounds hold here.
    found = user_level_epsilon(bound="clones", **case, delta=truth)
    for epsilon in (found.groups, found.slots):
        assert randomized_response_of_one_user(epsilon, **case) <= truth


def test_the_shortcut_cannot_be_asked_for():
    assert "num_reports" not in inspect.signature(user_level_epsilon).parameters
    asked = []

    def of_reports(num_reports):
        asked.append(num_reports)
        return Clones(local_epsilon=2.0, num_reports=num_reports)

    user_level_from(of_reports, num_clients=500, max_items=10, delta=1e-6)
    assert sorted(asked) == [500, 5000]


@pytest.mark.parametrize("max_items", [1, 3])
@pytest.mark.parametrize("bound", ["clones", "blanket"])
def test_user_level_bounds_are_above_exact_randomized_response(bound, max_items):
    case = {"local_epsilon": 1.0, "num_clients": 60, "max_items": max_items}
    for delta in (1e-6, 1e-3):
        found = user_level_epsilon(bound=bound, **case, delta=delta, domain_size=2)
        for epsilon in (found.groups, found.slots):
            assert epsilon <= max_items * 1.0 * (1 + 1e-9)
            assert randomized_response_of_one_user(epsilon, **case) <= delta


def test_composition_of_pure_randomizers_is_that_of_two_atoms():
    # With two reports and one clone improbable the pair is all but randomized response, whose
    # k-fold composition is a sum over binomial counts.
    local_epsilon, times = 10.0, 4
    bound = Clones(local_epsilon=local_epsilon, num_reports=2)
    p = 1 / (1 + math.exp(-local_epsilon))

    def exact(epsilon: float) -> float:
        total = 0.0
        for k in range(times + 1):
            loss = (times - 2 * k) * local_epsilon
            weight = math.comb(times, k) * p ** (times - k) * (1 - p) ** k
            total += weight * max(0.0, -math.expm1(epsilon - loss))
        return total

    for delta in (1e-3, 1e-6):
        found = composed_epsilon([Use(bound=bound, times=times)], delta=delta)
        assert exact(found) <= delta
        assert exact(found - 0.05) > delta * 0.9


def test_one_use_costs_what_the_bound_says_and_more_cost_more():
    bound = subset_selection_blanket(
        local_epsilon=6.0, num_reports=5000, domain_size=300, subset_size=1
    )
    alone = bound.epsilon(1e-6)
    once = composed_epsilon([Use(bound=bound, times=1)], delta=1e-6)
    assert alone <= once <= alone * 1.01
    twice = composed_epsilon([Use(bound=bound, times=2)], delta=1e-6)
    mixed = composed_epsilon(
        [
            Use(bound=bound, times=1),
            Use(bound=Clones(local_epsilon=6.0, num_reports=5000), times=1),
        ],
        delta=1e-6,
    )
    assert once < twice < 2 * alone
    assert twice < mixed
    # Coarser is looser, by little.
    coarse = composed_epsilon([Use(bound=bound, times=2)], delta=1e-6, precision=QUICK)
    assert twice <= coarse <= twice * 1.005
    coarsest = Precision(grid_points=40, tolerance=1e-2)
    assert composed_epsilon([Use(bound=bound, times=2)], delta=1e-6, precision=coarsest) > coarse


def test_composition_says_when_double_precision_ends():
    bound = Clones(local_epsilon=4.0, num_reports=10**8)
    found = composed_epsilon([Use(bound=bound, times=1000)], delta=1e-14)
    assert isinstance(found, NotApplicable)
    assert "double precision" in found.reason
    assert isinstance(composed_epsilon([Use(bound=bound, times=1000)], delta=1e-11), float)


def test_what_is_already_private_composes_to_0():
    bound = Clones(local_epsilon=0.1, num_reports=10**9)
    assert composed_epsilon([Use(bound=bound, times=2)], delta=0.1) == 0.0


def test_disjoint_cohorts_cost_the_worst_of_them():
    bounds = [Clones(local_epsilon=6.0, num_reports=n) for n in (10**5, 4000, 10**6)]
    worst = max(bound.epsilon(1e-8) for bound in bounds)
    assert disjoint_epsilon(bounds, delta=1e-8) == pytest.approx(worst, rel=1e-9)


def test_clients_without_exactly_b_reports_have_no_slots():
    found = user_level_from(
        lambda n: Clones(local_epsilon=2.0, num_reports=n),
        num_clients=500,
        max_items=10,
        num_reports=3000,
        delta=1e-6,
    )
    assert isinstance(found.slots, NotApplicable)
    assert found.epsilon == found.groups
    assert found.method == "groups"
    fewer_hide_less = user_level_epsilon(
        bound="clones", local_epsilon=2.0, num_clients=500, max_items=10, delta=1e-6
    )
    assert found.groups > fewer_hide_less.groups


def test_reused_clients_cost_more():
    def of_uses(uses):
        return user_level_from(
            lambda n: Clones(local_epsilon=2.0, num_reports=n),
            num_clients=10**5,
            max_items=5,
            delta=1e-6,
            uses=uses,
        )

    once, thrice = of_uses(1), of_uses(3)
    assert 1.3 * once.slots < thrice.slots <= 3 * once.slots
    assert thrice.groups > 2.9 * once.groups


def test_wrong_input_is_named():
    arguments = {"local_epsilon": 2.0, "num_clients": 500, "max_items": 10, "delta": 1e-6}
    for change, message in (
        ({"num_clients": 1}, "num_clients=1"),
        ({"max_items": 0}, "Expected an integer max_items >= 1, got max_items=0"),
        ({"delta": 0.5}, "Expected 1e-14 <= delta <= 0.1"),
    ):
        with pytest.raises(InputError, match=message):
            user_level_epsilon(bound="clones", **{**arguments, **change})
    with pytest.raises(InputError, match="Unknown bound 'closed-form'"):
        user_level_epsilon(bound="closed-form", **arguments)
    with pytest.raises(InputError, match="num_uses=0"):
        composed_epsilon([], delta=1e-6)


def test_slots_of_far_too_few_clients_are_the_sum_without_a_warning():
    # Tests turn warnings into errors.
    few = user_level_epsilon(
        bound="clones", local_epsilon=12.0, num_clients=5_000, max_items=60, delta=1e-10
    )
    assert few.slots <= 60 * 12.0
    assert few.slots > 60 * 11.0
