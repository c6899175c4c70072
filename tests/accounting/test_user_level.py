"""User level: two valid bounds, the shortcut that is not one, and composition."""

from __future__ import annotations

import inspect
import itertools
import math
from dataclasses import dataclass, replace

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
    subset_selection_blanket,
    user_level,
)
from fedhh.accounting.bounds.composition import FINE, QUICK
from fedhh.accounting.user_level import group_epsilon
from fedhh.arrays import Floats
from fedhh.privacy_loss.binomial import pmf
from fedhh.validation import InputError
from tests.accounting.brute_force import (
    hockey_stick,
    multiset_distribution,
    subset_selection_distribution,
)
from tests.accounting.exact_losses import Response, delta_of_responses
from tests.accounting.users import user_level_epsilon, user_level_from

GBOARD = {"local_epsilon": 10.0, "num_clients": 500_000, "max_items": 60}


# Independently computed reference, to three digits; its groups take equal steps.
@pytest.mark.slow("::test_both_bounds_of_a_few_users_are_above_the_exact_sum_and_not_far")
@pytest.mark.parametrize(
    ("delta", "equal_steps", "slots", "blanket_slots"),
    [(1e-6, 27.5, 24.9, 8.62), (1e-8, 30.4, 30.6, 10.05), (1e-10, 32.9, 36.0, 11.30)],
)
def test_gboards_users_have_the_known_epsilons(delta, equal_steps, slots, blanket_slots):
    found = user_level_epsilon(bound="clones", **GBOARD, delta=delta)
    assert found.slots == pytest.approx(slots, rel=3e-3)
    assert found.groups < 0.82 * equal_steps
    assert found.epsilon == min(found.groups, found.slots)
    assert found.method == ("slots" if found.slots < found.groups else "groups")
    tight = user_level_epsilon(bound="blanket", **GBOARD, delta=delta, domain_size=1_000_001)
    assert tight.slots == pytest.approx(blanket_slots, rel=3e-3)
    # Two bounds that share nothing but the blanket agree where both are tight.
    assert tight.groups == pytest.approx(blanket_slots, rel=3e-3)


@pytest.mark.slow("::test_users_of_a_small_domain_cost_more_than_those_of_a_large_one")
def test_gboards_first_layer_costs_a_user_more_than_a_full_one():
    # docs/reproduction-gboard.md: 9,900 candidates and the dummy.
    first = user_level_epsilon(bound="blanket", **GBOARD, delta=1e-10, domain_size=9_901)
    assert first.slots == pytest.approx(13.64, abs=0.005)
    assert first.groups == pytest.approx(13.5722, abs=1e-4)
    assert first.method == "groups"


def randomized_response_of_one_user(
    epsilon: float, *, local_epsilon: float, num_clients: int, max_items: int
) -> float:
    """Exact delta of the sum of all bits when one client turns all its bits, the others hold 0."""
    flip = 1 / (math.exp(local_epsilon) + 1)

    def distribution(bits: int, one: float) -> np.ndarray:
        return np.array(
            [math.exp(math.lgamma(bits + 1) - math.lgamma(k + 1) - math.lgamma(bits - k + 1)
                      + k * math.log(one) + (bits - k) * math.log1p(-one))
             for k in range(bits + 1)]
        )  # fmt: skip

    others = distribution((num_clients - 1) * max_items, flip)
    first, second = (np.convolve(others, distribution(max_items, one)) for one in (flip, 1 - flip))
    return max(
        float(np.maximum(a - math.exp(epsilon) * b, 0).sum())
        for a, b in ((first, second), (second, first))
    )


@pytest.mark.parametrize(("bound", "lost"), [("clones", 2.0), ("blanket", 1.6)])
def test_both_bounds_of_a_few_users_are_above_the_exact_sum_and_not_far(bound, lost):
    case = {"local_epsilon": 1.0, "num_clients": 30, "max_items": 2}
    found = user_level_epsilon(bound=bound, **case, delta=1e-3, domain_size=2)
    assert found.epsilon == min(found.groups, found.slots)
    assert found.method == ("slots" if found.slots < found.groups else "groups")
    for epsilon in (found.groups, found.slots):
        assert epsilon <= 2.0
        assert randomized_response_of_one_user(epsilon, **case) <= 1e-3
        assert randomized_response_of_one_user(epsilon / lost, **case) > 1e-3


def test_users_of_a_small_domain_cost_more_than_those_of_a_large_one():
    case = {"local_epsilon": 1.0, "num_clients": 10, "max_items": 2, "delta": 1e-2}
    small, large = (
        user_level_epsilon(bound="blanket", **case, domain_size=size) for size in (2, 9)
    )
    assert large.slots < small.slots
    assert large.groups < small.groups


@pytest.mark.slow("::test_the_shortcut_cannot_be_asked_for")
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
    asked = {"num_clients": 5, "max_items": 3, "delta": 1e-2}
    few, many = (
        user_level_from(Clones(local_epsilon=2.0, num_reports=n), **asked) for n in (2, 10**6)
    )
    assert few == many


@pytest.mark.slow("::test_both_bounds_of_a_few_users_are_above_the_exact_sum_and_not_far")
@pytest.mark.parametrize("max_items", [1, 3])
@pytest.mark.parametrize("bound", ["clones", "blanket"])
def test_user_level_bounds_are_above_exact_randomized_response(bound, max_items):
    case = {"local_epsilon": 1.0, "num_clients": 60, "max_items": max_items}
    for delta in (1e-6, 1e-3):
        found = user_level_epsilon(bound=bound, **case, delta=delta, domain_size=2)
        for epsilon in (found.groups, found.slots):
            assert epsilon <= max_items * 1.0 * (1 + 1e-9)
            assert randomized_response_of_one_user(epsilon, **case) <= delta


@pytest.mark.slow(
    "tests/accounting/test_users_of_selection.py::test_bounds_are_above_every_client_among_many"
)
@pytest.mark.parametrize(
    ("local_epsilon", "domain_size", "subset_size"), [(1.0, 3, 1), (2.0, 3, 2), (3.0, 2, 1)]
)
def test_user_level_bounds_are_above_every_client_and_all_data_enumerated(
    local_epsilon, domain_size, subset_size
):
    # Three clients with two reports each; all pairs of a client's data, all data of the others.
    distribution = subset_selection_distribution(local_epsilon, domain_size, subset_size)
    contributions = list(itertools.combinations_with_replacement(range(domain_size), 2))
    others = list(itertools.combinations_with_replacement(range(domain_size), 4))
    distributions = [
        [multiset_distribution(distribution, (*own, *rest)) for own in contributions]
        for rest in others
    ]
    case = {
        "local_epsilon": local_epsilon,
        "num_clients": 3,
        "max_items": 2,
        "domain_size": domain_size,
        "subset_size": subset_size,
    }

    def worst(epsilon: float) -> float:
        return max(
            hockey_stick(first, second, epsilon)
            for given in distributions
            for first, second in itertools.permutations(given, 2)
        )

    for delta in (0.09, 0.01, 1e-4):
        found = user_level_epsilon(bound="blanket", **case, delta=delta)
        for epsilon in (found.groups, found.slots):
            assert worst(epsilon) <= delta
        # The check can fail: a bit less is not private.
        assert worst(0.5 * found.epsilon) > delta


# Slots lose up to half here; what groups lose is the blanket's loss.
@pytest.mark.slow("::test_both_bounds_of_a_few_users_are_above_the_exact_sum_and_not_far")
@pytest.mark.parametrize(("num_clients", "lost"), [(500, 1.26), (2000, 1.35)])
def test_groups_of_unequal_steps_are_close_to_exact_randomized_response(num_clients, lost):
    case = {"local_epsilon": 4.0, "num_clients": num_clients, "max_items": 10}
    found = user_level_epsilon(bound="blanket", **case, delta=1e-6, domain_size=2)
    assert randomized_response_of_one_user(found.epsilon, **case) <= 1e-6
    assert randomized_response_of_one_user(found.groups / lost, **case) > 1e-6
    # The steps themselves lose next to nothing.
    assert joint_blanket_of_one_user(found.groups, **case) <= 1e-6
    assert joint_blanket_of_one_user(found.groups / 1.005, **case) > 1e-6


def joint_blanket_of_one_user(
    epsilon: float, *, local_epsilon: float, num_clients: int, max_items: int
) -> float:
    """Delta of binary randomized response when readers know which other reports are blanket.

    One client turns all its bits, hidden among a binomial number of fair coins: exact, by
    convolution, so no bound that rests on the blanket alone can be smaller.
    """
    keep = 1 / (1 + math.exp(-local_epsilon))
    others = (num_clients - 1) * max_items
    coins = np.arange(others + 1)
    chance = pmf(coins, others, 2 / (math.exp(local_epsilon) + 1))
    bits = np.arange(max_items + 1)
    own = pmf(bits, max_items, keep)
    total = 0.0
    for count in coins[chance > 1e-14]:
        fair = pmf(np.arange(count + 1), count, 0.5) if count else np.ones(1)
        total += chance[count] * hockey_stick(
            np.convolve(fair, own), np.convolve(fair, own[::-1]), epsilon
        )
    return total


@pytest.mark.slow("::test_composition_meets_its_delta_and_not_a_multiple_of_it")
def test_composition_of_pure_randomizers_is_that_of_two_atoms():
    # With two reports and one clone improbable the pair is all but randomized response, whose
    # k-fold composition is a sum over binomial counts.
    local_epsilon, times = 10.0, 4
    bound = Clones(local_epsilon=local_epsilon, num_reports=2)
    # All clones are absent at least so often.
    alone = (1 - math.exp(-local_epsilon)) ** times
    for delta in (1e-3, 1e-6):
        found = composed_epsilon([Use(bound=bound, times=times)], delta=delta)
        assert delta_of_responses({local_epsilon: times}, found) * alone <= delta
        assert delta_of_responses({local_epsilon: times}, found - 0.05) > delta * 0.9


def test_one_use_of_a_response_costs_its_epsilon_and_more_uses_more():
    bound, other = (Response(local_epsilon=x) for x in (1.0, 2.0))
    once, nine = (composed_epsilon([Use(bound=bound, times=n)], delta=1e-2) for n in (1, 9))
    assert once == pytest.approx(bound.epsilon(1e-2), rel=0.01)
    assert once < nine < 9 * bound.epsilon(1e-2)
    uses = [Use(bound=bound, times=8), Use(bound=other, times=1)]
    assert composed_epsilon(uses, delta=1e-2) > nine
    coarsest = Precision(grid_points=40, tolerance=1e-2)
    few = [Use(bound=Clones(local_epsilon=1.0, num_reports=10), times=2)]
    fine, coarse = (composed_epsilon(few, delta=1e-2, precision=p) for p in (QUICK, coarsest))
    assert fine < coarse


@pytest.mark.slow("::test_one_use_of_a_response_costs_its_epsilon_and_more_uses_more")
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


def test_composition_of_very_many_uses_is_the_sum_of_local_epsilons():
    use = Use(bound=Clones(local_epsilon=1.0, num_reports=1000), times=10**12)
    assert composed_epsilon([use], delta=1e-6, precision=QUICK) == 10**12
    # A delta below all rounding of probabilities near 1.
    use = Use(bound=Clones(local_epsilon=4.0, num_reports=10**8), times=1000)
    found = composed_epsilon([use], delta=1e-14, precision=QUICK)
    assert found == pytest.approx(0.315, abs=1e-3)


def test_what_is_already_private_composes_to_0():
    bound = Clones(local_epsilon=0.1, num_reports=10**9)
    assert composed_epsilon([Use(bound=bound, times=2)], delta=0.1) == 0.0


def test_disjoint_cohorts_cost_the_worst_of_them():
    bounds = [Clones(local_epsilon=6.0, num_reports=n) for n in (10**5, 4000, 10**6)]
    worst = max(bound.epsilon(1e-8) for bound in bounds)
    assert disjoint_epsilon(bounds, delta=1e-8) == pytest.approx(worst, rel=1e-9)


def few_users(**settings):
    return user_level_from(
        Clones(local_epsilon=1.0, num_reports=2),
        **{"num_clients": 10, "max_items": 2, "delta": 1e-2, **settings},
    )


def test_few_clients_without_exactly_b_reports_have_no_slots():
    found = few_users(num_reports=15)
    assert isinstance(found.slots, NotApplicable)
    assert (found.epsilon, found.method) == (found.groups, "groups")
    assert found.groups > few_users().groups


def test_few_reused_clients_cost_more_and_share_the_delta_among_rounds():
    once, twice = few_users(), few_users(rounds=2)
    assert 1.2 * once.slots < twice.slots <= 2 * once.slots
    bound = Clones(local_epsilon=1.0, num_reports=20)
    assert twice.groups == 2 * group_epsilon(bound, steps=2, delta=1e-2 / 2)


@pytest.mark.slow("::test_few_clients_without_exactly_b_reports_have_no_slots")
def test_clients_without_exactly_b_reports_have_no_slots():
    found = user_level_from(
        Clones(local_epsilon=2.0, num_reports=2),
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


@pytest.mark.slow("::test_few_reused_clients_cost_more_and_share_the_delta_among_rounds")
def test_reused_clients_cost_more():
    def of_rounds(rounds):
        return user_level_from(
            Clones(local_epsilon=2.0, num_reports=2),
            num_clients=10**4,
            max_items=5,
            delta=1e-6,
            rounds=rounds,
        )

    once, thrice = of_rounds(1), of_rounds(3)
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


@pytest.mark.slow("::test_few_reused_clients_cost_more_and_share_the_delta_among_rounds")
def test_groups_of_reused_clients_share_the_delta_among_rounds():
    bound = Clones(local_epsilon=2.0, num_reports=5 * 10**4)
    found = user_level_from(bound, num_clients=10**4, max_items=5, delta=1e-6, rounds=3)
    assert found.groups == 3 * group_epsilon(bound, steps=5, delta=1e-6 / 3)
    assert found.groups > 3 * group_epsilon(bound, steps=5, delta=1e-6)


@pytest.mark.parametrize("delta", [1e-2, 1e-5])
def test_composition_meets_its_delta_and_not_a_multiple_of_it(delta):
    local_epsilon, times = 0.5, 30
    use = Use(bound=Response(local_epsilon=local_epsilon), times=times)
    found = composed_epsilon([use], delta=delta)
    assert delta / 1.5 < delta_of_responses({local_epsilon: times}, found) <= delta


class Leak(Clones):
    """Reveals up to ``local_epsilon`` with probability 0.04, and nothing otherwise."""

    def _deltas(self, epsilons: Floats) -> Floats:
        return np.full(len(epsilons), 0.04)


def test_what_is_private_at_twice_the_delta_alone_is_not_private():
    # Two uses leak with probability 0.0784, between delta and twice delta.
    assert composed_epsilon(
        [Use(bound=Leak(local_epsilon=1.0, num_reports=2), times=2)], delta=0.05
    )


def test_a_slightly_worse_cohort_counts():
    better, worse = (Response(local_epsilon=x) for x in (1.0, 1.02))
    delta = 1e-1
    first = better.epsilon(delta)
    assert delta < worse.delta(first) < 2 * delta
    assert disjoint_epsilon([better, worse], delta=delta) == worse.epsilon(delta) > first


def test_a_path_keeps_to_its_delta_without_the_rounding_of_its_sum():
    deltas = np.array([1e-6, 0.0])
    assert user_level._best_path(np.array([0.0, 1.0]), deltas, steps=1, delta=1e-6).tolist() == [1]
    assert user_level._best_path(np.array([0.0, 1.0]), deltas, steps=1, delta=2e-6).tolist() == [0]


def test_what_is_left_for_the_last_step_is_without_the_rounding_of_the_sum():
    @dataclass(frozen=True)
    class Stairs:
        local_epsilon: float = 2.0
        tolerance: float = 1e-6

        def deltas(self, epsilons):
            return np.select([epsilons < 1, epsilons < 2], [1.0, 1e-4], 0.0)

        def delta(self, epsilon):
            return float(self.deltas(np.array([epsilon]))[0])

    def group(delta):
        # So many points have 1 among them.
        precision = replace(FINE, grid_points=394)
        return user_level.group_epsilon(Stairs(), steps=2, delta=delta, precision=precision)

    two_of_one = 1e-4 * (1 + math.e)
    assert group(two_of_one * (1 + 1e-8)) == pytest.approx(2.0, abs=1e-9)
    assert group(two_of_one) == pytest.approx(3.0, abs=1e-9)
