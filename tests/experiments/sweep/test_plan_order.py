"""The order of a sweep's axes, which the stored file must keep."""

from __future__ import annotations

import tomllib
from pathlib import Path

from fedhh.experiments.study.request import Request
from fedhh.experiments.study.source import load_source
from fedhh.experiments.sweep import directory as results
from fedhh.experiments.sweep.plan import Sweep, parse_sweep
from fedhh.experiments.sweep.sweep import run_sweep

BASE = """
[population]
source = "chat"
clients = 2_000
[protocol]
depth = 3
passes = 1
eta_max = 50
clients_per_layer = 400
max_items = 1
[metrics]
top_k = [10]
[sweep]
"""
RANGE_FIRST = """
[sweep.axes]
"privacy.local_epsilon" = { from = 2, to = 4, step = 2 }
"protocol.sampler" = ["greedy", "random"]
"""
TABLE_FIRST = """
[sweep.axes]
privacy.local_epsilon = [2, 4]
"protocol.sampler" = ["greedy", "random"]
"""
LINKED_RANGE_FIRST = """
[[sweep.linked]]
"privacy.local_epsilon" = { from = 2, to = 4, step = 2 }
"protocol.sampler" = ["greedy", "random"]
"""


def parse(text: str) -> Sweep:
    return parse_sweep(tomllib.loads(text), "mine.toml")


def test_the_written_file_keeps_the_order_of_axes():
    for section in (RANGE_FIRST, TABLE_FIRST, LINKED_RANGE_FIRST):
        plan = parse(BASE + section)
        assert plan.axes == ("privacy.local_epsilon", "protocol.sampler")
        again = parse(plan.to_toml())
        assert again.axes == plan.axes
        assert [cell.varied for cell in again.cells] == [cell.varied for cell in plan.cells]
        assert again.key == plan.key
        assert again.to_toml() == plan.to_toml()
        assert again.to_result_toml() == plan.to_result_toml()


def test_a_range_that_keeps_its_place_is_written_as_it_is():
    section = """
    [sweep.axes]
    "protocol.sampler" = ["greedy", "random"]
    "privacy.local_epsilon" = { from = 2, to = 4, step = 2 }
    """
    assert tomllib.loads(parse(BASE + section).to_toml()) == tomllib.loads(BASE + section)


def test_a_sweep_with_a_range_before_a_list_goes_on_from_its_directory_alone(tmp_path: Path):
    first, second = tmp_path / "d1", tmp_path / "d2"
    run_sweep(parse(BASE + RANGE_FIRST), first, workers=0)
    whole = (first / results.RESULTS).read_bytes()

    cell = next((first / results.CELLS).glob("*.json"))
    cell.unlink()
    source = load_source(Request(out=first, resume=True), kind="sweep")
    stored = parse_sweep(source.table, source.origin)
    table = run_sweep(stored, first, workers=0, resume=True)
    rows = table[["privacy.local_epsilon", "protocol.sampler"]].to_numpy().tolist()
    assert rows == [[e, s] for e in (2.0, 4.0) for s in ("greedy", "random")]
    assert (first / results.RESULTS).read_bytes() == whole

    again = parse((first / results.SWEEP_FILE).read_text())
    run_sweep(again, second, workers=0)
    assert (second / results.RESULTS).read_bytes() == whole
