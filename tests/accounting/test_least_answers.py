"""Claims of runs whose clients do not all answer: what holds before a run, and what is realised."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import stats

import fedhh
from fedhh.accounting.collusion import Collusion
from fedhh.accounting.local_reports import LocalReports
from fedhh.accounting.rounds import PlannedRound
from fedhh.accounting.sampled_threshold import SampledThreshold
from fedhh.accounting.sampled_votes import SampledVotes
from fedhh.accounting.terms import PrivacyTerms
from fedhh.devices import Devices
from fedhh.oracles import OracleSpec
from tests.accounting.heard import heard
from tests.accounting.sampled_votes_enumerated import NOTHING, round_distribution
from tests.thinned import thinned

DELTA = 1e-8


def plan_of(*cohorts: int, oracle: str = "ss", items: int = 2, epsilon: float = 4.0):
    rounds = tuple(
        PlannedRound(
            layer=layer,
            num_clients=size,
            smallest_domain=50,
            largest_domain=500,
            max_items=items,
            local_epsilon=epsilon,
        )
        for layer, size in enumerate(cohorts, start=1)
    )
    spec = OracleSpec(name=oracle, epsilon=epsilon)
    return LocalReports(layers=rounds, randomizers=(spec,))


def records(plan, *answers: int):
    return [
        heard(
            layer=layer,
            num_clients=number,
            num_reports=number * plan.max_items,
            domain_size=100,
            num_kept=9,
            decides=True,
        )
        for layer, number in enumerate(answers, start=1)
    ]


def report_of(plan, layers=(), delta: float = DELTA):
    return plan.report(PrivacyTerms(num_clients=100_000, delta=delta, alpha=0.95), layers)


def central(report, *, realised: bool):
    return {
        (each.unit, each.method): each.epsilon
        for each in report.guarantees
        if each.trust == "central" and each.realised == realised
    }


@pytest.mark.parametrize("oracle", thinned(["grr", "ss"]))
def test_claims_before_a_run_are_those_of_a_plan_with_the_least_answers(oracle):
    plan = plan_of(3_000, 5_000, oracle=oracle)
    accepting = plan.accepting(Devices(least_clients=2_000).fewest_answers)
    smaller = plan_of(2_000, 2_000, oracle=oracle)
    assert central(report_of(accepting), realised=False) == central(
        report_of(smaller), realised=False
    )
    for unit in ("item", "user"):
        found, same = (
            each.before_run(unit, PrivacyTerms(num_clients=100_000, delta=DELTA))
            for each in (accepting, smaller)
        )
        assert (found.epsilon, found.smallest_cohort) == (same.epsilon, 2_000)
        whole = plan.before_run(unit, PrivacyTerms(num_clients=100_000, delta=DELTA))
        assert found.epsilon > whole.epsilon


@pytest.mark.parametrize("oracle", thinned(["grr", "ss"]))
def test_what_arrives_changes_no_claim_before_the_run_and_is_realised(oracle):
    plan = plan_of(3_000, 5_000, oracle=oracle)
    accepting = plan.accepting(Devices(least_clients=2_000).fewest_answers)
    before = central(report_of(accepting), realised=False)
    few = report_of(accepting, records(plan, 2_000, 2_000))
    some = report_of(accepting, records(plan, 2_500, 2_200))
    most = report_of(accepting, records(plan, 3_000, 5_000))
    for report in (few, some, most):
        assert central(report, realised=False) == before
        assert any("at least 2,000 in each layer" in note for note in report.notes)
        assert not any("were lost" in note for note in report.notes)
    epsilons = [each.best("item", "central").epsilon for each in (few, some, most)]
    assert epsilons[0] > epsilons[1] > epsilons[2]
    assert some.best("user", "central").realised
    assert some.best("user", "central").smallest_cohort == 2_200
    # Just the least came: for a randomizer whose bounds know no domain, all is said before.
    assert bool(central(few, realised=True)) == (oracle == "ss")


def test_fewer_answers_than_the_plan_accepts_leave_no_amplification_before_the_run():
    plan = plan_of(3_000, 5_000)
    for planned in (plan, plan.accepting(lambda _: 2_000)):
        report = report_of(planned, records(plan, 1_999, 5_000))
        before = report.before_run("item")
        assert before.epsilon == 4.0
        assert "pass 1, layer 1 had 1,999 clients, fewer than" in before.assumptions
        realised = report.best("item", "central")
        assert realised.realised
        assert realised.epsilon < 4.0
        assert realised.smallest_cohort == 1_999


def test_without_a_least_number_next_to_nothing_is_amplified_before_the_run():
    accepting = plan_of(3_000, 5_000).accepting(Devices().fewest_answers)
    before = accepting.before_run("user", PrivacyTerms(num_clients=100_000, delta=DELTA))
    assert before.smallest_cohort == 2
    assert before.epsilon == pytest.approx(8.0, rel=1e-6)


EVERY = {"participation": "every-round"}
EPOCHS = {"participation": "epochs", "epochs": 2, "secret_cohorts": True}


def of_fewest(answers: int, **how):
    """What a plan of as many rounds claims where all answer, so many in each round."""
    plan = replace(plan_of(*(answers,) * 4, items=how.pop("items")), **how)
    return central(report_of(plan), realised=False)


@pytest.mark.parametrize("items", [1, 2])
def test_in_every_round_the_fewest_answers_that_came_to_one_are_realised(items):
    plan = replace(plan_of(*(3_000,) * 4, items=items), **EVERY)
    accepting = plan.accepting(lambda _: 2_000)
    report = report_of(accepting, records(plan, 2_500, 2_700, 2_400, 3_000))
    assert central(report, realised=False) == of_fewest(2_000, items=items, **EVERY)
    assert central(report, realised=True) == of_fewest(2_400, items=items, **EVERY)
    assert report.best("user", "central").smallest_cohort == 2_400
    assert any("a round that it had not counts as planned" in note for note in report.notes)
    # Votes decide whether a round takes place: one that did not counts with what it would accept.
    ended = report_of(accepting, records(plan, 2_500, 2_700, 2_400))
    assert not central(ended, realised=True)
    assert not central(report_of(plan, records(plan, *(3_000,) * 4)), realised=True)


def test_of_epochs_of_secret_cohorts_the_fewest_answers_that_came_to_one_are_realised():
    plan = replace(plan_of(*(3_000,) * 4, items=1), **EPOCHS)
    accepting = plan.accepting(lambda _: 2_000)
    report = report_of(accepting, records(plan, 2_100, 3_000, 2_900, 2_100))
    assert central(report, realised=False) == of_fewest(2_000, items=1, **EPOCHS)
    assert central(report, realised=True) == of_fewest(2_500, items=1, **EPOCHS)
    assert report.best("user", "central").smallest_cohort == 5_000
    assert any("at least 4,000 in each epoch" in note for note in report.notes)
    ended = report_of(accepting, records(plan, 2_100, 3_000, 2_800))
    assert central(ended, realised=True) == of_fewest(2_400, items=1, **EPOCHS)
    # The control: against whoever may know the cohorts, the fewest of a round.
    known = {**EPOCHS, "secret_cohorts": False}
    report = report_of(replace(accepting, **known), records(plan, 2_100, 3_000, 2_900, 2_100))
    assert central(report, realised=True) == of_fewest(2_100, items=1, **known)


@pytest.mark.parametrize("how", [EVERY, EPOCHS], ids=["every round", "epochs"])
def test_colluders_are_taken_from_the_answers_that_came_where_rounds_share_clients(how):
    plan = replace(plan_of(*(3_000,) * 4, items=1), **how)
    accepting = plan.accepting(lambda _: 2_000)
    told = Collusion(colluders=600, num_clients=100_000, cohorts_by="server")
    report = accepting.report(
        PrivacyTerms(num_clients=100_000, delta=DELTA, alpha=0.95, collusion=told),
        records(plan, 2_500, 2_500, 2_600, 2_500),
    )
    honest = 2_200 if how is EPOCHS else 1_900
    assert central(report, realised=True) == of_fewest(honest, items=1, **how)
    assert report.before_run("user").epsilon < 2 * len(plan.layers)


def test_fewer_answers_than_epochs_accept_leave_no_amplification_before_the_run():
    plan = replace(plan_of(*(3_000,) * 4, items=1), **EPOCHS)
    report = report_of(plan, records(plan, 2_999, 3_000, 3_000, 3_000))
    assert report.before_run("user").epsilon == 8.0
    assert report.best("user", "central").smallest_cohort == 5_999


def shuffled_delta(num_present: int, local_epsilon: float, epsilon: float) -> float:
    """Exact delta of the count of ones among shuffled binary responses; the others all say 0."""
    keep = math.exp(local_epsilon) / (1 + math.exp(local_epsilon))
    counts = np.arange(num_present + 1)
    others = stats.binom(num_present - 1, 1 - keep)

    def with_victim(chance: float):
        return (1 - chance) * others.pmf(counts) + chance * others.pmf(counts - 1)

    one, other = with_victim(keep), with_victim(1 - keep)
    swaps = ((one, other), (other, one))
    return max(float(np.maximum(p - math.exp(epsilon) * q, 0).sum()) for p, q in swaps)


def test_the_claim_is_no_smaller_than_the_truth_for_any_number_that_is_accepted():
    local, delta, least, cohort = 1.0, 0.01, 60, 600
    rounds = tuple(
        PlannedRound(
            layer=1, num_clients=cohort, smallest_domain=2, largest_domain=2, local_epsilon=local
        )
        for _ in range(1)
    )
    plan = LocalReports(layers=rounds, randomizers=(OracleSpec(name="grr", epsilon=local),))
    accepting = plan.accepting(lambda _: least)
    claim, of_cohort = (
        report_of(each, delta=delta).before_run("item").epsilon for each in (accepting, plan)
    )
    assert of_cohort < claim < local
    for present in (least, least + 1, 2 * least, cohort):
        assert shuffled_delta(present, local, claim) <= delta
    # The control: what holds for the whole cohort is refuted by few answers.
    assert shuffled_delta(8, local, of_cohort) > delta


@cache
def votes_that_arrive(held: tuple[int, int], clients: int, sample: int, answering: float):
    """Exact distribution of kept prefixes, where each client answers with some chance."""
    chances: dict[frozenset[str], float] = {}
    for there in itertools.product(*(range(number + 1) for number in held)):
        weight = math.prod(
            math.comb(number, count) * answering**count * (1 - answering) ** (number - count)
            for number, count in zip(held, there, strict=True)
        )
        votes = (("a", there[0]), ("b", there[1]), (NOTHING, clients - sum(there)))
        for kept, ways in round_distribution(votes, sample, THRESHOLD).items():
            share = weight * ways / math.comb(clients, sample)
            chances[kept] = chances.get(kept, 0.0) + share
    return chances


THRESHOLD = 2


@pytest.mark.parametrize(("clients", "sample"), [(8, 3), (7, 4)])
def test_a_sampled_client_that_does_not_answer_is_one_that_abstains(clients, sample):
    """The bound on a round in which all answer, against all data of a few clients, exactly."""
    bounds = SampledVotes(num_clients=clients, sample_size=sample, threshold=THRESHOLD)

    def worst(epsilon: float, answering: float) -> float:
        found = 0.0
        for a, b in itertools.product(range(clients), repeat=2):
            if a + b < clients:
                made = [
                    votes_that_arrive(held, clients, sample, answering)
                    for held in ((a, b), (a + 1, b), (a, b + 1))
                ]
                for p, q in itertools.permutations(made, 2):
                    over = [p[k] - math.exp(epsilon) * q.get(k, 0.0) for k in p]
                    found = max(found, sum(x for x in over if x > 0))
        return found

    for epsilon in (bounds.absence_epsilon, bounds.absence_epsilon + 1):
        bound = float(bounds.deltas(np.array([epsilon]))[0])
        exact = [worst(epsilon, answering) for answering in (0.6, 1.0)]
        assert 0 < exact[0] < exact[1] <= bound * (1 + 1e-12)


def test_a_threshold_s_claim_does_not_depend_on_who_answers():
    rounds = tuple(
        PlannedRound(
            pass_index=0, layer=layer, num_clients=200, smallest_domain=3, largest_domain=99
        )
        for layer in (1, 2)
    )
    plan = SampledThreshold(layers=rounds, sample_size=200, threshold=10)
    accepting = plan.accepting(lambda _: 50)
    before, same = report_of(accepting), report_of(plan)
    for unit in ("item", "user"):
        assert before.before_run(unit).epsilon == same.before_run(unit).epsilon
        assert before.before_run(unit).smallest_cohort == 50
        assert "every sampled client answers" in same.before_run(unit).assumptions
        assert "count as abstaining" in before.before_run(unit).assumptions


def test_of_two_groups_the_local_one_is_claimed_for_its_least_answers():
    blender = fedhh.Blender(clients_per_layer=20_000, opt_in_share=0.1, delta=1e-8)
    plan = blender.settle(num_clients=20_000, seed=0).plan
    accepting = plan.accepting(Devices(least_share=0.5).fewest_answers)
    assert accepting.local.layers[0].fewest_clients == 9_000
    found = report_of(accepting).before_run("user")
    smaller = replace(
        plan,
        local=replace(plan.local, layers=(replace(plan.local.layers[0], num_clients=9_000),)),
    )
    assert found.epsilon == report_of(smaller).before_run("user").epsilon
    assert found.epsilon > report_of(plan).before_run("user").epsilon
    assert found.smallest_cohort == 500
