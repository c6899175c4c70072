"""Gboard's table and figure next to what others state."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from fedhh.experiments.report.gboard import published, published_to_compare
from fedhh.experiments.report.sweep_figures import sweep_figures
from fedhh.experiments.report.tables import make_table, usual_table
from fedhh.experiments.sweep.directory import read_labeled_results
from fedhh.validation import InputError

RESULTS = Path(__file__).parents[3] / "docs" / "results"
QUICK = Path(__file__).parent / "sweeps"


def rows_of(name: str) -> list[dict[str, str]]:
    with (RESULTS / name / "results.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_values_of_the_full_size_are_those_of_the_committed_results():
    found: dict[tuple[str, int], list[float]] = {}
    for row in rows_of("gboard-table1"):
        key = row["protocol.sampler"], int(row["protocol.passes"])
        found.setdefault(key, []).append(float(row["coverage"]))
    for row in published()["table_1"]:
        values = found[row["sampler"], row["passes"]]
        assert row["full"]["60000"] == pytest.approx(sum(values) / len(values), abs=5.1e-4)
    figure = published()["figure_1"]
    for row in rows_of("gboard-figure1"):
        stated = (
            figure["full_without_ldp"]
            if row["protocol.oracle"] == "none"
            else figure["full"][f"{float(row['privacy.local_epsilon']):g}"]
        )
        assert stated == pytest.approx(float(row["coverage"]), abs=5.1e-4)


def test_the_quick_table_1_has_the_paper_the_others_and_the_full_size_next_to_it():
    directory = QUICK / "gboard-table1-quick"
    assert usual_table(*read_labeled_results(directory)) == "gboard-table1"
    table = make_table("gboard-table1", directory)
    assert table.columns[3:7] == ("paper", "independent", "full size", "fedhh")
    assert [row[3:6] for row in table.rows] == [
        ("77.1%", "-", "71.3%"), ("83.1%", "71.8%", "71.3%"), ("92.1%", "88.1%", "90.0%"),
    ]  # fmt: skip
    assert "150,000 clients. Paper: 15,000,000 clients" in table.note
    record = table.records[2]
    assert (record["paper"], record["paper_gain"]) == (0.921, pytest.approx(0.09))
    assert record["coverage_low"] < record["coverage_mean"] < record["coverage_high"]


def test_the_full_table_1_is_not_next_to_itself():
    table = make_table("gboard-table1", RESULTS / "gboard-table1")
    assert "full size" not in table.columns
    assert all(len(row) == len(table.columns) for row in table.rows)


def test_figure_1_is_a_table_too():
    directory = QUICK / "gboard-figure1-quick"
    assert usual_table(*read_labeled_results(directory)) == "gboard-figure1"
    rows = {row[0]: row[1:] for row in make_table("gboard-figure1", directory).rows}
    assert rows["8"][:3] == ("-", "56.2%", "55.5%")
    assert rows["10"][:3] == ("77.1%", "61.3%", "60.8%")
    assert rows["no LDP (true counts)"][:3] == ("-", "-", "61.7%")
    with pytest.raises(InputError, match=r"Figure 1 varies privacy\.local_epsilon alone"):
        make_table("gboard-figure1", QUICK / "gboard-table1-quick")


def test_figures_show_what_others_state():
    figure = sweep_figures(QUICK / "gboard-figure1-quick", metrics=["coverage"])["coverage"]
    lines = {line.get_label().replace("\n", " "): line for line in figure.axes[0].lines}
    assert list(lines["paper"].get_xydata()[0]) == [10, 0.771]
    independent = lines["independent, 100,000 words"].get_xydata().tolist()
    assert independent[0] == [4, 0.016]
    assert independent[-1] == [12, 0.623]
    assert "fedhh, full size, 100,000 words" in lines
    assert "this sweep" in lines


def test_a_sweep_of_something_else_has_nothing_next_to_it():
    for name in ("epsilon-n-quick", "sampling-quick", "sfp-vs-triehh"):
        results = read_labeled_results(RESULTS / name)
        assert usual_table(*results) not in ("gboard-table1", "gboard-figure1")
        assert published_to_compare(*results) == []
