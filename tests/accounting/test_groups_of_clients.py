"""Rounds with clients of their own: the maximum over two groups, against the exact account."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from fedhh.accounting.local_reports import LocalReports
from fedhh.accounting.rounds import PlannedRound
from fedhh.accounting.terms import PrivacyTerms
from fedhh.oracles import OracleSpec, make_oracle
from tests.thinned import thinned

DELTA = 1e-6


def plan(sizes, *, num_apart=1, oracle="grr", epsilon=1.0, domains=None, max_items=1):
    domains = domains or [2] * len(sizes)
    rounds = [
        PlannedRound(
            layer=layer,
            num_clients=size,
            smallest_domain=low,
            largest_domain=low,
            max_items=max_items,
            local_epsilon=epsilon,
        )
        for layer, (size, low) in enumerate(zip(sizes, domains, strict=True), start=1)
    ]
    return LocalReports(
        layers=tuple(rounds),
        participation="every-round",
        num_apart=num_apart,
        randomizers=(OracleSpec(name=oracle, epsilon=epsilon),),
    )


def claims(of_plan, records=()):
    report = of_plan.report(PrivacyTerms(num_clients=10**6, delta=DELTA, alpha=0.5), records)
    return [each for each in report.guarantees if each.trust == "central"]


def exact_delta(of_plan, epsilon):
    """What one client that changes its value reveals by all counts, if all others hold 0."""
    oracle = make_oracle(of_plan.randomizers[0], 2)
    worst = 0.0
    apart = of_plan.layers[: of_plan.num_apart]
    others = of_plan.layers[of_plan.num_apart :]
    for rounds in (*[(each,) for each in apart], others):
        before = after = np.ones(1)
        for each in rounds:
            counts = binom.pmf(np.arange(each.num_clients), each.num_clients - 1, oracle.q)
            # The client itself: a report of 1 has probability q if it holds 0, p if 1.
            own = [np.convolve(counts, [1 - one, one]) for one in (oracle.q, oracle.p)]
            before, after = np.outer(before, own[0]).ravel(), np.outer(after, own[1]).ravel()
        for one, other in ((before, after), (after, before)):
            worst = max(worst, float(np.maximum(one - math.exp(epsilon) * other, 0).sum()))
    return worst


@pytest.mark.parametrize("num_apart", thinned([1, 2]))
@pytest.mark.parametrize("sizes", [(40, 400, 300), (90, 40, 80, 60), (20, 15, 30, 30)], ids=str)
def test_the_maximum_over_both_groups_is_never_below_the_truth(sizes, num_apart):
    ours = plan(sizes, num_apart=num_apart)
    for each in claims(ours):
        assert exact_delta(ours, each.epsilon) <= DELTA, each.method
    # And the exact curve is not far: at a quarter of the best claim, delta is exceeded.
    best = ours.before_run("item", PrivacyTerms(num_clients=10**6, delta=DELTA))
    assert exact_delta(ours, best.epsilon / 4) > DELTA


def check_worst(whole, apart, others):
    """Of each unit, the best bound of both groups: each bound is the larger one of the two."""
    for one, *both in zip(whole, apart, others, strict=True):
        assert {each.unit for each in both} == {one.unit}
        assert "one of two groups" in one.assumptions
        larger = max(each.epsilon for each in both)
        if {each.method for each in both} == {one.method}:
            assert one.epsilon == pytest.approx(larger, rel=1e-10)
        assert one.epsilon >= larger * (1 - 1e-10)


def test_each_bound_of_two_small_groups_is_the_larger_one():
    whole = claims(plan((10, 90, 90)))
    apart, others = (claims(plan(sizes, num_apart=0)) for sizes in ((10,), (90, 90)))
    check_worst(whole, apart, others)
    assert {each.smallest_cohort for each in whole} == {10}
    assert [each.epsilon for each in apart] != [each.epsilon for each in others]


@pytest.mark.slow("::test_each_bound_of_two_small_groups_is_the_larger_one")
@pytest.mark.parametrize(("oracle", "max_items"), [("sue", 1), ("sue", 2), ("ss", 1)])
def test_each_bound_is_the_larger_one_of_the_two_groups_own_accounts(oracle, max_items):
    settings = {"oracle": oracle, "max_items": max_items}
    for sizes in ((50, 9_000, 9_000), (9_000, 90, 90)):
        domains = [3, 12, 10]
        whole = claims(plan(sizes, domains=domains, **settings))
        apart = claims(plan(sizes[:1], num_apart=0, domains=domains[:1], **settings))
        others = claims(plan(sizes[1:], num_apart=0, domains=domains[1:], **settings))
        check_worst(whole, apart, others)
        assert {each.smallest_cohort for each in whole} == {min(sizes)}
        for each in whole:
            best = plan(sizes, domains=domains, **settings).before_run(
                each.unit, PrivacyTerms(num_clients=10**6, delta=DELTA)
            )
            assert best == each


def test_few_clients_apart_no_longer_set_the_epsilon_of_all():
    small, large = plan((1_000, 9_000, 9_000)), plan((9_000, 9_000, 9_000))
    apart_too = replace(small, num_apart=0)
    one, other, before = (
        each.before_run("item", PrivacyTerms(num_clients=10**6, delta=DELTA)).epsilon
        for each in (small, large, apart_too)
    )
    # A round of 1,000 once, or two rounds of 9,000: not three of 1,000.
    assert one < before / 1.7
    assert other <= one


def test_a_group_too_small_for_amplification_has_its_local_epsilon():
    tiny = plan((1, 9_000, 9_000), epsilon=2.0)
    best = tiny.before_run("item", PrivacyTerms(num_clients=10**6, delta=DELTA))
    assert best.epsilon == 2.0
    assert "no amplification" in best.assumptions
    nothing = plan((1, 1, 1), epsilon=2.0)
    best = nothing.before_run("item", PrivacyTerms(num_clients=10**6, delta=DELTA))
    assert best.epsilon == 4.0


def test_the_least_answers_count_in_their_own_group():
    ours = plan((5_000, 9_000, 9_000))
    found = claims(ours.accepting(lambda clients: 200 if clients == 5_000 else clients))
    expected = claims(plan((200, 9_000, 9_000)))
    assert [each.epsilon for each in found] == [each.epsilon for each in expected]


def test_groups_are_told_apart_only_where_others_share_their_clients():
    shared = plan((10, 20, 30))
    assert [len(each.layers) for each in shared.groups] == [1, 2]
    assert [each.most_rounds_per_client for each in shared.groups] == [1, 2]
    # Nobody is asked twice, or everybody may be: one group.
    for one in (
        plan((10, 20)),
        replace(shared, num_apart=0),
        replace(shared, participation="one-round"),
    ):
        assert one.groups == (one,)
