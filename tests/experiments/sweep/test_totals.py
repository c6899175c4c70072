"""A sweep says how many clients its protocols ask in all, and whether these are as many."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from fedhh.experiments.report.comparison import comparison_table
from fedhh.experiments.sweep import directory as results
from fedhh.experiments.sweep.comparison import comparison_of
from fedhh.experiments.sweep.plan import parse_sweep
from fedhh.experiments.sweep.sweep import run_sweep
from fedhh.validation import InputError
from tests.every import every

SMALL_SFP = {
    "name": "sfp", "word_hashes": 64, "word_cells": 64, "fragment_hashes": 64,
    "fragment_cells": 64, "num_puzzles": 16,
}  # fmt: skip
TABLE: dict[str, Any] = {
    "population": {"source": "chat", "clients": 4_000},
    "protocol": {"depth": 5, "max_items": 1, "eta_max": 20, "passes": 1},
    "metrics": {"top_k": [10]},
    "execution": {"workers": 0},
}
BOTH: dict[str, Any] = {"TrieHH": {}, "SFP": SMALL_SFP}


def plan_of(section: dict[str, Any], **protocol: Any):
    table = copy.deepcopy(TABLE)
    table["protocol"] |= protocol
    return parse_sweep({**table, "sweep": section}, "test")


def asked(plan) -> list[int]:
    return [cell.asked.clients for cell in plan.to_run]


def test_one_cohort_for_protocols_with_different_numbers_of_layers_is_said():
    said = "Clients asked in all, not the same for every protocol:"
    plan = plan_of({"protocols": BOTH, "axes": {"protocol.clients_per_layer": [400, 600]}})
    assert plan.clients_line == f"{said} TrieHH 2,000 and 3,000; SFP 400 and 600."
    # The same without labels, and set in the base alone, which the second protocol does not take.
    plan = plan_of({"axes": {"protocol.name": ["ldp-triehh", "sfp"]}}, clients_per_layer=400)
    assert plan.clients_line == f"{said} LDP TrieHH 2,000; SFP 4,000."
    plan = plan_of({"protocols": BOTH}, clients_per_layer=400)
    assert plan.clients_line == f"{said} TrieHH 2,000; SFP 4,000."


def test_a_total_is_shared_out_among_each_protocols_layers():
    section = {
        "protocols": {**BOTH, "two": {"passes": 2}},
        "axes": {"total_clients": [1_000, 4_000]},
    }
    plan = plan_of(section)
    assert [cell.varied for cell in plan.to_run] == [
        {"protocol": p, "total_clients": n} for p in ("TrieHH", "SFP", "two") for n in (1000, 4000)
    ]
    sizes = [cell.config.protocol.clients_per_layer for cell in plan.to_run]
    assert sizes == [200, 800, 1_000, 4_000, 100, 400]
    assert asked(plan) == [1_000, 4_000] * 3
    assert plan.clients_line == (
        "Clients asked in all, the same for every protocol: 1,000 and 4,000."
    )
    rounded = plan_of({"protocols": BOTH, "axes": {"total_clients": [1_003]}})
    assert asked(rounded) == [1_000, 1_003]
    assert rounded.clients_line == (
        "Clients asked in all, the same for every protocol: 1,003, rounded down to whole layers."
    )


def test_cohorts_that_give_equal_totals_are_said_to_be_equal():
    linked = {"protocol.name": ["ldp-triehh", "sfp"], "protocol.clients_per_layer": [500, 2_500]}
    assert asked(plan_of({"linked": [linked]})) == [2_500, 2_500]
    protocols = {
        "TrieHH": {"clients_per_layer": 500},
        "SFP": {**SMALL_SFP, "clients_per_layer": 2_500},
    }
    assert asked(plan_of({"protocols": protocols})) == [2_500, 2_500]


@pytest.mark.slow("::test_cohorts_that_give_equal_totals_are_said_to_be_equal")
def test_everybody_is_asked_by_all_and_samples_of_a_central_guarantee_stand_apart():
    central = {"name": "triehh", "central_epsilon": 20}
    table = {**copy.deepcopy(TABLE), "privacy": {"delta": 0.01}}
    table["sweep"] = {"protocols": {**BOTH, "central": central}}
    plan = parse_sweep(table, "test")
    assert plan.clients_line == (
        "Clients asked in all, the same for every protocol: 4,000; central draws samples as its "
        "guarantee allows."
    )
    table["sweep"]["axes"] = {"total_clients": [1_000]}
    with pytest.raises(InputError, match=r"total_clients = 1,000: expected .* got TrieHH \(cen"):
        parse_sweep(table, "test")


def test_a_sweep_of_one_protocol_says_what_its_cells_ask():
    plan = plan_of({"axes": {"protocol.passes": [1, 2]}}, clients_per_layer=300)
    assert plan.clients_line == "Clients asked in all, by each cell: 1,500 and 3,000."


@every(
    ("axes", "message"),
    [
        ({"total_clients": [4]}, "total_clients = 4: expected at least 5 clients for LDP TrieHH"),
        ({"total_clients": [0]}, "1 <= total_clients"),
        ({"total_clients": ["all"]}, "got total_clients='all'"),
        ({"total_clients": [True]}, "got total_clients=True"),
        ({"total_clients": [40_000]}, "has 4,000 clients"),
        ({"total_clients": [9], "protocol.clients_per_layer": [1]}, "vary one of the two"),
        ({"total_client": [9]}, "did you mean 'total_clients'"),
    ],
)
def test_a_total_that_cannot_be_is_refused(axes, message):
    with pytest.raises(InputError, match=message):
        plan_of({"axes": axes})


def test_a_comparison_does_not_drop_a_cohort_of_the_command_line():
    table = {**copy.deepcopy(TABLE)}
    table["protocol"]["clients_per_layer"] = 400
    made = comparison_of(copy.deepcopy(table), "mine.toml")
    assert "clients_per_layer" not in made["protocol"]
    kept = comparison_of(table, "mine.toml", settings=["protocol.clients_per_layer=400"])
    assert "not the same for every protocol" in parse_sweep(kept, "mine.toml").clients_line


@pytest.mark.slow("::test_a_sweep_of_one_protocol_says_what_its_cells_ask")
def test_results_and_the_table_say_what_was_asked(tmp_path):
    plan = plan_of({"protocols": BOTH, "axes": {"total_clients": [2_000]}})
    table = run_sweep(plan, tmp_path / "out", workers=0)
    assert table["clients_asked"].tolist() == [2_000, 2_000]
    frame, description = results.read_results(tmp_path / "out")
    assert description["clients"] == plan.clients_line
    assert plan.clients_line in comparison_table(frame, description).note
