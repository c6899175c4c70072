"""The report of a run: every guarantee from what took part, and nothing that does not hold."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from fedhh.accounting import (
    Clones,
    NotApplicable,
    paper_subset_size,
    subset_selection_blanket,
)
from fedhh.accounting.guarantees import PrivacyReport, place_of_smallest
from fedhh.accounting.local_reports import LocalReports
from fedhh.accounting.plan import Plan
from fedhh.accounting.rounds import PlannedRound, RoundSummary
from fedhh.accounting.terms import PrivacyTerms
from fedhh.oracles import OracleSpec
from fedhh.validation import InputError
from tests.accounting.heard import heard
from tests.accounting.users import user_level_epsilon

LOCAL_EPSILON, ITEMS, KEPT, SYMBOLS = 8.0, 4, 60, 20


def layer(pass_index: int, number: int, candidates: int, **changes) -> RoundSummary:
    kept = min(KEPT, candidates)
    numbers = {"num_clients": 2000, "num_reports": 2000 * ITEMS, "domain_size": candidates + 1}
    decision = {"num_kept": kept, "decides": kept < candidates}
    return heard(pass_index=pass_index, layer=number, **{**numbers, **decision, **changes})


LAYERS = [
    layer(p, i, candidates)
    for p in range(2)
    for i, candidates in enumerate((50, 1000, 1200, 1180 - 20 * p))
]
RUN = {
    "oracle": "ss",
    "layers": LAYERS,
    "local_epsilon": LOCAL_EPSILON,
    "max_items": ITEMS,
    "delta": 1e-8,
    "alpha": 0.95,
}


def account_run(
    *, oracle, layers, local_epsilon, max_items, delta, alpha, padded=True, reused=False, lost=0
):
    planned = [
        PlannedRound(
            pass_index=each.pass_index,
            layer=each.layer,
            num_clients=each.num_clients + lost,
            smallest_domain=each.domain_size,
            largest_domain=each.domain_size,
            max_items=max_items,
            padded=padded,
            local_epsilon=local_epsilon,
        )
        for each in layers
    ]
    plan = LocalReports(
        layers=tuple(planned),
        participation="every-round" if reused else "one-round",
        randomizers=(OracleSpec(name=oracle, epsilon=local_epsilon),),
    )
    return plan.report(PrivacyTerms(num_clients=10_000, delta=delta, alpha=alpha), layers)


def by_method(report, unit, trust):
    return {
        each.method: each for each in report.guarantees if (each.unit, each.trust) == (unit, trust)
    }


@pytest.fixture(scope="module")
def report():
    return account_run(**RUN)


def test_local_guarantees_are_pure_and_multiply_by_the_items(report):
    assert report.best("item", "local").epsilon == LOCAL_EPSILON
    assert report.best("user", "local").epsilon == ITEMS * LOCAL_EPSILON
    for unit in ("item", "user"):
        assert report.best(unit, "local").delta == 0.0
    assert report.best("item", "local").theorem == "Sun et al. (2024), Theorem 1"


def test_item_level_is_the_maximum_over_layers(report):
    item = by_method(report, "item", "central")
    n = 2000 * ITEMS
    common = {"local_epsilon": LOCAL_EPSILON, "num_reports": n}
    blankets = [
        subset_selection_blanket(
            **common,
            domain_size=record.domain_size,
            subset_size=paper_subset_size(LOCAL_EPSILON, record.domain_size),
        ).epsilon(1e-8)
        for record in LAYERS
    ]
    # Layers differ: the small first one is the worst, and the maximum is over all.
    assert max(blankets) > 1.05 * min(blankets)
    assert item["blanket"].epsilon == pytest.approx(max(blankets), rel=1e-6)
    assert item["blanket"].epsilon < Clones(**common).epsilon(1e-8)
    # The best alone is stated.
    assert list(item) == [report.best("item", "central").method] == ["blanket"]


SMALL = {
    **RUN,
    "oracle": "grr",
    "layers": [layer(0, i, 3, num_clients=100, num_reports=200) for i in (1, 2)],
    "local_epsilon": 0.5,
    "max_items": 2,
    "delta": 1e-3,
}


def test_user_level_of_a_small_run_is_the_better_of_groups_and_slots():
    found = account_run(**SMALL)
    user = by_method(found, "user", "central")
    expected = user_level_epsilon(
        bound="clones", local_epsilon=0.5, num_clients=100, max_items=2, delta=1e-3
    )
    assert list(user) == [f"clones, {expected.method}"]
    assert found.best("user", "central").epsilon == pytest.approx(expected.epsilon, rel=2e-3)


@pytest.mark.parametrize(
    ("epsilons", "place"),
    [
        ([1.0, 1.0 - 1e-12], 0),
        ([1.0, 1.0 - 1e-5], 1),
        ([NotApplicable("x"), math.inf, math.inf], 1),
        ([NotApplicable("x")], None),
        ([], None),
    ],
)
def test_of_epsilons_that_differ_by_rounding_the_first_is_the_best(epsilons, place):
    assert place_of_smallest(epsilons) == place


def test_reused_clients_of_a_small_run_compose():
    once = account_run(**SMALL)
    twice = account_run(**SMALL, reused=True)
    assert twice.best("item", "local").epsilon == 1.0
    assert twice.best("user", "local").epsilon == 2.0
    for unit in ("item", "user"):
        one, both = (each.best(unit, "central").epsilon for each in (once, twice))
        assert one < both <= 2.2 * one
    assert any("up to 2 rounds" in note for note in twice.notes)


def test_another_small_run_has_its_own_numbers():
    first = account_run(**SMALL)
    for change in ({"delta": 1e-2}, {"max_items": 1, "padded": False}, {"local_epsilon": 0.4}):
        other = account_run(**{**SMALL, **change})
        assert other.best("user", "central").epsilon != first.best("user", "central").epsilon
    assert account_run(**SMALL) == first


@pytest.mark.slow("::test_user_level_of_a_small_run_is_the_better_of_groups_and_slots")
def test_user_level_takes_the_better_of_groups_and_slots(report):
    of_clones, worst = (
        user_level_epsilon(
            bound=bound,
            local_epsilon=LOCAL_EPSILON,
            num_clients=2000,
            max_items=ITEMS,
            delta=1e-8,
            domain_size=51,
        )
        for bound in ("clones", "blanket")
    )
    best = report.best("user", "central")
    assert best.method.startswith("blanket")
    # Above what the worst layer alone gives.
    assert worst.epsilon * (1 - 1e-3) <= best.epsilon < of_clones.epsilon


def test_every_guarantee_says_what_it_is(report):
    for each in report.guarantees:
        assert each.neighboring == "replace-one"
        assert each.smallest_cohort == 2000
        assert each.theorem
        assert "\n" not in each.assumptions
    stated = [(each.unit, each.trust) for each in report.guarantees]
    assert stated == [
        ("item", "local"), ("user", "local"), ("item", "central"), ("user", "central"),
    ]  # fmt: skip
    assert all(each.best for each in report.guarantees)


def test_anonymity_is_by_layer_and_over_passes(report):
    tight = report.anonymity
    assert len(tight) == len(LAYERS) + 1
    for record, claim in zip(LAYERS, tight[:-1], strict=True):
        assert (claim.pass_index, claim.layer) == (record.pass_index, record.layer)
        assert isinstance(claim.k, NotApplicable) == (not record.decides)
    overall = tight[-1]
    assert overall.layer is None
    by_layer = [claim.k for claim in tight[:-1] if not isinstance(claim.k, NotApplicable)]
    # Two passes are two chances to surface, so the claim over the run is the weaker one.
    strengths = [-1 if k is None else k for k in by_layer]
    assert (-1 if overall.k is None else overall.k) <= min(strengths)


def test_a_run_whose_layers_decide_nothing_has_no_anonymity():
    report = account_run(**{**RUN, "layers": [layer(0, 0, 50), layer(0, 1, 40)]})
    assert isinstance(report.anonymity[-1].k, NotApplicable)


def test_the_report_survives_json_and_makes_rows(report):
    data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert len(data["guarantees"]) == len(report.guarantees)
    assert data["guarantees"][0]["neighboring"] == "replace-one"
    reasons = [each["reason"] for each in data["anonymity"] if each["k"] is None]
    assert any(reasons)
    assert PrivacyReport.from_dict(data) == report
    rows = report.rows()
    assert len({tuple(row) for row in rows}) == 1
    methods = [row["method"] for row in rows]
    assert "blanket *" in methods
    assert any(method.startswith("k-anonymity (tight)") for method in methods)
    assert all(isinstance(value, str) for row in rows for value in row.values())


def test_other_oracles_get_generic_bounds_only():
    report = account_run(**{**RUN, "oracle": "grr"})
    methods = by_method(report, "item", "central")
    assert set(methods) == {"clones"}
    n = 2000 * ITEMS
    clones = Clones(local_epsilon=LOCAL_EPSILON, num_reports=n).epsilon(1e-8)
    assert methods["clones"].epsilon == pytest.approx(clones, rel=1e-9)
    assert report.anonymity == ()


def test_without_a_randomizer_nothing_is_private():
    report = account_run(**{**RUN, "oracle": "none", "local_epsilon": math.inf})
    assert {each.epsilon for each in report.guarantees} == {math.inf}
    assert len(report.guarantees) == 4
    assert report.anonymity == ()
    assert "Without a randomizer nothing is private." in report.notes
    assert (
        json.loads(json.dumps(report.to_dict(), allow_nan=False))["guarantees"][0]["epsilon"]
        == "inf"
    )


def test_clients_that_do_not_pad_lose_the_slots(report):
    records = [replace(record, num_reports=5000) for record in LAYERS]
    found = account_run(**{**RUN, "layers": records, "padded": False})
    assert found.best("user", "central").method == "blanket, groups"
    assert any("slots" in note and "dropped" in note for note in found.notes)
    # Fewer reports arrived, so less is hidden.
    assert found.best("item", "central").epsilon > report.best("item", "central").epsilon


@pytest.mark.slow("::test_reused_clients_of_a_small_run_compose")
def test_reused_clients_compose_instead_of_taking_the_maximum():
    report = account_run(**{**RUN, "layers": LAYERS[1:3]})
    reused = account_run(**{**RUN, "layers": LAYERS[1:3], "reused": True})
    assert reused.best("item", "local").epsilon == 2 * LOCAL_EPSILON
    assert reused.best("user", "local").epsilon == 2 * ITEMS * LOCAL_EPSILON
    for unit in ("item", "user"):
        once, twice = (each.best(unit, "central").epsilon for each in (report, reused))
        assert once < twice <= 2.2 * once
    assert any("up to 2 rounds" in note for note in reused.notes)


def test_lost_reports_make_the_cohort_smaller_and_are_said(report):
    found = account_run(**RUN, lost=500)
    assert any("4000 clients' reports were lost" in note for note in found.notes)
    best, before = found.best("item", "central"), found.before_run("item")
    assert best.realised
    assert best.smallest_cohort == 2000
    assert best.epsilon == pytest.approx(report.best("item", "central").epsilon, rel=1e-9)
    # What the plan amplified does not hold.
    assert before.epsilon == LOCAL_EPSILON
    assert "fewer than the 2,500 of the plan" in before.assumptions


@pytest.mark.parametrize("local_epsilon", [0.05, 20.0])
def test_outside_the_computed_range_only_the_local_guarantee_remains(local_epsilon):
    report = account_run(**{**RUN, "local_epsilon": local_epsilon})
    central = report.best("item", "central")
    assert central.epsilon == local_epsilon
    assert "no amplification" in central.assumptions
    assert all(isinstance(each.k, NotApplicable) for each in report.anonymity)


def test_a_cohort_of_one_client_hides_nothing():
    alone = [replace(LAYERS[0], num_clients=1, num_reports=ITEMS)]
    report = account_run(**{**RUN, "layers": alone})
    assert report.best("user", "central").epsilon == ITEMS * LOCAL_EPSILON


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"delta": 0.0}, "1e-14 <= delta"),
        ({"alpha": 1.5}, "Expected 0 < alpha < 1, got alpha=1.5"),
        ({"max_items": 5}, "num_reports = num_clients [*] max_items = 10000 in pass 1, layer 0"),
        ({"local_epsilon": -1.0}, "local_epsilon=-1.0"),
    ],
)
def test_contradictions_are_named(change, message):
    with pytest.raises(InputError, match=message):
        account_run(**{**RUN, **change})


def test_a_plan_that_states_nothing_is_refused_by_name():
    class Unheard(Plan):
        pass

    with pytest.raises(InputError, match="states what it guarantees, got Unheard"):
        Unheard(layers=()).report(PrivacyTerms(num_clients=10_000, delta=1e-8, alpha=0.95), LAYERS)


@pytest.mark.slow("::test_another_small_run_has_its_own_numbers")
def test_a_second_run_with_other_settings_gets_its_own_numbers(report):
    for change in (
        {"delta": 1e-6},
        {"max_items": 2, "padded": False},
        {"reused": True},
        {"layers": [replace(each, num_clients=1000, num_reports=4000) for each in LAYERS]},
    ):
        other = account_run(**{**RUN, **change})
        assert other.best("user", "central").epsilon != report.best("user", "central").epsilon
    assert account_run(**RUN) == report
