"""A run's privacy is made from what took part in it, not from what was meant to."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace

import pandas as pd
import pytest

from fedhh.accounting import NotApplicable, paper_subset_size, shuffle_epsilon, triehh_epsilon
from fedhh.experiments.config.labels import round_up
from fedhh.experiments.report.comparison import comparison_table, results_of_runs
from fedhh.experiments.report.run_figures import of_whom
from fedhh.experiments.report.run_tables import summary_rows
from fedhh.experiments.run.directory import result_record
from fedhh.experiments.run.flat_result import flat_result
from fedhh.experiments.run.privacy import (
    MEASURED_ANONYMITY,
    central_epsilon,
    claimed_k,
    measured_anonymity,
    privacy_of_run,
)
from fedhh.experiments.run.run import run_config, simulate
from fedhh.experiments.run.sentences import privacy_sentence
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.pem import Pem
from fedhh.server.sfp import Sfp
from fedhh.server.triehh import TrieHH
from fedhh.simulation import engine
from fedhh.simulation.executor import InProcessExecutor
from fedhh.testing import LETTERS, small_population
from tests.thinned import thinned

POPULATION = small_population(1_800)
PROTOCOL = LdpTrieHH(
    local_epsilon=4.0,
    clients_per_layer=300,
    depth=6,
    eta_max=20,
    max_items=2,
    passes=1,
    alphabet=LETTERS,
    subset_size="paper",
)
DELTA = 1e-6


def summaries_of(protocol, executor=None, population=POPULATION):
    from fedhh.clients.worker import ClientWorker

    executor = executor or InProcessExecutor(ClientWorker(population, seed=3))
    *_, last = engine.rounds(protocol, executor)
    return last.state.history


@pytest.fixture(scope="module")
def summaries():
    return summaries_of(PROTOCOL)


def report_of(protocol, summaries):
    return privacy_of_run(
        protocol, summaries, num_clients=POPULATION.num_clients, delta=DELTA, alpha=0.9
    )


def subset_size(protocol, summary):
    return protocol.plan.values_per_report(summary.domain_size)


def by_method(report, unit, trust="central"):
    chosen = [each for each in report.guarantees if (each.unit, each.trust) == (unit, trust)]
    return {each.method: each for each in chosen}


def test_item_level_is_the_shuffle_bound_of_the_reports_that_were_counted(summaries):
    assert {s.num_reports for s in summaries} == {600}
    item = by_method(report_of(PROTOCOL, summaries), "item")
    common = {"local_epsilon": 4.0, "num_reports": 600, "delta": DELTA}
    # Subset Selection with each layer's own s and d; the maximum over layers.
    sizes = {(s.domain_size, subset_size(PROTOCOL, s)) for s in summaries}
    assert len(sizes) > 1
    assert all(d == paper_subset_size(4.0, s) for s, d in sizes)
    blankets = [
        shuffle_epsilon("blanket", **common, domain_size=s, subset_size=d) for s, d in sizes
    ]
    assert item["blanket"].epsilon == pytest.approx(max(blankets), rel=1e-6)
    assert item["blanket"].epsilon < shuffle_epsilon("clones", **common)


def test_the_larger_of_two_subset_sizes_is_accounted_with_its_own_bound():
    optimal = replace(PROTOCOL, subset_size="optimal", local_epsilon=3.5)
    summaries = summaries_of(optimal)
    report = report_of(optimal, summaries)
    by_layer = [
        shuffle_epsilon(
            "blanket",
            local_epsilon=3.5,
            num_reports=600,
            delta=DELTA,
            domain_size=s.domain_size,
            subset_size=subset_size(optimal, s),
        )
        for s in summaries
    ]
    assert any(subset_size(optimal, s) != paper_subset_size(3.5, s.domain_size) for s in summaries)
    assert by_method(report, "item")["blanket"].epsilon == pytest.approx(max(by_layer), rel=1e-6)


def test_fewer_reports_in_one_layer_give_a_larger_epsilon_and_are_said(summaries):
    whole = report_of(PROTOCOL, summaries)
    lossy = [*summaries[:-1], replace(summaries[-1], num_clients=120, num_reports=240)]
    report = report_of(PROTOCOL, lossy)
    for unit in ("item", "user"):
        assert central_epsilon(report, unit) > central_epsilon(whole, unit)
        assert report.best(unit, "central").smallest_cohort == 120
    assert any("180 clients' reports were lost" in note for note in report.notes)
    assert not any("lost" in note for note in whole.notes)


class _LosesBlocks(InProcessExecutor):
    """Drops the first block of every question, as a network might."""

    def answer(self, broadcast, progress=None):
        return self._worker.answer(broadcast, range(1, broadcast.cohort.num_blocks), progress)


def test_blocks_that_a_run_drops_change_its_claims(summaries):
    from fedhh.clients.worker import ClientWorker

    lossy = summaries_of(PROTOCOL, _LosesBlocks(ClientWorker(POPULATION, seed=3)))
    assert {s.num_clients for s in lossy} == {44}
    report = report_of(PROTOCOL, lossy)
    assert central_epsilon(report, "item") > central_epsilon(report_of(PROTOCOL, summaries), "item")
    assert any(f"{256 * len(lossy)} clients' reports were lost" in n for n in report.notes)


def test_without_padding_the_slots_are_dropped_and_the_number_of_reports_is_not_hidden(summaries):
    # Two items per client at most; many clients have fewer prefixes left in later layers.
    protocol = replace(PROTOCOL, pad=False, max_items=4)
    unpadded = summaries_of(protocol)
    assert min(s.num_reports for s in unpadded) < 4 * 300
    report = report_of(protocol, unpadded)
    assert report.best("user", "central").method.endswith("groups")
    assert any("slots" in note and "dropped" in note for note in report.notes)
    for unit in ("item", "user"):
        for trust in ("local", "central"):
            assert "equally many reports" in report.best(unit, trust).assumptions
    padded = report_of(PROTOCOL, summaries)
    assert not any("equally many" in each.assumptions for each in padded.guarantees)
    # The bound is that of the fewest reports of a layer.
    grr = replace(protocol, oracle="grr")
    unpadded = summaries_of(grr)
    fewest = min(s.num_reports for s in unpadded)
    expected = shuffle_epsilon("clones", local_epsilon=4.0, num_reports=fewest, delta=DELTA)
    assert by_method(report_of(grr, unpadded), "item")["clones"].epsilon == pytest.approx(expected)


@pytest.mark.slow("tests/accounting/test_report.py::test_reused_clients_of_a_small_run_compose")
def test_reused_clients_compose_over_the_rounds_they_may_have_served_in(summaries):
    protocol = replace(PROTOCOL, participation="every-round")
    reused = summaries_of(protocol)
    rounds = len(reused)
    report, disjoint = report_of(protocol, reused), report_of(PROTOCOL, summaries)
    assert report.best("item", "local").epsilon == 4.0 * rounds
    assert report.best("user", "local").epsilon == 4.0 * rounds * 2
    once = disjoint.before_run("item").epsilon
    assert 1.5 * once < central_epsilon(report, "item") < 1.01 * rounds * once
    assert any(f"up to {rounds} rounds" in note for note in report.notes)
    assert any("disjoint" in note for note in disjoint.notes)


def test_central_triehh_claims_its_planned_rounds_over_the_whole_population():
    protocol = TrieHH(clients_per_layer=60, threshold=6, depth=6, alphabet=LETTERS)
    report = report_of(protocol, summaries_of(protocol))
    for unit in ("item", "user"):
        assert math.isinf(report.best(unit, "local").epsilon)
    # Seven rounds at most, whether or not the run stopped before.
    settings = {"num_clients": POPULATION.num_clients, "sample_size": 60, "threshold": 6}
    expected = triehh_epsilon(**settings, num_rounds=7, delta=DELTA)
    assert central_epsilon(report, "user") == expected < math.inf
    assert report.best("user", "central").delta == DELTA


@pytest.mark.parametrize(
    ("protocol", "theorem"),
    [
        (PROTOCOL, "Sun et al. (2024), Theorem 1"),
        (Sfp(alphabet=LETTERS, clients_per_layer=900, length=6, max_items=2), "Theorem 4.5"),
        (Pem(alphabet=LETTERS, clients_per_layer=300, length=6, max_items=2), "randomizer"),
    ],
)
def test_the_local_theorem_is_that_of_the_randomizer(protocol, theorem):
    report = report_of(protocol, summaries_of(protocol))
    assert theorem in report.best("item", "local").theorem


def test_no_randomizer_is_no_privacy():
    protocol = replace(PROTOCOL, oracle="none")
    report = report_of(protocol, summaries_of(protocol))
    assert {each.epsilon for each in report.guarantees} == {math.inf}
    assert report.anonymity == ()
    assert "Without a randomizer nothing is private." in report.notes
    assert central_epsilon(report, "item") == math.inf
    assert claimed_k(report) is None


def test_another_randomizer_has_the_bounds_of_any_randomizer():
    protocol = replace(PROTOCOL, oracle="grr")
    report = report_of(protocol, summaries_of(protocol))
    assert report.best("item", "central").method == "clones"
    assert "blanket" not in by_method(report, "item")
    assert claimed_k(report) is None


def test_k_anonymity_starts_with_the_first_layer_that_decides():
    protocol = replace(PROTOCOL, skip_free_layers=False, eta_max=60)
    summaries = summaries_of(protocol)
    assert [s.decides for s in summaries[:3]] == [False, True, True]
    claims = report_of(protocol, summaries).anonymity
    of_layer = {each.layer: each for each in claims}
    assert isinstance(of_layer[1].k, NotApplicable)
    assert not isinstance(of_layer[2].k, NotApplicable)
    overall = of_layer[None]
    ks = [each.k for each in claims if each.layer and not isinstance(each.k, NotApplicable)]
    assert (-1 if overall.k is None else overall.k) == min(-1 if k is None else k for k in ks)


FIELDS = {
    "unit", "neighboring", "epsilon", "delta", "theorem", "assumptions", "smallest_cohort",
}  # fmt: skip


def small_run(**changes):
    from fedhh.experiments.config.load import load_config

    settings = [f"{key}={value}" for key, value in changes.items()]
    config = load_config(
        settings=[
            f'population.alphabet="{LETTERS}"', "protocol.name=ldp-triehh",
            "protocol.depth=6", "protocol.eta_max=20",
            "protocol.passes=1", "protocol.max_items=2", "protocol.clients_per_layer=300",
            "protocol.participation=one-round", "protocol.false_discovery_rate=0",
            "privacy.local_epsilon=4.0", "execution.workers=0", *settings,
        ]
    )  # fmt: skip
    return run_config(config, POPULATION)


def test_a_saved_result_states_every_guarantee_in_full():
    config, result = small_run(**{"privacy.delta": 1e-7, "privacy.alpha": 0.8})
    record = json.loads(json.dumps(result_record(result, config, {}), allow_nan=False))
    guarantees = record["privacy"]["guarantees"]
    assert len(guarantees) == 6
    for each in guarantees:
        assert each.keys() >= FIELDS
        assert each["unit"] in {"item", "user"}
        assert each["neighboring"] == "replace-one"
        assert each["delta"] == (0.0 if each["trust"] == "local" else 1e-7)
        assert each["epsilon"] is not None or each["reason"]
        assert each["theorem"]
        assert each["assumptions"].count("\n") == 0
        assert each["smallest_cohort"] == result.layers["num_clients"].min()
    assert {each["alpha"] for each in record["privacy"]["anonymity"]} == {0.8}
    measured = record["privacy"]["measured_anonymity"]
    assert list(measured) == list(MEASURED_ANONYMITY)
    assert measured.items() <= record["metrics"].items()
    assert measured["fewest_holders"] == result.discoveries["true_clients"].min()


def test_a_run_has_the_papers_delta_and_measures_the_holders_of_what_it_found():
    _, result = small_run()
    assert {each.delta for each in result.privacy.guarantees} == {0.0, 1e-10}
    holders = result.discoveries["true_clients"]
    assert result.metrics.fewest_holders == holders.min()
    k = claimed_k(result.privacy)
    share = None if k is None else (holders <= k).mean()
    assert result.metrics.share_held_by_at_most_k == share


def test_a_run_has_the_delta_that_it_is_given():
    direct = simulate(replace(PROTOCOL, clients_per_layer=200), POPULATION, seed=1, delta=1e-4)
    assert {each.delta for each in direct.privacy.guarantees} == {0.0, 1e-4}


@pytest.mark.slow("tests/accounting/test_report.py::test_reused_clients_of_a_small_run_compose")
def test_tables_state_the_local_epsilon_of_all_rounds_where_clients_are_reused():
    config, result = small_run(**{"protocol.participation": "every-round", "protocol.max_items": 3})
    rounds = result.cost["rounds"]
    assert rounds > 2
    row = flat_result(result, delta=config.privacy.delta)
    assert row["local_epsilon"] == 4.0 * rounds
    assert row["local_epsilon_user"] == 4.0 * rounds * 3
    shown = summary_rows(result)
    where = f"in all {rounds} layers"
    assert ("local epsilon", f"{4 * rounds}", f"item level: one contribution, {where}") in shown
    user = f"user level: all 3 contributions of a client, {where}"
    assert ("", f"{12 * rounds}", user) in shown


def discovered(holders, significant):
    return pd.DataFrame({"true_clients": holders, "is_significant": significant})


def test_measured_anonymity_counts_true_holders():
    table = discovered([0, 3, 50, 7], [False, True, True, True])
    assert measured_anonymity(table, 7) == {
        "fewest_holders": 0,
        "fewest_holders_significant": 3,
        "share_held_by_at_most_k": 0.75,
    }
    assert measured_anonymity(table, None)["share_held_by_at_most_k"] is None
    nothing = measured_anonymity(discovered([], []).astype({"is_significant": bool}), 7)
    assert set(nothing.values()) == {None}


@pytest.mark.slow("tests/accounting/test_report.py::test_reused_clients_of_a_small_run_compose")
def test_reused_clients_cost_all_rounds_that_the_settings_allow():
    # One prefix a layer dies out soon, which nobody knows before the run.
    _, result = small_run(**{"protocol.participation": "every-round", "protocol.eta_max": 1})
    rounds = len(result.protocol.plan.layers)
    assert result.cost["rounds"] < rounds
    assert result.privacy.best("item", "local").epsilon == 4.0 * rounds
    assert not any(each.realised for each in result.privacy.guarantees)
    assert str(rounds) in " ".join(result.privacy.notes)


@pytest.mark.parametrize(
    "changes", thinned([{"eta_max": 1}, {}, {"pad": False}, {"oracle": "grr"}])
)
@pytest.mark.parametrize("validation", [0.0, 0.05])
def test_what_holds_before_the_run_is_the_plans_whatever_took_place(changes, validation):
    protocol = replace(PROTOCOL, clients_per_layer=200, false_discovery_rate=validation, **changes)
    result = simulate(protocol, POPULATION, seed=1, delta=DELTA)
    planned = privacy_of_run(protocol, num_clients=POPULATION.num_clients, delta=DELTA)
    assert not any(each.realised for each in planned.guarantees)
    before = [each for each in result.privacy.guarantees if not each.realised]
    assert tuple(before) == planned.guarantees
    for unit in ("item", "user"):
        assert planned.before_run(unit) == planned.best(unit, "central")
        assert result.privacy.before_run(unit) == planned.before_run(unit)


def test_a_trie_that_dies_early_does_not_forget_the_rounds_it_planned():
    # A last, small cohort that is never asked decides what holds before the run.
    @dataclass(frozen=True, kw_only=True)
    class DiesAfterThreeLayers(LdpTrieHH):
        def cohort_size(self, pass_index, layer):
            return 50 if layer == self.depth else super().cohort_size(pass_index, layer)

        def keep(self, answers):
            kept, threshold = super().keep(answers)
            return (kept if answers.planned.layer < 3 else kept[:0]), threshold

    protocol = DiesAfterThreeLayers(**vars(PROTOCOL))
    result = simulate(protocol, POPULATION, seed=1, delta=DELTA)
    assert (result.cost["rounds"], len(protocol.plan.layers)) == (3, 6)
    assert result.layers["num_clients"].min() == 300
    for unit in ("item", "user"):
        before = result.privacy.before_run(unit)
        assert before.smallest_cohort == 50
        assert central_epsilon(result.privacy, unit) < before.epsilon
    all_small = privacy_of_run(
        replace(PROTOCOL, clients_per_layer=50), num_clients=1_800, delta=DELTA
    )
    assert result.privacy.before_run("item").epsilon == all_small.before_run("item").epsilon


def test_without_padding_nothing_is_claimed_before_the_run_but_what_is_local():
    protocol = replace(PROTOCOL, pad=False, max_items=4)
    report = report_of(protocol, summaries_of(protocol))
    assert report.before_run("item").epsilon == 4.0
    assert report.before_run("user").epsilon == 16.0
    assert report.best("item", "central").realised
    assert report.best("item", "central").epsilon < 4.0


def test_what_holds_before_the_run_stands_next_to_what_happened():
    _, result = small_run()
    report = result.privacy
    for unit in ("item", "user"):
        best, before = report.best(unit, "central"), report.before_run(unit)
        assert best.realised
        assert not before.realised
        assert best.epsilon <= before.epsilon <= report.best(unit, "local").epsilon
    realised = [each.method for each in report.guarantees if each.realised]
    assert realised
    assert all("blanket" in method and "any domain" not in method for method in realised)


def test_every_view_shows_what_holds_before_the_run_next_to_what_happened():
    config, result = small_run()
    report = result.privacy
    row = flat_result(result, delta=config.privacy.delta)
    record = result_record(result, config, {})["privacy"]["central_epsilon"]
    shown = [(value, note) for _, value, note in summary_rows(result)]
    for unit, suffix in (("item", ""), ("user", "_user")):
        before, after = report.before_run(unit).epsilon, report.best(unit, "central").epsilon
        assert after < before
        assert row[f"central_epsilon{suffix}_before_run"] == before
        assert row[f"central_epsilon{suffix}"] == after
        assert record[unit] == {"before_run": before, "after_run": after}
        notes = [note for value, note in shown if value in (round_up(before), round_up(after))]
        assert any(note.startswith(f"{unit} level, before the run at delta") for note in notes)
        assert any(note.startswith(f"{unit} level, for this run's domains") for note in notes)
    item = [round_up(row[f"central_epsilon{when}"]) for when in ("_before_run", "")]
    assert f"central epsilon {item[0]} before the run, {item[1]} after it," in of_whom(result)
    line = privacy_sentence(result)
    assert line.startswith(f"Privacy: epsilon {item[0]} at item level")
    assert f"before the run ({item[1]} and " in line
    table = comparison_table(*results_of_runs([(config, result)]))
    labels = [cells[0] for cells in table.rows if cells[0].startswith("central epsilon")]
    assert labels == [
        f"central epsilon {when} the run, {unit}"
        for unit in ("item", "user") for when in ("before", "after")
    ]  # fmt: skip
    assert "before the run for any domains" in table.note
