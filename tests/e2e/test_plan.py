"""`fedhh plan`: what it prints, draws and writes, and that the written file runs."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from fedhh.experiments.report import style
from tests.thinned import thinned

WORDS = (
    *("plan", "small", "--set", "population.clients=6000", "--workers", "0", "-q"),
    *("--held-by", "1/100", "--at", "item-central-epsilon=4", "--days", "9", "--max-bytes", "4kB"),
    *("--protocol", "triehh", "--protocol", "ldp-triehh", "--min-precision", "0.2"),
    *("--runs", "6"),
)


@pytest.mark.slow(
    "tests/experiments/planner/test_planner.py::test_its_tables_and_figure_show_what_was_predicted_and_searched"
)
def test_a_plan_is_a_table_a_figure_and_a_file_that_runs(command, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "160")
    done = command(*WORDS, "--out", "new/plan.toml", "--figure", "front.png", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    out = " ".join(done.stdout.split())
    assert "words held by 0.01 of 6,000 clients, item central epsilon 4 at delta 1e-10" in out
    assert "best settings of each protocol" in out
    assert "Pareto front" in out
    assert (tmp_path / "front.png").read_bytes().startswith(b"\x89PNG")
    ran = command("run", "new/plan.toml", "--workers", "0", "-q", "--out", "ran", cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    result = json.loads((tmp_path / "ran" / "result.json").read_text())
    found = json.loads(command(*WORDS, "--format", "json", cwd=tmp_path).stdout)
    best = found["best"][0]
    assert best["coverage_low"] <= result["metrics"]["coverage"] <= best["coverage_high"]
    assert result["metrics"]["min_clients"] == 60
    assert result["cost"]["upload_bits_per_client_max"] <= 8 * best["upload_bytes"] * 1.05
    assert found["goal"]["days"] == 9
    assert {each["days"] <= 9 for each in found["trials"]} == {True}
    assert len(found["trials"]) <= found["runs"] <= 6


@pytest.mark.slow(
    "tests/experiments/planner/test_planner.py::test_its_tables_and_figure_show_what_was_predicted_and_searched"
)
def test_the_figure_has_a_panel_for_each_cost(command, monkeypatch, tmp_path):
    drawn = []
    monkeypatch.setattr(style, "save", lambda figure, target, kind: drawn.append(figure))
    done = command(*WORDS, "--figure", "front.svg", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (figure,) = drawn
    days, sizes, epsilon = figure.axes
    assert days.get_xlabel() == "days"
    assert "upload and download" in sizes.get_xlabel()
    assert epsilon.get_xlabel() == "local epsilon"
    # The central protocol randomizes nothing, so that it has no point there.
    points = {line.get_label(): len(line.get_xdata()) for line in epsilon.lines}
    assert points["TrieHH (central)"] == 0 < points["LDP TrieHH"]


@pytest.mark.parametrize(
    ("words", "message"),
    thinned(
        [
            ((), "Expected a guarantee"),
            (("--at", "item-central-epsilon=1", "--out", "plan.json"), "--out FILE.toml"),
            (("--at", "item-central-epsilon=1", "--held-by", "2"), "--held-by"),
            (("--local-epsilon", "8", "--protocol", "absent"), "absent"),
            (
                (*WORDS[1:], "--max-download", "10"),
                r"No settings meet the goal. The nearest tried",
            ),
        ]
    ),
)
def test_wrong_goals_are_refused_in_a_line(refused, words, message: str):
    assert message in refused("plan", *words)


@pytest.mark.slow(
    "tests/experiments/planner/test_planner.py::test_what_no_protocol_promises_is_refused_with_the_reason"
)
def test_what_the_page_says_of_a_goal_that_cannot_be_met_is_what_is_printed(refused):
    page = (Path(__file__).parents[2] / "docs" / "howto" / "plan-a-deployment.md").read_text()
    (block,) = re.findall(r"^```text\n\$ fedhh (.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)
    line, error = block.splitlines()
    assert refused(*shlex.split(line)) == f"{error}\n"
