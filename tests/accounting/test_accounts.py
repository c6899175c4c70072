"""The calls behind `fedhh account`: what each states, in Python."""

from __future__ import annotations

import pytest

from fedhh.accounting import (
    LayeredPlan,
    NotApplicable,
    account_anonymity,
    account_plan,
    account_shuffle,
    account_user,
    shuffle_epsilon,
)
from fedhh.accounting.guarantees import epsilon_text
from fedhh.experiments.run.equal_privacy import plans_of
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.triehh import TrieHH
from fedhh.validation import InputError
from tests.accounting.users import user_level_epsilon

SHUFFLE = {"local_epsilon": 4.0, "num_reports": 100_000, "delta": 1e-8}


def test_a_shuffle_has_every_bound_with_its_standing():
    anything = account_shuffle(**SHUFFLE)
    assert [each.method for each in anything.guarantees] == ["closed-form", "clones", "clones-2023"]
    compared = [each.assumptions.startswith("comparison only") for each in anything.guarantees]
    assert compared == [True, False, True]
    assert "no blanket is known" in anything.notes[-1]
    assert anything.by("clones").epsilon == shuffle_epsilon("clones", **SHUFFLE)
    # Smaller, but not proven for every randomizer.
    assert anything.by("clones-2023").epsilon < anything.by("clones").epsilon
    assert anything.best("item", "central").method == "clones"
    selection = account_shuffle(**SHUFFLE, domain_size=1_001)
    assert not any("comparison" in each.assumptions for each in selection.guarantees)
    assert selection.best("item", "central").method == "blanket"
    assert 0 < selection.by("blanket").epsilon < anything.by("clones").epsilon


def check_both_bounds(found, of_clones):
    assert found.by("clones, groups").epsilon == of_clones.groups
    assert found.by("clones, slots").epsilon == of_clones.slots
    best = found.best("user", "central")
    assert best.method.startswith("blanket")
    assert best.epsilon < of_clones.epsilon


def test_a_user_of_few_contributions_has_both_bounds():
    asked = {"local_epsilon": 0.5, "num_clients": 5, "max_items": 2, "delta": 1e-2}
    found = account_user(**asked, domain_size=3)
    assert found.best("user", "local").epsilon == 1.0
    check_both_bounds(found, user_level_epsilon(bound="clones", **asked))


@pytest.mark.slow("::test_a_user_of_few_contributions_has_both_bounds")
def test_a_user_has_both_bounds_of_user_level_epsilon():
    asked = {"local_epsilon": 2.0, "num_clients": 1_000, "max_items": 3, "delta": 1e-6}
    found = account_user(**asked, domain_size=101)
    assert found.best("user", "local").epsilon == 6.0
    check_both_bounds(found, user_level_epsilon(bound="clones", **asked))


def test_anonymity_by_both_variants_and_over_passes():
    layer = {"local_epsilon": 10.0, "num_reports": 30_000_000, "eta_max": 10_000}
    once = account_anonymity(**layer, alphabet_size=100).anonymity
    twice = account_anonymity(**layer, alphabet_size=100, passes=2).anonymity
    # The doctest of `anonymity` has these two numbers.
    assert (once[1].k, twice[1].k) == (49, 26)
    assert [each.variant for each in once] == ["lemma", "tight"]
    with pytest.raises(InputError, match="eta_max=0"):
        account_anonymity(local_epsilon=1, num_reports=9, eta_max=0, alphabet_size=2)


def test_a_small_plans_clients_give_back_its_local_epsilon():
    plan = LayeredPlan(layers=2, oracle="grr")
    found = account_plan(plan, central_epsilon=1.0, delta=1e-2, local_epsilon=2.0)
    assert found.title == "oracle grr"
    assert found.report.before_run("item").epsilon <= 1.0
    back = account_plan(plan, central_epsilon=1.0, delta=1e-2, clients=found.clients)
    assert back.local_epsilon == pytest.approx(2.0, rel=0.05)
    assert [each.num_clients for each in found.plan.layers] == [found.clients // 2] * 2


@pytest.mark.slow("::test_a_small_plans_clients_give_back_its_local_epsilon")
def test_fewer_clients_than_a_plan_needs_miss_its_target():
    plan = LayeredPlan(layers=3, max_items=2, oracle="grr")
    found = account_plan(plan, central_epsilon=1.0, delta=1e-6, local_epsilon=4.0)
    assert found.title == "oracle grr"
    assert found.report.before_run("item").epsilon <= 1.0
    back = account_plan(plan, central_epsilon=1.0, delta=1e-6, clients=found.clients)
    assert back.local_epsilon == pytest.approx(4.0, rel=0.01)
    assert [each.num_clients for each in found.plan.layers] == [found.clients // 3] * 3


def test_a_plan_out_of_reach_has_a_reason():
    found = account_plan(LayeredPlan(), central_epsilon=1e-9, local_epsilon=6.0)
    assert isinstance(found, NotApplicable)
    assert "1,000,000,000,000 clients" in found.reason


@pytest.mark.parametrize("unit", ["item", "user"])
def test_a_plan_is_stated_in_one_paragraph_to_quote(unit):
    plan = LayeredPlan(layers=2, max_items=3, oracle="grr")
    target = {"central_epsilon": 2.0, "unit": unit, "delta": 1e-6, "clients": 20_000}
    found = account_plan(plan, **target)
    said = found.statement
    assert "\n" not in said
    central, local = found.report.before_run(unit), found.report.best(unit, "local")
    replaced = {"item": "one item is", "user": "all items of one user are"}[unit]
    assert f"any two data sets of the same size in which {replaced} replaced by any other" in said
    assert (
        f"epsilon is {epsilon_text(central.epsilon)} and delta 1e-06, by {central.theorem}" in said
    )
    assert f"Assumptions: {central.assumptions}; the smallest cohort has 10,000 clients." in said
    assert "readers of all that the server publishes (prefixes, words and estimates)" in said
    assert "who see no single report" in said
    assert f"has epsilon {epsilon_text(local.epsilon)} and delta 0 ({local.theorem}" in said
    assert (
        "(oracle grr: 20,000 clients in all, in 2 rounds of 10,000, with 3 contributions each"
        in said
    )
    assert found.to_dict()["statement"] == said
    collusion = account_plan(plan, **target, honest_share=0.5).statement
    assert "honest clients in each cohort; 0.5 of all clients are honest." in collusion


def test_a_protocols_plan_has_all_clients_and_its_title():
    plans = plans_of(LdpTrieHH(depth=2, passes=1, max_items=1, oracle="grr"))
    found = account_plan(plans, central_epsilon=1.0, delta=1e-2, clients=400, title="mine")
    assert (found.title, found.clients) == ("mine", 400)
    rounds = len(found.plan.layers)
    assert found.plan.most_answers <= 400 < found.plan.most_answers + 2 * rounds
    with pytest.raises(InputError, match="local epsilon and cohorts"):
        plans_of(TrieHH(central_epsilon=1.0))


@pytest.mark.slow("::test_a_protocols_plan_has_all_clients_and_its_title")
def test_plans_of_a_protocol_share_all_clients_out():
    plans = plans_of(LdpTrieHH(depth=4, passes=1, max_items=1))
    found = account_plan(plans, central_epsilon=1.0, delta=1e-6, clients=40_000, title="mine")
    assert (found.title, found.clients) == ("mine", 40_000)
    rounds = len(found.plan.layers)
    assert found.plan.most_answers <= 40_000 < found.plan.most_answers + rounds * 40
    with pytest.raises(InputError, match="local epsilon and cohorts"):
        plans_of(TrieHH(central_epsilon=1.0))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layers": 0}, "layers=0"),
        ({"validation_share": 1.0}, "validation_share=1.0"),
        ({"domain_size": 4, "eta_max": 2}, "domain_size or eta_max"),
        ({"oracle": "none"}, "Unknown oracle"),
    ],
)
def test_an_impossible_plan_is_refused(settings, message):
    with pytest.raises(InputError, match=message):
        LayeredPlan(**settings)


def test_a_plan_wants_one_of_clients_and_local_epsilon():
    for given in ({}, {"clients": 5, "local_epsilon": 1.0}):
        with pytest.raises(InputError, match="either local_epsilon or clients"):
            account_plan(LayeredPlan(), central_epsilon=1.0, **given)
    with pytest.raises(InputError, match="a client for each of 2 layers"):
        account_plan(LayeredPlan(layers=2), central_epsilon=1.0, clients=1)


def test_more_contributions_than_can_be_computed_with_are_refused_at_once():
    with pytest.raises(InputError, match=r"^Expected max_items <= 2,000, got max_items=2001; "):
        account_user(local_epsilon=16.0, num_clients=100_000, max_items=2_001)
