"""The example notebook: its cells run, its results display, and what is committed is clean."""

from __future__ import annotations

import ast
import inspect
import json
import re
from pathlib import Path

import matplotlib as mpl
import pytest

import fedhh

NOTEBOOK = Path(__file__).parent.parent / "docs" / "example.ipynb"
TEXT = NOTEBOOK.read_text(encoding="utf-8")
CODE = [cell for cell in json.loads(TEXT)["cells"] if cell["cell_type"] == "code"]
SMALL = {"CLIENTS": 4_000, "CLIENTS_PER_LAYER": 300, "SEEDS": 1}
FEWER = {
    "[2, 4, 6, 8, 10]": "[8]",
    "[4, 6, 8]": "[4, 8]",
    "Sfp(": "Sfp(word_hashes=64, word_cells=64, fragment_cells=64, num_puzzles=16, ",
}
"""Epsilons and cells of sketches."""


@pytest.fixture(scope="module")
def names():
    """What the notebook's cells leave behind, run small."""
    defined: dict = {}
    sources = ["".join(cell["source"]) for cell in CODE]
    for many, few in FEWER.items():
        assert sum(many in source for source in sources) == 1
        sources = [source.replace(many, few) for source in sources]
    with mpl.rc_context({"backend": "agg"}):
        for number, source in enumerate(sources):
            exec(compile(source, f"cell {number + 1}", "exec"), defined)
            if number == 0:
                assert defined.keys() >= SMALL.keys()
                defined.update(SMALL)
        yield defined
        defined["plt"].close("all")


def test_calls_of_fedhh_in_cells_have_arguments_that_are_taken():
    trees = [ast.parse("".join(cell["source"])) for cell in CODE]
    nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    calls = {node: ast.unparse(node.func).partition("fedhh.")[2] for node in nodes}
    assert sum(map(bool, calls.values())) >= 10
    for node, name in calls.items():
        if name:
            signature = inspect.signature(getattr(fedhh, name))
            signature.bind(*node.args, **{each.arg: each.value for each in node.keywords})


@pytest.mark.slow("::test_calls_of_fedhh_in_cells_have_arguments_that_are_taken")
def test_every_cell_runs(names):
    assert names["population"].num_clients == SMALL["CLIENTS"]
    assert len(names["results"]) == names["mean"].size == 2
    assert names["results"]["coverage"].between(0, 1).all()
    assert len(names["axes"].lines) == 2
    assert names["comparison"]["status"].eq("done").all()
    assert len(names["comparison"]) == 6


@pytest.mark.slow("::test_calls_of_fedhh_in_cells_have_arguments_that_are_taken")
def test_results_display_as_tables_and_figures(names):
    shown = names["result"]._repr_html_()
    assert shown.count("<table") == 2
    assert f"{names['result'].metrics.coverage:.1%}" in shown
    assert names["result"].discoveries["word"].iloc[0] in shown
    assert fedhh.plot(names["result"])._repr_png_().startswith(b"\x89PNG")
    assert "<table" in names["results"]._repr_html_()


def test_what_is_committed_was_run_in_order_and_names_no_machine():
    assert [cell["execution_count"] for cell in CODE] == list(range(1, len(CODE) + 1))
    shown = [output for cell in CODE[1:] for output in cell["outputs"]]
    assert len(shown) == len(CODE) - 1
    assert {output["output_type"] for output in shown} == {"execute_result", "display_data"}
    assert sum("image/png" in output["data"] for output in shown) == 3
    for output in shown:
        readable = json.dumps({k: v for k, v in output["data"].items() if k.startswith("text/")})
        assert not re.search(r"(?<![<\w])/(home|tmp|root|usr|work|opt)\b", readable)
    assert len(TEXT) < 400_000
