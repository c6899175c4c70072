"""Sweeps over objects: the rows of a configuration's sweep, and what is refused."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fedhh
from fedhh.experiments.report.notebook import NotebookTable
from fedhh.experiments.sweep.plan import parse_sweep
from fedhh.experiments.sweep.sweep import run_sweep
from fedhh.testing import LETTERS, small_population
from fedhh.validation import InputError
from fedhh.words.known_words import named_list

CLIENTS = 2_000
SKETCHES = {
    "word_hashes": 64, "word_cells": 64, "fragment_hashes": 64, "fragment_cells": 64,
    "num_puzzles": 16,
}  # fmt: skip
BASE = {"depth": 4, "eta_max": 50, "max_items": 1, "passes": 1}
TABLE: dict[str, Any] = {
    "seed": 5,
    "population": {"source": "chat", "clients": CLIENTS},
    "protocol": BASE,
    "execution": {"workers": 0},
}
TRIEHH = fedhh.LdpTrieHH(**BASE, known_words=named_list("scowl70"))
BOTH = {"TrieHH": TRIEHH, "SFP": fedhh.Sfp(max_items=1, **SKETCHES)}


def chat(seed: int):
    return fedhh.synthetic_population("chat", CLIENTS, seed=seed)


def of_config(section: dict[str, Any], directory) -> pd.DataFrame:
    plan = parse_sweep({**copy.deepcopy(TABLE), "sweep": section}, "test")
    return run_sweep(plan, directory, workers=0)


@pytest.fixture(scope="module")
def both() -> pd.DataFrame:
    return fedhh.sweep_over(
        BOTH, chat, axes={"local_epsilon": [2, 8], "total_clients": [2_000]}, seeds=[5, 6],
        title="Both",
    )  # fmt: skip


TINY = fedhh.LdpTrieHH(alphabet=LETTERS, clients_per_layer=100, depth=3, passes=1, max_items=1)


def test_a_small_sweep_has_the_rows_of_its_single_runs():
    population = small_population(400)
    rows = fedhh.sweep_over(TINY, population, axes={"local_epsilon": [2.0, 8.0]}, seeds=[5, 6])
    assert rows["privacy.local_epsilon"].tolist() == [2.0, 2.0, 8.0, 8.0]
    assert rows["seed"].tolist() == [5, 6, 5, 6]
    assert rows["cell"].is_unique
    assert rows["status"].eq("done").all()
    for place, (epsilon, seed) in ((0, (2.0, 5)), (3, (8.0, 6))):
        alone = fedhh.simulate(replace(TINY, local_epsilon=epsilon), population, seed=seed)
        assert rows["coverage"][place] == alone.metrics.coverage
        assert rows["reports"][place] == alone.cost["reports"]


def test_small_populations_of_all_seeds_have_one_size():
    rows = fedhh.sweep_over(TINY, lambda seed: small_population(400 + seed), seeds=2)
    assert rows["status"].tolist() == ["done", "failed"]
    assert rows["error"][1] == "Expected 400 clients for every seed, got 401 for seed 1."


@pytest.mark.slow("::test_a_small_sweep_has_the_rows_of_its_single_runs")
def test_the_same_settings_and_seeds_give_the_rows_of_a_configuration(both, tmp_path):
    config = of_config(
        {
            "seeds": 2,
            "protocols": {"TrieHH": {}, "SFP": {"name": "sfp", **SKETCHES}},
            "axes": {"privacy.local_epsilon": [2, 8], "total_clients": [2_000]},
        },
        tmp_path / "out",
    )
    pd.testing.assert_frame_equal(both.drop(columns="cell"), config.drop(columns="cell"))
    assert both["cell"].is_unique
    assert both["status"].eq("done").all()


@pytest.mark.slow(
    "tests/experiments/sweep/test_plan.py::test_auto_cohorts_are_resolved_and_appear_as_a_column"
)
def test_what_auto_decides_differently_is_a_column_as_in_a_configuration(tmp_path):
    axes = {"passes": [1, 2], "sampler": ["random", "greedy"]}
    mine = fedhh.sweep_over(TRIEHH, chat, axes=axes, seeds=[5])
    paths = {f"protocol.{name}": values for name, values in axes.items()}
    config = of_config({"axes": paths}, tmp_path / "out")
    pd.testing.assert_frame_equal(mine.drop(columns="cell"), config.drop(columns="cell"))
    assert "protocol.clients_per_layer" in mine


@pytest.mark.slow("::test_a_small_sweep_has_the_rows_of_its_single_runs")
def test_one_population_serves_all_seeds_and_workers_change_nothing(ray_here):
    population = chat(0)
    axes = {"local_epsilon": np.array([2.0, 8.0])}
    alone, shared = (
        fedhh.sweep_over(TRIEHH, population, axes=axes, seeds=2, workers=workers)
        for workers in (0, 1)
    )
    pd.testing.assert_frame_equal(alone, shared)
    assert {asked[1:] for asked in ray_here} == {(1, "")}
    result = fedhh.simulate(
        fedhh.LdpTrieHH(**BASE, local_epsilon=8.0), population, seed=1
    )  # fmt: skip
    assert alone["coverage"].iloc[3] == result.metrics.coverage
    assert alone["seed"].tolist() == [0, 1, 0, 1]


@dataclass(frozen=True, kw_only=True)
class Fragile(fedhh.LdpTrieHH):
    """Fails above a local epsilon, in the middle of a run."""

    def keep(self, answers):
        if self.local_epsilon > 4:
            raise ValueError("too\nmuch")
        return super().keep(answers)


def test_a_run_that_fails_is_a_row_and_the_others_go_on(capsys):
    results = fedhh.sweep_over(
        Fragile(**BASE), chat, axes={"local_epsilon": [8, 2]}, progress=True
    )  # fmt: skip
    assert results["status"].tolist() == ["failed", "done"]
    assert results["error"].tolist() == ["ValueError: too much", ""]
    assert results["coverage"].isna().tolist() == [True, False]
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Clients asked in all, by each cell: 2,000."
    assert lines[1] == "1 of 2: epsilon 8, seed 0: failed: ValueError: too much"
    assert lines[2].startswith("2 of 2: epsilon 2, seed 0: coverage ")
    assert "1 cell failed" in fedhh.table(results).note


@pytest.mark.slow(
    "tests/experiments/report/test_comparison.py::test_a_cell_is_the_mean_and_half_its_interval"
)
def test_results_are_shown_as_a_table_and_figures(both):
    table = fedhh.table(both)
    assert isinstance(table, NotebookTable)
    assert table.columns[-2:] == ("TrieHH", "SFP")
    assert "the same for every protocol: 2,000" in table.note
    assert "<table" in table._repr_html_()
    assert str(table).startswith("Both\n")
    assert [row[0] for row in fedhh.table(both, "summary").rows][:2] == ["TrieHH", "TrieHH"]
    for metric in ("coverage", "precision", "tradeoff"):
        assert fedhh.plot(both, metric=metric)._repr_png_().startswith(b"\x89PNG")
    # The columns alone are enough.
    assert fedhh.table(pd.DataFrame(both.to_dict("list"))).columns == table.columns
    for wrong in (both[["coverage"]], 3):
        with pytest.raises(InputError, match="Expected what fedhh"):
            fedhh.table(wrong)
    with pytest.raises(InputError, match="did you mean 'coverage'"):
        fedhh.plot(both, metric="coverge")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"axes": {"epsilon": [1]}}, r"Unknown axis 'epsilon' of LDP TrieHH.*local_epsilon"),
        ({"axes": {"pases": [1]}}, "did you mean 'passes'"),
        ({"axes": {"eta_max": [5]}, "protocols": BOTH}, "Unknown axis 'eta_max' of SFP"),
        ({"axes": {"seed": [5]}}, "Unknown axis 'seed' of LDP TrieHH; give seeds"),
        ({"axes": {"passes": 2}}, "Expected axis passes as a list of values, got 2"),
        ({"axes": {"sampler": "greedy"}}, "Expected axis sampler as a list"),
        ({"axes": {"passes": []}}, "got none"),
        (
            {"axes": {"passes": [0]}},
            "passes=0: Expected an integer passes >= 1, got passes=0",
        ),
        ({"axes": {"passes": [1, 1]}}, "repeats a cell"),
        ({"axes": {"clients_per_layer": [4_000]}}, "clients_per_layer=4000: The population has"),
        ({"axes": {"total_clients": [9], "clients_per_layer": [5]}}, "vary one of the two"),
        ({"seeds": 0}, "Expected seeds"),
        ({"seeds": [1, 1]}, "Expected seeds"),
        ({"seeds": [True]}, "Expected seeds"),
        ({"protocols": {}}, "got none"),
        ({"protocols": "sfp"}, "Expected a protocol such as"),
        ({"protocols": {"": TRIEHH}}, "Expected protocols by label"),
        ({"population": "chat"}, "Expected a population, or a function"),
        ({"population": lambda seed: seed}, "Expected a population of seed 0, got 0"),
    ],
)
def test_what_cannot_run_is_refused_in_one_line(changes, message):
    given = {"protocols": TRIEHH, "population": chat, **changes}
    with pytest.raises(InputError, match=message) as caught:
        fedhh.sweep_over(given.pop("protocols"), given.pop("population"), **given)
    assert "\n" not in str(caught.value)


@pytest.mark.slow("::test_small_populations_of_all_seeds_have_one_size")
def test_populations_of_all_seeds_have_one_size():
    results = fedhh.sweep_over(
        TRIEHH, lambda seed: fedhh.synthetic_population("chat", 500 + seed, seed=seed), seeds=2
    )
    assert results["status"].tolist() == ["done", "failed"]
    assert results["error"][1] == "Expected 500 clients for every seed, got 501 for seed 1."
