"""What plans claim where clients take part in every round, or in one of each epoch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fedhh import LdpTrieHH
from fedhh.accounting import Clones2023, Collusion
from fedhh.accounting.amplification import SECRET_COHORTS
from fedhh.accounting.bounds.composition import QUICK, Use, composed_epsilon
from fedhh.accounting.terms import PrivacyTerms

NUM_CLIENTS, DELTA = 300_000, 1e-10
TRIE = LdpTrieHH(depth=8, passes=1, max_items=1, local_epsilon=6.0, false_discovery_rate=0.05)
EPOCHS = replace(TRIE, participation="epochs", cohorts="secret")


def plan_of(protocol, num_clients=NUM_CLIENTS):
    return protocol.settle(num_clients=num_clients, seed=0).plan


def before_run(protocol, unit="user", num_clients=NUM_CLIENTS):
    plan = plan_of(protocol, num_clients)
    return plan.before_run(unit, PrivacyTerms(num_clients=num_clients, delta=DELTA))


@pytest.mark.parametrize(("epochs", "user", "one_law"), [(1, 0.2733, 0.29), (5, 0.6303, 0.6445)])
def test_all_clients_of_an_epoch_amplify(epochs, user, one_law):
    claimed = before_run(replace(EPOCHS, epochs=epochs))
    assert claimed.epsilon == pytest.approx(user, abs=2e-4)
    # One law for any domain, which falls with the answers where some may be missing.
    losing = plan_of(replace(EPOCHS, epochs=epochs)).accepting(lambda clients: clients)
    terms = PrivacyTerms(num_clients=NUM_CLIENTS, delta=DELTA)
    assert losing.central_epsilon("user", terms) == pytest.approx(one_law, abs=0.006)
    assert claimed.smallest_cohort > NUM_CLIENTS - 9
    assert SECRET_COHORTS in claimed.assumptions
    assert "docs/accounting.md, section 14" in claimed.theorem


def test_eight_rounds_of_every_client_have_the_laws_of_their_own_domains():
    every = replace(TRIE, participation="every-round", local_epsilon=6.295, depth=7)
    assert len(plan_of(every).layers) == 8
    claimed = before_run(every)
    assert claimed.epsilon == pytest.approx(0.9384, abs=2e-4)
    # One law for all domains would be .9965, and 6.30 the largest local epsilon at 1.
    more = replace(every, local_epsilon=6.41, depth=8, eta_max=3_000)
    assert before_run(more).epsilon == pytest.approx(0.9982, abs=2e-4)
    assert before_run(every, "item").epsilon == pytest.approx(claimed.epsilon, abs=0.002)
    assert SECRET_COHORTS not in claimed.assumptions


def test_whoever_may_know_the_cohorts_is_told_of_the_smallest():
    known = before_run(replace(EPOCHS, epochs=5, cohorts="known"))
    bound = Clones2023(local_epsilon=6.0, num_reports=NUM_CLIENTS // 2)
    pair = composed_epsilon([Use(bound=bound, times=5)], delta=DELTA, precision=QUICK)
    assert 0.95 * pair < known.epsilon < 1.02 * pair
    assert SECRET_COHORTS not in known.assumptions
    assert known.smallest_cohort == NUM_CLIENTS // 2


def test_who_links_a_devices_messages_has_all_local_epsilons():
    report = plan_of(replace(EPOCHS, epochs=5)).report(
        PrivacyTerms(num_clients=0, delta=DELTA, alpha=0.5)
    )
    assert report.best("user", "local").epsilon == 30
    assert report.best("item", "local").epsilon == 30
    assert any("once in each of 5 epochs" in note for note in report.notes)
    assert not any(each.realised for each in report.guarantees)


def test_colluders_are_taken_from_all_clients_of_an_epoch():
    plan = plan_of(EPOCHS)
    collusion = Collusion(colluders=100_000, num_clients=NUM_CLIENTS)
    honest = collusion.honest_part(plan)
    assert honest.fewest_answers == pytest.approx(200_000, abs=20)
    assert honest.fewest_answers <= 200_000
    report = plan.report(
        PrivacyTerms(num_clients=collusion.num_clients, collusion=collusion, delta=DELTA, alpha=0.5)
    )
    fewer = plan_of(EPOCHS, num_clients=200_000).accepting(lambda clients: clients)
    terms = PrivacyTerms(num_clients=200_000, delta=DELTA)
    claimed = report.before_run("user").epsilon
    assert claimed == pytest.approx(fewer.central_epsilon("user", terms), rel=1e-3)


@pytest.mark.parametrize("times", [1, 3])
def test_collections_by_one_plan_compose_as_rounds_do(times):
    every = plan_of(replace(TRIE, participation="every-round")).in_collections(times)
    one, epochs = (
        plan_of(each).in_collections(times) for each in (TRIE, replace(EPOCHS, epochs=2))
    )
    terms = PrivacyTerms(num_clients=NUM_CLIENTS, delta=DELTA)
    cohort = min(each.num_clients for each in plan_of(TRIE).layers)
    layers = len(plan_of(TRIE).layers)
    shuffles = {every: (NUM_CLIENTS, layers), epochs: (NUM_CLIENTS, 2)}
    if times > 1:
        shuffles[one] = (cohort, 1)
    for plan, (clients, of_collection) in shuffles.items():
        assert plan.most_rounds_per_client == of_collection * times
        # Of any domains, which the votes of earlier collections decide.
        bound = Clones2023(local_epsilon=6.0, num_reports=clients)
        uses = [Use(bound=bound, times=of_collection * times)]
        pair = composed_epsilon(uses, delta=DELTA, precision=QUICK)
        assert 0.8 * pair < plan.central_epsilon("user", terms) < 1.02 * pair
