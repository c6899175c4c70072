"""Protocols side by side: the table, and what `fedhh compare` makes of a configuration."""

from __future__ import annotations

import math
import tomllib

import pandas as pd
import pytest

from fedhh.experiments.compare_commands import DEFAULT_COMPARISON, _with_protocols
from fedhh.experiments.comparison import SERVER_SECONDS, comparison_of_runs, comparison_table
from fedhh.experiments.config import SWEEPS, load_config, preset_text
from fedhh.experiments.run import run_config
from fedhh.experiments.sweep_config import parse_sweep
from fedhh.validation import InputError
from tests.conftest import LETTERS, zipf_population


def results(**columns) -> pd.DataFrame:
    """Two protocols with three seeds each."""
    defaults = {
        "protocol": ["A"] * 3 + ["B"] * 3,
        "seed": [0, 1, 2] * 2,
        "coverage": [0.5, 0.6, 0.7, 0.2, 0.2, 0.2],
        "local_epsilon": [8.0] * 6,
        "central_epsilon": [0.44611] * 3 + [math.inf] * 3,
        "delta": [1e-10] * 6,
    }
    return pd.DataFrame({**defaults, **columns})


def rows_of(table) -> dict[str, tuple[str, ...]]:
    return {row[0]: row[1:] for row in table.rows}


DESCRIPTION = {"title": "T", "axes": ["protocol"]}


def test_a_cell_is_the_mean_and_half_its_interval():
    table = comparison_table(results(), DESCRIPTION)
    assert table.columns == ("", "A", "B")
    # Student's t at 2 degrees of freedom is 4.303; 0.1 / sqrt(3) * 4.303 = 0.248.
    assert rows_of(table)["coverage"] == ("60.0% ± 24.8", "20.0%")
    assert "95 % t interval over seeds (3)" in table.note


def test_an_epsilon_is_never_rounded_down_and_may_be_infinite():
    table = comparison_table(results(), DESCRIPTION)
    assert rows_of(table)["central epsilon, item"] == ("0.447", "inf")
    assert rows_of(table)["local epsilon, item"] == ("8", "8")
    assert "delta 1e-10" in table.note


def test_precision_recall_and_f1_of_every_k_have_a_row_in_order():
    columns = {f"{m}_top_{k}": [0.5] * 6 for k in (100, 20) for m in ("precision", "recall", "f1")}
    labels = [row[0] for row in comparison_table(results(**columns), DESCRIPTION).rows]
    assert [label for label in labels if "top" in label] == [
        "precision of the top 20", "recall of the top 20", "F1 of the top 20",
        "precision of the top 100", "recall of the top 100", "F1 of the top 100",
    ]  # fmt: skip


def test_an_interval_that_rounds_to_nothing_is_left_out():
    epsilons = [0.0931, 0.0931001, 0.0931, 2.0, 2.1, 2.2]
    table = comparison_table(results(central_epsilon=epsilons), DESCRIPTION)
    assert rows_of(table)["central epsilon, item"] == ("0.094", "2.1 ± 0.248")
    one = comparison_table(results().drop_duplicates("protocol"), DESCRIPTION)
    assert rows_of(one)["coverage"] == ("50.0%", "20.0%")


def test_rows_are_repeated_for_every_other_setting():
    both = pd.concat([results().assign(e=4), results(coverage=[0.9] * 6).assign(e=8)])
    table = comparison_table(both, {"title": "T", "axes": ["protocol", "e"]})
    assert table.labels == 2
    coverage = [row for row in table.rows if row[1] == "coverage"]
    assert coverage == [
        ("4", "coverage", "60.0% ± 24.8", "20.0%"),
        ("8", "coverage", "90.0%", "90.0%"),
    ]


def test_a_missing_number_is_a_dash():
    table = comparison_table(results(precision=[None] * 3 + [0.5] * 3), DESCRIPTION)
    assert rows_of(table)["precision"] == ("-", "50.0%")


def test_results_without_protocols_are_refused():
    with pytest.raises(InputError, match="do not list protocols"):
        comparison_table(results().drop(columns="protocol"), DESCRIPTION)


def test_runs_are_compared_with_their_own_numbers():
    population = zipf_population(1_800)
    common = [
        f'population.alphabet="{LETTERS}"', "protocol.max_items=2", "protocol.depth=6",
        "protocol.eta_max=20", "protocol.passes=1", "protocol.clients_per_layer=300",
        "baseline.name=sfp", "baseline.length=6", "baseline.word_hashes=64",
        "baseline.word_cells=64", "baseline.fragment_hashes=64", "baseline.fragment_cells=64",
        "baseline.num_puzzles=8", "execution.workers=0",
    ]  # fmt: skip
    config = load_config(settings=common)
    runs = [run_config(each, population) for each in (config, config.of_baseline)]
    table = comparison_of_runs(runs, {})
    assert table.columns == ("", "LDP TrieHH", "SFP")
    rows = rows_of(table)
    assert rows["coverage"] == tuple(f"{run.metrics['coverage']:.1%}" for _, run in runs)
    assert rows["rounds"] == ("6", "1")
    assert rows["server, CPU seconds"] == tuple(
        f"{run.timings[SERVER_SECONDS]:.2f}" for _, run in runs
    )


@pytest.mark.parametrize("name", ["sfp-vs-triehh", "sfp-vs-triehh-zipf", DEFAULT_COMPARISON])
def test_presets_ask_the_same_clients_for_the_same_contributions(name):
    plan = parse_sweep(tomllib.loads(preset_text(name, SWEEPS)), name)
    cells = [cell.config for cell in plan.to_run]
    assert len({cell.protocol.max_items for cell in cells}) == 1
    assert len({cell.population for cell in cells}) == 1
    from fedhh.experiments.protocols import build_protocol

    for cell in cells:
        protocol = build_protocol(cell)
        assert protocol.contribution_epsilon == pytest.approx(cell.privacy.local_epsilon)
        unused = cell.population.clients - protocol.answers_expected
        assert 0 <= unused < protocol.rounds_expected


def test_a_runs_configuration_is_compared_by_the_default_protocols():
    table = {
        "population": {"source": "chat", "clients": 30_000},
        "protocol": {"max_items": 3, "clients_per_layer": 500, "eta_max": 70},
        "baseline": {"name": "sfp"},
    }
    plan = parse_sweep(_with_protocols(table, "mine.toml"), "mine.toml")
    sections = {cell.protocol: cell.config.protocol for cell in plan.to_run}
    assert len(sections) == 6
    assert {section.max_items for section in sections.values()} == {3}
    assert sections["TrieHH random, 2 passes"].eta_max == 70
    assert sections["SFP, Apple's"].clients_per_layer == 30_000


def test_a_sweep_without_protocols_is_no_comparison():
    with pytest.raises(InputError, match=r"expected \[sweep.protocols\]"):
        _with_protocols({"sweep": {"seeds": 2}}, "mine.toml")
