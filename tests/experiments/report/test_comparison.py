"""Protocols in one table, and what `fedhh compare` makes of a configuration."""

from __future__ import annotations

import copy
import io
import json
import math
import re
import tomllib

import pandas as pd
import pytest

from fedhh.experiments.config.built_in import SWEEPS, preset_text
from fedhh.experiments.config.load import apply_settings, load_config
from fedhh.experiments.config.protocol import build_protocol
from fedhh.experiments.report.comparison import comparison_table, results_of_runs
from fedhh.experiments.report.measures import SERVER_SECONDS
from fedhh.experiments.run.run import run_config
from fedhh.experiments.sweep.comparison import PUBLISHED, comparison_of, with_chosen
from fedhh.experiments.sweep.plan import Cell, parse_sweep
from fedhh.server.registry import PROTOCOLS
from fedhh.testing import LETTERS, small_population
from fedhh.validation import InputError
from tests.thinned import thinned


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
TRUST_MODELS = (
    *("secagg-triehh", "two-servers", "tee-histogram", "weighted-gaussian", "dp-sips"),
    "sample-and-threshold",
)


def measured(**columns) -> dict[str, tuple[str, ...]]:
    return rows_of(comparison_table(results(**columns), DESCRIPTION))


AFTER, CUT = "central epsilon after the run, item", "cut words among the false"
MOST_UP, MOST_DOWN = "upload per client, at most", "download per client, at most"


@pytest.mark.parametrize(
    ("columns", "label", "cells"),
    [
        # Student's t at 2 degrees of freedom is 4.303; 0.1 / sqrt(3) * 4.303 = 0.248.
        ({}, "coverage", ("60.0% ± 24.8", "20.0%")),
        # An epsilon is never rounded down, and none where it is infinite.
        ({}, AFTER, ("0.447", "none")),
        ({}, "local epsilon, item", ("8", "8")),
        # An interval that rounds to nothing is left out.
        ({"central_epsilon": [0.0931, 0.0931001, 0.0931, 2.0, 2.1, 2.2]}, AFTER,
         ("0.094", "2.1 ± 0.248")),
        ({"precision": [None] * 3 + [0.5] * 3}, "precision", ("-", "50.0%")),
        # What is at most is never rounded down.
        ({"upload_bits_per_client_max": [379.5] * 3 + [384.0] * 3}, MOST_UP, ("48 B", "48 B")),
        # The mean is 1,016.7 bytes; Student's t makes 124.2 of the standard error of 28.9.
        ({"download_bits_per_client_max": [8_000.0, 8_400.0, 8_000.0] + [192.1] * 3}, MOST_DOWN,
         ("1,017 B ± 72 B", "25 B")),
        ({"discovered_truncated": [0, 1, 0, 0, 0, 0]}, CUT, ("0.3 ± 1.4", "0.0")),
        ({"discovered_truncated": [0] * 6}, CUT, None),
    ],
)  # fmt: skip
def test_a_cell_is_the_mean_and_half_its_interval(columns, label, cells):
    assert measured(**columns).get(label) == cells


def test_few_seeds_have_their_range_or_no_interval():
    table = comparison_table(results()[lambda rows: rows["seed"] > 0], DESCRIPTION)
    assert rows_of(table)["coverage"] == ("65.0% ± 5.0", "20.0%")
    assert table.note.startswith("Mean ± half the range of 2 seeds.")
    one = comparison_table(results().drop_duplicates("protocol"), DESCRIPTION)
    assert rows_of(one)["coverage"] == ("50.0%", "20.0%")
    three = comparison_table(results(), DESCRIPTION)
    assert three.columns == ("", "A", "B")
    assert "95% t interval over seeds (3)" in three.note
    assert "delta 1e-10" in three.note


def test_every_other_setting_repeats_the_rows_and_csv_has_plain_numbers():
    both = pd.concat([results().assign(e=4), results(coverage=[0.9] * 6).assign(e=8)])
    table = comparison_table(both, {"title": "T", "axes": ["protocol", "e"]})
    assert table.labels == 2
    assert [row for row in table.rows if row[1] == "coverage"] == [
        ("4", "coverage", "60.0% ± 24.8", "20.0%"),
        ("8", "coverage", "90.0%", "90.0%"),
    ]
    csv = pd.read_csv(io.StringIO(table.render("csv")))
    assert csv[["e", "protocol", "seeds"]].to_numpy().tolist() == [
        [4, "A", 3], [4, "B", 3], [8, "A", 3], [8, "B", 3],
    ]  # fmt: skip
    assert csv["coverage_mean"].tolist() == pytest.approx([0.6, 0.2, 0.9, 0.9])
    assert csv["coverage_low"][0] == pytest.approx(0.6 - 0.248, abs=1e-3)
    assert csv["central_epsilon_mean"].tolist() == [0.44611, math.inf] * 2


def test_precision_recall_and_f1_of_every_k_have_a_row_in_order():
    columns = {f"{m}_top_{k}": [0.5] * 6 for k in (100, 20) for m in ("precision", "recall", "f1")}
    labels = [row[0] for row in comparison_table(results(**columns), DESCRIPTION).rows]
    assert [label for label in labels if "top" in label] == [
        "precision of the top 20", "recall of the top 20", "F1 of the top 20",
        "precision of the top 100", "recall of the top 100", "F1 of the top 100",
    ]  # fmt: skip


def test_the_note_says_what_the_rows_mean_that_it_has():
    columns = ("recall", "f1", "precision", "count_error_relative_significant", "recall_top_20")
    shown = results(min_clients=[2_000] * 6, **dict.fromkeys(columns, [0.5] * 6))
    note = comparison_table(shown, DESCRIPTION).note
    bare = comparison_table(results(), DESCRIPTION).note
    for said in (
        "Recall is over the words held by at least 2,000 clients.",
        "F1 is the harmonic mean of precision and recall.",
        "the K largest estimates against the K words held by most clients",
        "Words cut to the longest length that a protocol spells count as false.",
        "mean of |estimated - true| / true clients over significant discoveries",
    ):
        assert said in note
        assert said not in bare


def test_a_local_epsilon_that_there_is_none_of_has_its_reason():
    said = "Local epsilon none: the aggregator reads words"
    table = comparison_table(results(local_epsilon=[8.0] * 3 + [math.inf] * 3), DESCRIPTION)
    assert rows_of(table)["local epsilon, item"] == ("8", "none")
    assert said in table.note
    assert said not in comparison_table(results(), DESCRIPTION).note


def test_interval_coverage_is_a_row_where_a_run_states_intervals():
    def table(*stated: float):
        return comparison_table(results(interval_coverage=list(stated)), DESCRIPTION)

    said = "share of words whose stated interval holds the number of clients that contribute them"
    some = table(*[0.96] * 3, *[math.nan] * 3)
    assert [row for row in some.rows if row[0] == "interval coverage"] == [
        ("interval coverage", "96.0%", "-")
    ]
    assert said in some.note
    none = table(*[math.nan] * 6)
    assert "interval coverage" not in [row[0] for row in none.rows]
    assert said not in none.note


def test_clients_that_are_asked_again_are_said_to_count_again():
    counts = {"clients_asked": [400] * 3 + [100] * 3, "population_clients": [100] * 6}
    said = "Clients asked in several rounds count in each."
    assert said in comparison_table(results(**counts), DESCRIPTION).note
    counts["clients_asked"] = [100] * 6
    assert said not in comparison_table(results(**counts), DESCRIPTION).note


def test_results_without_protocols_are_refused():
    with pytest.raises(InputError, match="do not list protocols"):
        comparison_table(results().drop(columns="protocol"), DESCRIPTION)


def test_a_small_run_is_compared_with_its_own_numbers():
    common = [
        f'population.alphabet="{LETTERS}"', "protocol.max_items=1", "protocol.depth=3",
        "protocol.eta_max=10", "protocol.passes=1", "protocol.clients_per_layer=100",
        "baseline=none", "execution.workers=0",
    ]  # fmt: skip
    config = load_config(settings=["protocol.name=ldp-triehh", *common])
    runs = [run_config(config, small_population(500))]
    rows = rows_of(comparison_table(*results_of_runs(runs)))
    assert rows["coverage"] == tuple(f"{run.metrics.coverage:.1%}" for _, run in runs)
    assert rows["rounds"] == (str(len(runs[0][1].layers)),)
    assert rows["server, CPU seconds"] == tuple(
        f"{run.timings[SERVER_SECONDS]:.2f}" for _, run in runs
    )


@pytest.mark.slow("::test_a_small_run_is_compared_with_its_own_numbers")
def test_runs_are_compared_with_their_own_numbers():
    population = small_population(1_800)
    common = [
        f'population.alphabet="{LETTERS}"', "protocol.name=ldp-triehh",
        "protocol.participation=one-round", "protocol.false_discovery_rate=0",
        "protocol.max_items=2", "protocol.depth=6",
        "protocol.eta_max=20", "protocol.passes=1", "protocol.clients_per_layer=300",
        "baseline.name=sfp", "baseline.length=6", "baseline.word_hashes=64",
        "baseline.word_cells=64", "baseline.fragment_hashes=64", "baseline.fragment_cells=64",
        "baseline.num_puzzles=8", "execution.workers=0",
    ]  # fmt: skip
    config = load_config(settings=common)
    runs = [run_config(each, population) for each in (config, *config.of_baselines)]
    table = comparison_table(*results_of_runs(runs))
    assert table.columns == ("", "LDP TrieHH", "SFP")
    rows = rows_of(table)
    assert rows["coverage"] == tuple(f"{run.metrics.coverage:.1%}" for _, run in runs)
    assert rows["rounds"] == ("6", "1")
    assert rows["server, CPU seconds"] == tuple(
        f"{run.timings[SERVER_SECONDS]:.2f}" for _, run in runs
    )


@pytest.mark.slow("tests/experiments/run/test_privacy.py::test_no_randomizer_is_no_privacy")
def test_a_run_without_a_randomizer_has_no_bound_in_the_short_table():
    config = load_config(
        settings=[
            f"population.alphabet={LETTERS}", "protocol.clients_per_layer=auto",
            "protocol.depth=4", "protocol.oracle=none", "baseline=none",
            "privacy.local_epsilon=8",
            "execution.workers=0",
        ]
    )  # fmt: skip
    table = comparison_table(*results_of_runs([run_config(config, small_population(500))]))
    assert rows_of(table)["central epsilon after the run, item"] == ("none",)


def cells_of_one_seed(name: str) -> list[Cell]:
    table = tomllib.loads(preset_text(name, SWEEPS))
    table["sweep"]["seeds"] = 1
    return parse_sweep(table, name).to_run


@pytest.mark.parametrize("name", ["sfp-vs-triehh", "sfp-vs-triehh-zipf", PUBLISHED])
def test_presets_ask_the_same_clients_for_the_same_contributions(name):
    cells = [cell.config for cell in cells_of_one_seed(name)]
    assert len({cell.protocol.max_items for cell in cells}) == 1
    assert len({cell.population for cell in cells}) == 1
    for cell in cells:
        protocol = build_protocol(cell)
        assert protocol.plan.local_epsilon == pytest.approx(cell.privacy.local_epsilon)
        unused = cell.population.clients - protocol.plan.most_answers
        assert 0 <= unused < len(protocol.plan.layers)


def test_all_fields_have_the_same_protocols_and_the_quick_one_those_of_the_whole():
    whole, quick, *others = (
        tomllib.loads(preset_text(name, SWEEPS))["sweep"]["protocols"]
        for name in ("field", "field-quick", "field-published", "field-central")
    )
    names = {label: table["name"] for label, table in whole.items()}
    assert quick == whole
    for each in others:
        assert list(names.values()) == [table["name"] for table in each.values()]
    # Itemsets are no words, and other trust models are compared at equal guarantees.
    assert set(names.values()) == set(PROTOCOLS) - {"svsm", *TRUST_MODELS}


@pytest.mark.parametrize(
    "name", thinned(["best-settings", "field", "field-quick", "field-central"])
)
def test_one_rule_says_which_words_all_local_protocols_return(name):
    rules = set()
    for cell in cells_of_one_seed(name):
        protocol = build_protocol(cell.config)
        if protocol.name in {"triehh", "blender", "rappor"} and not getattr(
            protocol, "validates", False
        ):
            # Their own thresholds are stricter.
            continue
        rules.add((protocol.false_discovery_rate, protocol.anonymity_k))
        # No list is shorter than the words that any protocol returns.
        assert getattr(protocol, "max_words", 2_000) >= 2_000
    assert rules == {(0.05, 20)}


def test_a_setting_that_follows_from_another_has_no_column_but_is_in_the_records():
    parts = [
        results().assign(source=source, clients=clients, e=e)
        for source, clients in (("a", 5), ("b", 7))
        for e in (4, 8)
    ]
    both = pd.concat(parts, ignore_index=True)
    table = comparison_table(both, {"title": "T", "axes": ["protocol", "source", "clients", "e"]})
    assert table.columns == ("source", "e", "", "A", "B")
    assert {row[:2] for row in table.rows} == {(s, e) for s in "ab" for e in "48"}
    assert {record["clients"] for record in table.records} == {5, 7}


def sections_of(table, **options) -> dict:
    """The protocols that are compared, as their settings are read."""
    plan = parse_sweep(comparison_of(table, "mine.toml", **options), "mine.toml")
    return {cell.protocol: cell.config.protocol for cell in plan.to_run}


def test_a_run_without_baselines_is_compared_by_the_best_settings():
    table = {
        "population": {"source": "chat", "clients": 30_000},
        "protocol": {"max_items": 3, "clients_per_layer": 500, "depth": 7},
    }
    sections = sections_of(table)
    assert list(sections) == ["LDP TrieHH", "Adaptive TrieHH", "SFP"]
    assert {section.max_items for section in sections.values()} == {3}
    assert {section.false_discovery_rate for section in sections.values()} == {0.05}
    assert {section.depth for section in list(sections.values())[:2]} == {7}
    assert sections["SFP"].fragment_oracle == "ss"
    stated = {"name": "ldp-triehh", "false_discovery_rate": 0.1}
    by_own_rule = sections_of({**table, "protocol": stated}).values()
    assert {section.false_discovery_rate for section in by_own_rule} == {0.1}


def test_a_run_and_a_comparison_have_the_same_protocols_by_one_rule():
    table = tomllib.loads(preset_text("default"))
    config = load_config()
    run = [config.protocol, *(each.protocol for each in config.of_baselines)]
    sections = sections_of(table)
    compared = sections.values()
    assert list(sections) == ["LDP TrieHH, every round", "LDP TrieHH, one round", "SFP"]
    assert [each.name for each in run] == [each.name for each in compared]
    for one, other in zip(run, compared, strict=True):
        # What is "auto" in one is decided in the other.
        assert {k: v for k, v in one if v != "auto"}.items() <= dict(other).items()


def test_the_published_settings_are_compared_on_request_and_named_in_the_title():
    for name in ("default", "small"):
        table = comparison_of(tomllib.loads(preset_text(name)), name, as_published=True)
        assert table["sweep"]["title"] == "Protocols on the same clients, as published"
        plan = parse_sweep(table, name)
        sections = {cell.protocol: cell.config.protocol for cell in plan.to_run}
        assert len(sections) == 7
        assert sections["SFP, Apple's"].fragment_oracle == "cms"
        assert sections["TrieHH greedy, 1 pass"].sampler == "greedy"
        assert len({section.max_items for section in sections.values()}) == 1
    with pytest.raises(InputError, match="Expected --as-published with a run's configuration"):
        comparison_of(preset_table(), "field", as_published=True)


def test_a_protocols_name_chooses_one_of_the_list():
    table = preset_table()
    chosen = with_chosen(table, ["ldp-triehh", "SFP, ss fragments", "pem"])
    assert list(chosen["sweep"]["protocols"]) == [
        "TrieHH greedy, 1 pass", "SFP, ss fragments", "PEM",
    ]  # fmt: skip


def test_two_baselines_of_one_protocol_have_two_labels():
    both = [{"name": "sfp"}, {"name": "sfp", "length": 8}]
    table = {"population": {"source": "chat", "clients": 30_000}, "baseline": both}
    sections = sections_of(table)
    assert list(sections) == ["LDP TrieHH", "SFP", "SFP (2)"]
    assert sections["SFP (2)"].length == 8


def test_a_sweep_without_protocols_is_no_comparison():
    for section in ({"axes": {"protocol.passes": [1, 2]}}, {"seeds": 2, "title": "T"}, 3):
        with pytest.raises(InputError, match=r"expected \[sweep.protocols\]"):
            comparison_of({"sweep": section}, "mine.toml")


RUN = {"population": {"source": "chat", "clients": 30_000}, "protocol": {"eta_max": 70}}


def axis_of(table, *settings: str) -> list[float]:
    """The local epsilons of the cells that a table and the command line give."""
    apply_settings(table, settings)
    plan = parse_sweep(comparison_of(table, "mine.toml", settings=settings), "mine.toml")
    assert "privacy.local_epsilon" in plan.axes
    return list(dict.fromkeys(cell.config.privacy.local_epsilon for cell in plan.cells))


def run_table(**sections):
    return copy.deepcopy({**RUN, **sections})


def preset_table():
    return tomllib.loads(preset_text(PUBLISHED, SWEEPS))


def test_a_runs_configuration_takes_seeds():
    table = comparison_of(run_table(sweep={"seeds": 2}), "mine.toml")
    plan = parse_sweep(table, "mine.toml")
    assert len({cell.protocol for cell in plan.cells}) == 3
    assert {cell.config.seed for cell in plan.cells} == {0, 1}


LIST, TWO = "privacy.local_epsilon=[3, 5]", "privacy.local_epsilon=[2, 3]"


@pytest.mark.parametrize(
    ("table", "settings", "epsilons"),
    thinned(
        [
            (run_table(privacy={"local_epsilon": 3}), (), [3]),
            (run_table(privacy={"local_epsilon": [3, 5]}), (), [3, 5]),
            (run_table(), ("privacy.local_epsilon=2",), [2]),
            (run_table(privacy={"delta": 1e-8}), (), [4, 6, 8]),
            (preset_table(), ("privacy.local_epsilon=3",), [3]),
            (preset_table(), (LIST,), [3, 5]),
            (preset_table(), (), [4, 6, 8]),
            (
                preset_table(),
                ("privacy.local_epsilon=3", "sweep.axes.privacy.local_epsilon=[2, 3]"),
                [2, 3],
            ),
        ],
        keep=2,
    ),
)
def test_a_comparison_is_at_the_epsilon_that_is_given(table, settings, epsilons):
    assert axis_of(table, *settings) == epsilons


def test_an_epsilon_in_the_place_of_an_axis_leaves_the_others():
    table = preset_table()
    table["sweep"]["axes"] = {"privacy.local_epsilon": [4], "protocol.max_items": [2, 3]}
    settings = ("privacy.local_epsilon=3",)
    apply_settings(table, settings)
    plan = parse_sweep(comparison_of(table, "mine.toml", settings=settings), "mine.toml")
    assert plan.axes == ("protocol", "privacy.local_epsilon", "protocol.max_items")


def test_the_command_compares_at_what_it_is_given(command):
    done = command("compare", "--dry-run", "--format", "json", "--set", "privacy.local_epsilon=3")
    assert (done.returncode, done.stderr) == (0, "")
    assert {cell.get("privacy.local_epsilon", 3.0) for cell in json.loads(done.stdout)} == {3.0}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["privacy.local_epsilon=-1"], "expected greater than"),
        (["privacy.local_epsilon=[]"], "expected a list of values"),
        (["privacy.local_epsilon=[0]"], "expected greater than"),
        (["privacy=3"], "privacy = 3"),
    ],
)
def test_a_wrong_epsilon_is_refused_in_one_line(settings, message: str):
    for table in (run_table(), preset_table()):
        with pytest.raises(InputError) as caught:
            axis_of(table, *settings)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)


TWO_PROTOCOLS = """
population = { source = "chat", clients = 2_000 }
protocol = { max_items = 3, depth = 6, eta_max = 50 }
execution = { workers = 0 }

[sweep]
title = "Two settings"
protocols = { short = { depth = 4 }, long = { passes = 1 } }
seeds = 2
"""


@pytest.mark.slow(
    "tests/experiments/report/test_tables.py::test_notes_and_captions_say_how_many_cells_failed_and_how_many_seeds_are_left"
)
def test_a_comparison_says_that_a_cell_failed(tmp_path, monkeypatch, command):
    def failing(config, population):
        if (config.protocol.depth, config.seed) == (4, 1):
            raise MemoryError("out of memory")
        return run_config(config, population)

    (tmp_path / "two.toml").write_text(TWO_PROTOCOLS)
    monkeypatch.setattr("fedhh.experiments.sweep.sweep.run_config", failing)
    done = command("compare", "--config", "two.toml", "--out", "out", cwd=tmp_path)
    assert done.returncode == 1
    assert re.search(r"failed: short, cell \w+, seed 1: MemoryError: out of memory", done.stdout)
    written = (tmp_path / "out" / "comparison.md").read_text()
    assert "1 cell failed and is left out." in written
