"""Central guarantees when some clients tell the server what they sent."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy import stats

import fedhh
from fedhh.accounting import (
    Collusion,
    LayeredPlan,
    NotApplicable,
    account_shuffle,
    account_user,
    shuffle_epsilon,
)
from fedhh.accounting.guarantees import or_infinite
from fedhh.accounting.plan import Plan
from fedhh.accounting.rounds import PlannedRound
from fedhh.accounting.sampled_threshold import SampledThreshold
from fedhh.accounting.terms import PrivacyTerms
from fedhh.server.blender import Blender
from fedhh.validation import InputError
from tests.accounting.brute_force import hockey_stick
from tests.accounting.heard import heard
from tests.accounting.sampled_votes_enumerated import NOTHING, round_distribution
from tests.conformance.test_protocols import PROTOCOLS as SETTLED
from tests.every import every
from tests.thinned import thinned

DELTA = 1e-8
GBOARD = {"local_epsilon": 10.0, "num_reports": 30_000_000, "delta": 1e-10}


def chances(num_clients: int, colluders: int, cohort: int) -> list[Fraction]:
    """The hypergeometric distribution in whole numbers, by the number of colluders."""
    honest = num_clients - colluders
    whole = math.comb(num_clients, cohort)
    return [
        Fraction(math.comb(colluders, told) * math.comb(honest, cohort - told), whole)
        if told <= cohort
        else Fraction(0)
        for told in range(cohort + 1)
    ]


@pytest.mark.parametrize(
    ("share", "epsilon", "digits"),
    [(1.0, 0.30747, 5), (0.9, 0.32504, 5), (0.5, 0.44453, 5), (0.1, 1.1281, 4)],
)
def test_gboards_point_with_an_honest_share(share, epsilon, digits):
    # Computed independently, by another implementation of the clones.
    found = account_shuffle(**GBOARD, honest_share=share)
    assert round(found.by("clones").epsilon, digits) == epsilon
    assert found.by("clones").smallest_cohort == round(30_000_000 * share)
    assert found.by("clones").delta == 1e-10


@pytest.mark.parametrize("num_clients", [2, 7, 24])
def test_the_most_colluders_of_a_cohort_are_the_exact_quantile(num_clients):
    for colluders in range(num_clients):
        for cohort in range(1, num_clients + 1):
            exact = chances(num_clients, colluders, cohort)
            for excess in (0.09, 1e-3, 1e-12):
                found = Collusion(
                    colluders=colluders, num_clients=num_clients, excess_chance=excess
                ).most_colluders(cohort)
                assert sum(exact[found + 1 :]) <= excess
                # One fewer is too few.
                assert found == 0 or not exact[found - 1] or sum(exact[found:]) > excess


@pytest.mark.parametrize(
    ("num_clients", "colluders", "cohort"),
    [(10**9, 10**8, 500_000), (3_000_000, 30, 500_000), (100_000, 99_000, 40_000)],
)
def test_quantiles_of_large_populations_are_not_below_those_of_scipy(
    num_clients, colluders, cohort
):
    found = Collusion(colluders=colluders, num_clients=num_clients).most_colluders(cohort)
    law = stats.hypergeom(num_clients, colluders, cohort)
    assert law.sf(found) <= 1e-12 * (1 + 1e-6)
    assert law.sf(found - 2) > 1e-12


def test_a_server_that_chooses_a_cohort_has_all_colluders_in_it_and_adds_no_delta():
    chosen = Collusion(colluders=300, num_clients=10_000, cohorts_by="server")
    assert (chosen.most_colluders(1_000), chosen.most_colluders(200)) == (300, 200)
    assert (chosen.fewest_honest(1_000), chosen.fewest_honest(200)) == (700, 1)
    assert chosen.fewest_honest(1_000, answers=900) == 600
    assert chosen.added_delta(3) == 0
    drawn = Collusion(colluders=300, num_clients=10_000)
    assert drawn.most_colluders(1_000) < 300
    assert drawn.added_delta(3) == 3e-12


@cache
def coins_told_apart(honest: int, local_epsilon: float, epsilon: float) -> float:
    """Delta of one honest client's bit among the sum of others' randomized zeros, exactly."""
    flip = 1 / (1 + math.exp(local_epsilon))
    others = stats.binom(honest - 1, flip).pmf(np.arange(honest))
    zero, one = (np.convolve(others, [1 - own, own]) for own in (flip, 1 - flip))
    return max(hockey_stick(zero, one, epsilon), hockey_stick(one, zero, epsilon))


@pytest.mark.parametrize("local_epsilon", [0.5, 2.0])
def test_a_guarantee_is_not_below_the_truth_over_all_cohorts(local_epsilon):
    num_clients, colluders, cohort, delta, excess = 300, 270, 120, 1e-3, 1e-2
    collusion = Collusion(colluders=colluders, num_clients=num_clients, excess_chance=excess)

    def truth(epsilon: float) -> float:
        # The client in question is in the cohort: the rest of it is drawn from all others.
        law = chances(num_clients - 1, colluders, cohort - 1)
        return float(
            sum(
                float(chance) * coins_told_apart(cohort - told, local_epsilon, epsilon)
                for told, chance in enumerate(law)
                if chance
            )
        )

    found = account_shuffle(
        local_epsilon=local_epsilon, num_reports=cohort, delta=delta, collusion=collusion
    ).by("clones")
    assert found.delta == pytest.approx(delta + excess)
    assert truth(found.epsilon) <= found.delta
    # Negative control: colluders taken for honest clients.
    wrong = shuffle_epsilon("clones", local_epsilon=local_epsilon, num_reports=cohort, delta=delta)
    assert wrong < found.epsilon
    if local_epsilon == 2.0:
        assert truth(wrong) > found.delta


def settled(protocol, num_clients: int):
    return protocol.settle(num_clients=num_clients, seed=0)


def report_of(plan: Plan, collusion: Collusion, layers=()):
    return plan.report(
        PrivacyTerms(
            num_clients=collusion.num_clients, collusion=collusion, delta=DELTA, alpha=0.95
        ),
        layers,
    )


def numbers(report, *, trust: str):
    return [
        (each.unit, each.method, each.epsilon, each.delta)
        for each in report.guarantees
        if each.trust == trust
    ]


@pytest.mark.parametrize("oracle", thinned(["grr", "ss"]))
def test_a_plan_claims_what_that_of_the_honest_clients_does(oracle):
    plan = LayeredPlan(layers=3, max_items=1, oracle=oracle, domain_size=50)(3_000, 3.0)
    collusion = Collusion(colluders=600, num_clients=3_000, excess_chance=1e-10)
    honest = collusion.fewest_honest(1_000)
    assert 700 < honest < 800
    smaller = LayeredPlan(layers=3, max_items=1, oracle=oracle, domain_size=50)(3 * honest, 3.0)
    found = report_of(plan, collusion)
    same = smaller.report(PrivacyTerms(num_clients=3 * honest, delta=DELTA, alpha=0.95))
    assert numbers(found, trust="central") == [
        (unit, method, epsilon, DELTA + 1e-10)
        for unit, method, epsilon, _ in numbers(same, trust="central")
    ]
    # Nothing local changes.
    alone = plan.report(PrivacyTerms(num_clients=3_000, delta=DELTA, alpha=0.95))
    assert numbers(found, trust="local") == numbers(alone, trust="local")
    assert found.before_run("item").epsilon > alone.before_run("item").epsilon
    assert "600 of 3,000 clients" in found.notes[-1]
    nobody = report_of(plan, Collusion(colluders=0, num_clients=3_000))
    assert numbers(nobody, trust="central") == numbers(alone, trust="central")


def test_a_client_of_several_rounds_adds_the_chance_of_each():
    protocol = fedhh.LdpTrieHH(
        depth=3, passes=1, clients_per_layer=200, local_epsilon=1.0,
        oracle="grr", participation="every-round",
        skip_free_layers=False,
    ).settle(num_clients=100_000, seed=0)  # fmt: skip
    collusion = Collusion(colluders=10_000, num_clients=100_000, excess_chance=1e-9)
    uses = protocol.plan.most_rounds_per_client
    assert uses == 3
    assert report_of(protocol.plan, collusion).before_run("item").delta == DELTA + 3e-9


def test_nothing_is_amplified_where_a_server_fills_a_cohort_with_colluders():
    plan = LayeredPlan()(1_000, 3.0)
    everybody = Collusion(colluders=5_000, num_clients=9_000, cohorts_by="server")
    for unit in ("item", "user"):
        found = report_of(plan, everybody).before_run(unit)
        assert (found.epsilon, found.delta) == (3.0, 0.0)


def test_of_few_who_answered_the_honest_are_counted():
    plan = LayeredPlan(oracle="grr", domain_size=3)(100, 1.0).accepting(lambda asked: asked // 2)
    collusion = Collusion(colluders=20, num_clients=1_000, excess_chance=1e-4)
    told = collusion.most_colluders(100)
    record = heard(num_clients=80, num_reports=80, domain_size=3, num_kept=1, decides=True)
    found = report_of(plan, collusion, [record])
    realised = found.best("item", "central")
    assert realised.realised
    assert realised.smallest_cohort == 80 - told < 80
    assert found.before_run("item").smallest_cohort == 50 - told


@pytest.mark.slow("::test_of_few_who_answered_the_honest_are_counted")
def test_realised_guarantees_count_the_honest_among_those_who_answered():
    plan = LayeredPlan(domain_size=50)(5_000, 6.0).accepting(lambda asked: asked // 2)
    collusion = Collusion(colluders=1_000, num_clients=50_000)
    told = collusion.most_colluders(5_000)
    record = heard(num_clients=4_000, num_reports=4_000, domain_size=50, num_kept=3, decides=True)
    found = report_of(plan, collusion, [record])
    realised = found.best("item", "central")
    assert realised.realised
    assert realised.smallest_cohort == 4_000 - told
    assert found.before_run("item").smallest_cohort == 2_500 - told


@pytest.mark.parametrize("noise", ["discrete-laplace", "skellam"])
def test_shares_that_colluders_tell_count_as_missing(noise):
    settings = {"depth": 3, "clients_per_layer": 1_000, "central_epsilon": 1.0, "noise": noise}
    plan = settled(fedhh.SecAggTrieHH(**settings, max_dropout=0.1), 10_000).plan
    chosen = Collusion(colluders=200, num_clients=10_000, cohorts_by="server")
    found = report_of(plan, chosen)
    for unit in ("item", "user"):
        assert found.before_run(unit).epsilon == plan.epsilon(unit, DELTA, part=0.7)
        assert found.before_run(unit).epsilon > plan.epsilon(unit, DELTA)
    drawn = Collusion(colluders=200, num_clients=10_000, excess_chance=1e-10)
    found = report_of(plan, drawn)
    part = drawn.fewest_honest(1_000, answers=900) / 1_000
    assert found.before_run("item").epsilon == plan.epsilon("item", DELTA, part=part)
    # Pure noise, too, has the chance that more of it is known.
    assert {each.delta for each in found.guarantees if each.trust == "central"} <= {
        DELTA + 1e-10, 1e-10,
    }  # fmt: skip


def test_a_curators_own_noise_does_not_rest_on_clients():
    plan = settled(fedhh.TeeHistogram(central_epsilon=1.0), 1_000).plan
    found = report_of(plan, Collusion(colluders=900, num_clients=1_000))
    alone = plan.report(PrivacyTerms(num_clients=1_000, delta=DELTA, alpha=0.95))
    assert found.guarantees == alone.guarantees
    assert "change no guarantee" in found.notes[-1]


@pytest.mark.slow("::test_a_curators_own_noise_does_not_rest_on_clients")
def test_servers_own_noise_does_not_rest_on_clients():
    collusion = Collusion(colluders=900, num_clients=1_000)
    for protocol in (
        fedhh.TwoServers(depth=3, central_epsilon=1.0),
        fedhh.TeeHistogram(central_epsilon=1.0),
        fedhh.SampleAndThreshold(central_epsilon=4.0, delta=1e-4),
    ):
        plan = settled(protocol, 1_000).plan
        found = report_of(plan, collusion)
        alone = plan.report(PrivacyTerms(num_clients=1_000, delta=DELTA, alpha=0.95))
        assert found.guarantees == alone.guarantees
        assert "change no guarantee" in found.notes[-1]


def test_a_sample_that_colluders_know_has_no_guarantee():
    rounds = (
        PlannedRound(pass_index=0, layer=1, num_clients=2_000, smallest_domain=3, largest_domain=9),
    )
    plan = SampledThreshold(layers=rounds, sample_size=100, threshold=10)
    alone = plan.report(PrivacyTerms(num_clients=2_000, delta=1e-3, alpha=0.95))
    assert alone.before_run("item").epsilon < math.inf
    told = Collusion(colluders=7, num_clients=2_000)
    found = plan.report(PrivacyTerms(num_clients=2_000, collusion=told, delta=1e-3, alpha=0.95))
    for unit in ("item", "user"):
        assert found.before_run(unit).epsilon == math.inf


@pytest.mark.slow("::test_a_sample_that_colluders_know_has_no_guarantee")
def test_sampling_with_a_threshold_is_no_guarantee_against_clients_who_know_their_sample():
    protocol = settled(fedhh.TrieHH(central_epsilon=4.0, delta=1e-4), 10_000)
    found = report_of(protocol.plan, Collusion(colluders=7, num_clients=10_000))
    for unit in ("item", "user"):
        assert found.before_run(unit).epsilon == math.inf
    unproven = [
        each.epsilon for each in found.guarantees if isinstance(each.epsilon, NotApplicable)
    ]
    assert len(unproven) == 2
    # Ten clients, four of whom are sampled, and two votes keep a word. Given that one colluder was
    # sampled, the other client's word is kept by its own vote alone.
    of_others = {"sampled": 9, "threshold": 1}
    kept = round_distribution((("a", 1), (NOTHING, 8)), 3, of_others["threshold"])
    never = round_distribution(((NOTHING, 9),), 3, of_others["threshold"])
    with_a = frozenset({"a"})
    assert Fraction(kept[with_a], sum(kept.values())) == Fraction(1, 3)
    assert with_a not in never


def test_only_those_who_randomize_need_others_where_some_trust_a_curator():
    protocol = settled(Blender(opt_in_share=0.2, delta=1e-6, length=4), 20_000)
    collusion = Collusion(colluders=5_000, num_clients=20_000)
    found = report_of(protocol.plan, collusion)
    alone = protocol.plan.report(PrivacyTerms(num_clients=20_000, delta=DELTA, alpha=0.95))

    def methods(report):
        return {(each.unit, each.trust, each.method): each for each in report.guarantees}

    before, after = methods(alone), methods(found)
    opted_in = ("user", "central", "opted in: Laplace and threshold")
    assert after[opted_in] == before[opted_in]
    everybody = [each.before_run("user").epsilon for each in (alone, found)]
    assert everybody[1] > everybody[0]


@every("name", SETTLED)
def test_every_protocol_s_plan_knows_what_colluders_leave(name):
    plan = SETTLED[name].settle(num_clients=3_000, seed=0).plan
    collusion = Collusion(colluders=300, num_clients=3_000)
    alone = plan.report(PrivacyTerms(num_clients=3_000, delta=DELTA, alpha=0.95))
    found = report_of(plan, collusion)
    for unit in ("item", "user"):
        assert found.best(unit, "local").epsilon == alone.best(unit, "local").epsilon
        one, other = (or_infinite(each.before_run(unit).epsilon) for each in (alone, found))
        assert one <= other
    assert len(found.notes) == len(alone.notes) + 1


def test_a_user_counts_honest_clients_alone():
    asked = {"local_epsilon": 1.0, "max_items": 2, "delta": 1e-2}
    collusion = Collusion(colluders=50, num_clients=100, excess_chance=1e-3)
    user = account_user(**asked, num_clients=20, collusion=collusion).best("user", "central")
    assert user.smallest_cohort == collusion.fewest_honest(20) < 10
    assert user.delta == 1e-2 + 1e-3
    honest = account_user(**asked, num_clients=user.smallest_cohort).best("user", "central")
    assert user.epsilon == honest.epsilon


@pytest.mark.slow("::test_a_user_counts_honest_clients_alone")
def test_users_count_honest_clients_with_all_their_reports():
    asked = {"local_epsilon": 3.0, "max_items": 2, "delta": 1e-3}
    found = account_user(**asked, num_clients=1_000, honest_share=0.29)
    assert found.guarantees == account_user(**asked, num_clients=290).guarantees
    assert "580 of 2,000 reports are honest" in found.notes[-1]
    collusion = Collusion(colluders=71_000, num_clients=100_000, excess_chance=1e-7)
    user = account_user(**asked, num_clients=1_000, collusion=collusion).by("clones, slots")
    item = account_shuffle(
        local_epsilon=3.0, num_reports=2_000, max_items=2, delta=1e-3, collusion=collusion
    ).by("clones")
    assert item.smallest_cohort == user.smallest_cohort < 290
    assert user.delta == item.delta == 1e-3 + 1e-7


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"colluders": 10, "num_clients": 10}, "colluders < num_clients=10"),
        ({"colluders": -1, "num_clients": 10}, "colluders=-1"),
        ({"colluders": 1, "num_clients": 10, "excess_chance": 0.5}, "excess_chance=0.5"),
        ({"colluders": 1, "num_clients": 10, "cohorts_by": "fate"}, "cohorts_by"),
    ],
)
def test_impossible_collusion_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        Collusion(**given)


def test_a_shuffle_refuses_what_leaves_nothing_to_amplify():
    some = Collusion(colluders=1, num_clients=1_000)
    with pytest.raises(InputError, match="at least 2 honest reports"):
        account_shuffle(local_epsilon=1.0, num_reports=1_000, honest_share=0.001)
    with pytest.raises(InputError, match="0 < honest_share <= 1"):
        account_shuffle(local_epsilon=1.0, num_reports=1_000, honest_share=1.5)
    with pytest.raises(InputError, match="honest_share or collusion"):
        account_shuffle(local_epsilon=1.0, num_reports=100, honest_share=0.5, collusion=some)
    with pytest.raises(InputError, match="multiple of max_items=7"):
        account_shuffle(local_epsilon=1.0, num_reports=100, max_items=7)
    with pytest.raises(InputError, match="cohort of at most num_clients=1000"):
        account_shuffle(local_epsilon=1.0, num_reports=2_000, collusion=some)

    class Unknown(Plan):
        pass

    with pytest.raises(InputError, match="a plan that states what it guarantees, got Unknown"):
        report_of(Unknown(layers=()), some)
