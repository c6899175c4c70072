"""The order of a sweep's axes, which the stored file must keep."""

from __future__ import annotations

import tomllib

from fedhh.experiments.sweep.plan import Sweep, parse_sweep
from tests.fuzz.work import RUN

BASE = RUN + "[sweep]\n"
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
        assert parse(plan.to_result_toml()).axes == plan.axes


def test_a_range_that_keeps_its_place_is_written_as_it_is():
    section = """
    [sweep.axes]
    "protocol.sampler" = ["greedy", "random"]
    "privacy.local_epsilon" = { from = 2, to = 4, step = 2 }
    """
    assert tomllib.loads(parse(BASE + section).to_toml()) == tomllib.loads(BASE + section)
