"""Plans for a central target: the fewest clients that meet it, and the local epsilon."""

from __future__ import annotations

from dataclasses import replace

import pytest

import fedhh
from fedhh.accounting import (
    LayeredPlan,
    NotApplicable,
    account_plan,
    clients_of_plan,
    local_epsilon_of_plan,
    user_level,
)
from fedhh.accounting.bounds.composition import QUICK
from fedhh.accounting.local_reports import LocalReports
from fedhh.accounting.plan_search import TOLERANCE
from fedhh.accounting.rounds import PlannedRound
from fedhh.accounting.terms import PrivacyTerms
from fedhh.oracles import OracleSpec
from fedhh.validation import InputError
from tests.thinned import thinned

DELTA = 1e-8


def plan_at(
    clients: int,
    local_epsilon: float = 3.0,
    *,
    oracle: str = "ss",
    max_items: int = 2,
    domains: tuple[int, int] = (28, 2_701),
) -> LocalReports:
    """Two layers, the second with half of the clients."""
    if clients < 2:
        raise InputError("Expected more clients.")
    params = {"subset_size": "optimal"} if oracle == "ss" else {}
    return LocalReports(
        layers=tuple(
            PlannedRound(
                pass_index=0,
                layer=layer,
                num_clients=clients // layer,
                smallest_domain=domains[0],
                largest_domain=domains[1],
                max_items=max_items,
                local_epsilon=local_epsilon,
            )
            for layer in (1, 2)
        ),
        randomizers=(OracleSpec(name=oracle, epsilon=local_epsilon, params=params),),
    )


def claimed(plan: LocalReports, unit: str, clients: int) -> float:
    """What the whole report claims before the run."""
    report = plan.report(PrivacyTerms(num_clients=clients, delta=DELTA, alpha=0.95))
    epsilon = report.before_run(unit).epsilon
    assert not isinstance(epsilon, NotApplicable)
    return epsilon


PLANS = {
    "another randomizer": {"oracle": "grr"},
    "domains by votes": {},
    "one domain": {"domains": (300, 300)},
    "any domain": {"domains": (2, 2**40)},
}


def test_few_clients_meet_a_loose_target_and_one_less_misses_it():
    target = {"unit": "item", "epsilon": 1.5, "delta": 1e-2}
    ours = {"oracle": "grr", "max_items": 1}
    found, again = (
        clients_of_plan(lambda n: plan_at(n, **ours), **target, start=start) for start in (1, 10**6)
    )
    assert found == again
    enough, too_few = (
        plan_at(n, **ours).before_run("item", PrivacyTerms(num_clients=n, delta=1e-2)).epsilon
        for n in (found, found - 1)
    )
    assert enough <= 1.5 < too_few


@pytest.mark.slow("::test_few_clients_meet_a_loose_target_and_one_less_misses_it")
@pytest.mark.parametrize(
    ("name", "unit"),
    [*((name, "item") for name in PLANS), ("another randomizer", "user")],
)
def test_the_fewest_clients_meet_the_target_and_one_less_misses_it(name, unit):
    options = PLANS[name]
    found = clients_of_plan(
        lambda n: plan_at(n, **options), unit=unit, epsilon=0.7, delta=DELTA, start=3_000
    )
    assert claimed(plan_at(found, **options), unit, found) <= 0.7
    assert claimed(plan_at(found - 1, **options), unit, found - 1) > 0.7


@pytest.mark.parametrize(
    ("name", "unit"),
    thinned(
        [*((name, "item") for name in PLANS), *((name, "user") for name in list(PLANS)[1:4:2])]
    ),
)
def test_what_a_search_asks_is_what_the_whole_report_claims(name, unit):
    plan = plan_at(3_000, **PLANS[name])
    quick = plan.before_run(unit, PrivacyTerms(num_clients=3_000, delta=DELTA))
    assert quick.epsilon == claimed(plan, unit, 3_000)
    assert (quick.unit, quick.trust, quick.delta) == (unit, "central", DELTA)


@pytest.mark.slow("::test_few_clients_meet_a_loose_target_and_one_less_misses_it")
@pytest.mark.parametrize("start", [1, 10**6])
def test_where_a_search_starts_makes_no_difference(start):
    target = {"unit": "item", "epsilon": 0.5, "delta": DELTA}
    assert clients_of_plan(plan_at, **target, start=start) == clients_of_plan(plan_at, **target)


def test_what_no_search_finds_is_said():
    easy = {"unit": "item", "epsilon": 3.0, "delta": 1e-2}
    assert clients_of_plan(lambda n: plan_at(n, oracle="grr"), **easy) == 2
    nothing = clients_of_plan(
        lambda n: plan_at(n, 16.0, oracle="grr", max_items=1), **{**easy, "epsilon": 1e-6}
    )
    assert isinstance(nothing, NotApplicable)
    with pytest.raises(InputError, match="more clients"):
        clients_of_plan(lambda n: plan_at(0), **easy)
    without = local_epsilon_of_plan(
        lambda local: plan_at(300, float("inf"), oracle="none"), num_clients=300, **easy
    )
    assert isinstance(without, NotApplicable)


@pytest.mark.slow("::test_what_no_search_finds_is_said")
def test_easy_and_impossible_targets():
    assert clients_of_plan(plan_at, unit="item", epsilon=3.0, delta=DELTA) == 2
    nothing = clients_of_plan(lambda n: plan_at(n, 16.0), unit="item", epsilon=1e-6, delta=DELTA)
    assert isinstance(nothing, NotApplicable)
    with pytest.raises(InputError, match="more clients"):
        clients_of_plan(lambda n: plan_at(0), unit="item", epsilon=1.0, delta=DELTA)


@pytest.mark.parametrize("epsilon", [0.1, 2.0])
def test_a_local_epsilon_meets_the_target_after_a_few_questions(epsilon):
    asked = []

    def noted(local):
        asked.append(local)
        return plan_at(3_000, local, oracle="grr")

    target = {"num_clients": 3_000, "unit": "item", "epsilon": epsilon, "delta": DELTA}
    found = local_epsilon_of_plan(noted, **target)
    central = noted(found).before_run("item", PrivacyTerms(num_clients=3_000, delta=DELTA))
    assert epsilon * (1 - TOLERANCE) <= central.epsilon <= epsilon
    # Secants take 5 and 7, the plan at 1 included.
    assert len(asked) - 1 <= 8


@pytest.mark.parametrize(
    ("participation", "left_out"),
    [("one-round", "remembered_epsilon"), ("every-round", "group_epsilon")],
)
def test_a_users_search_asks_the_worse_way_only_where_it_ends(participation, left_out, monkeypatch):
    asked = []

    def counted(*bounds, **numbers):
        asked.append(numbers["precision"])
        return bound(*bounds, **numbers)

    bound = getattr(user_level, left_out)
    monkeypatch.setattr(user_level, left_out, counted)

    def ours(local):
        return replace(plan_at(2_000, local, oracle="grr"), participation=participation)

    target = {"num_clients": 2_000, "unit": "user", "epsilon": 2.0, "delta": 1e-4}
    found = local_epsilon_of_plan(ours, **target)
    assert set(asked) == {QUICK}
    assert len(asked) <= 2
    central = ours(found).before_run("user", PrivacyTerms(num_clients=2_000, delta=1e-4))
    assert 2.0 * (1 - TOLERANCE) <= central.epsilon <= 2.0


def test_half_the_share_takes_twice_the_local_epsilon():
    target = {"num_clients": 200, "unit": "item", "epsilon": 0.7, "delta": 1e-2}
    ours = {"oracle": "grr", "max_items": 1}
    whole = local_epsilon_of_plan(lambda local: plan_at(200, local, **ours), **target)
    half = local_epsilon_of_plan(lambda local: plan_at(200, local / 2, **ours), **target)
    assert half == pytest.approx(2 * whole, rel=2e-3)


@pytest.mark.slow("::test_half_the_share_takes_twice_the_local_epsilon")
def test_a_local_epsilon_follows_the_share_that_the_randomizer_gets():
    target = {"num_clients": 3_000, "unit": "item", "epsilon": 0.7, "delta": DELTA}
    whole = local_epsilon_of_plan(lambda local: plan_at(3_000, local), **target)
    half = local_epsilon_of_plan(lambda local: plan_at(3_000, local / 2), **target)
    assert half == pytest.approx(2 * whole, rel=2e-3)
    nothing = local_epsilon_of_plan(
        lambda local: plan_at(3_000, float("inf"), oracle="none"), **target
    )
    assert isinstance(nothing, NotApplicable)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.0}, "epsilon=0.0"),
        ({"unit": "word"}, "Unknown unit"),
        ({"delta": 0.5}, "delta=0.5"),
        ({"start": 0}, "start=0"),
    ],
)
def test_wrong_targets_are_named(change, message):
    target = {"unit": "item", "epsilon": 1.0, "delta": DELTA} | change
    with pytest.raises(InputError, match=message):
        clients_of_plan(plan_at, **target)


def test_a_small_plan_is_searched_for_with_an_honest_share():
    plan = LayeredPlan(oracle="grr")
    target = {"central_epsilon": 1.0, "delta": 1e-2}
    all_honest = account_plan(plan, **target, local_epsilon=2.0)
    half = account_plan(plan, **target, local_epsilon=2.0, honest_share=0.5)
    assert 2 * all_honest.clients <= half.clients < 3 * all_honest.clients
    assert half.to_dict()["honest_share"] == 0.5


@pytest.mark.slow("::test_a_small_plan_is_searched_for_with_an_honest_share")
def test_a_plan_is_searched_for_with_an_honest_share():
    plan = LayeredPlan(layers=2, oracle="grr")
    target = {"central_epsilon": 1.0, "delta": 1e-6}
    all_honest = account_plan(plan, **target, local_epsilon=4.0)
    half = account_plan(plan, **target, local_epsilon=4.0, honest_share=0.5)
    assert 2 * all_honest.clients < half.clients < 2.5 * all_honest.clients
    central = half.report.before_run("item")
    assert central.epsilon <= 1.0
    assert central.delta == pytest.approx(1e-6)
    assert half.to_dict()["honest_share"] == 0.5
    back = account_plan(plan, **target, clients=half.clients, honest_share=0.5)
    assert back.local_epsilon == pytest.approx(4.0, rel=0.01)


def test_shares_of_noise_are_searched_for_with_an_honest_share():
    def summed(clients, local):
        protocol = fedhh.SecAggTrieHH(depth=2, central_epsilon=1.0, clients_per_layer=400)
        return protocol.settle(num_clients=clients, seed=0).plan

    target = {"delta": 1e-6, "local_epsilon": 1.0}
    alone = account_plan(summed, **target, central_epsilon=1.0)
    told = account_plan(summed, **target, central_epsilon=3.0, honest_share=0.5)
    assert alone.clients == told.clients == 800
    assert (
        alone.report.before_run("item").epsilon < 1.0 < 2.7 < told.report.before_run("item").epsilon
    )
    assert "with chance at most" in told.report.notes[-1]
