"""Without a terminal, a line a minute says where a run or a sweep is."""

from __future__ import annotations

import io
import threading
import tomllib

import pytest

from fedhh.cli.console import SafeConsole
from fedhh.cli.minute_lines import SECONDS, MinuteLines
from fedhh.cli.progress import LiveProgress
from fedhh.cli.sweep_progress import LiveSweep
from fedhh.clients.populations.synthetic import synthetic_population
from fedhh.experiments.sweep.plan import parse_sweep
from fedhh.server.sfp import Sfp


def test_a_line_is_printed_after_each_minute_and_none_after_the_end():
    waited, said = [], []
    over = threading.Event()

    def wait(seconds: float) -> bool:
        waited.append(seconds)
        return len(waited) > 3

    def say(line: str) -> None:
        said.append(line)
        if len(said) == 3:
            over.set()

    lines = MinuteLines(lambda: f"after {len(waited)}", say, wait)
    lines.start()
    assert over.wait(30)
    lines.stop()
    assert waited == [SECONDS] * 4
    assert said == ["after 1", "after 2", "after 3"]


def test_nothing_is_printed_of_work_that_ends_before_the_minute_is_over():
    said = []
    lines = MinuteLines(lambda: "line", said.append)
    lines.start()
    lines.stop()
    assert said == []


def quiet_console() -> SafeConsole:
    return SafeConsole(file=io.StringIO(), width=80)


def test_the_line_of_a_run_says_where_it_is_and_shows_a_hostile_title_as_it_is():
    class Hostile(Sfp):
        title = "[/]\x1b[2J"

    with LiveProgress(quiet_console()) as progress:
        assert progress.line().startswith("drawing clients, ")
        progress.start(
            Hostile(clients_per_layer=16_000), synthetic_population("chat", 100, seed=0), 0
        )
        progress.advance(4_000)
        line = progress.line()
    assert line.startswith(r"[/]\x1b[2J: asking 100 clients, 25 %, ")
    assert "so far" in line


SWEEP = """
population = { source = "chat", clients = 3_000 }
protocol = { depth = 4, passes = 1, eta_max = 50, clients_per_layer = 100 }
sweep = { axes = { "protocol.eta_max" = [20, 30, 40] } }
"""


@pytest.mark.parametrize("quiet", [False, True])
def test_a_sweep_says_how_many_cells_are_left(quiet: bool):
    plan = parse_sweep(tomllib.loads(SWEEP), "mine.toml")
    console = quiet_console()
    with LiveSweep(console, "coverage", quiet=quiet) as listener:
        listener.start(plan.to_run[1:], 1)
        listener.begin(plan.to_run[1])
        assert listener.line() == "1 of 3 cells done, 1 running, time unknown left"
        listener.finish(plan.to_run[1], {"status": "failed", "result": {}})
        assert listener.line().startswith("2 of 3 cells done, 1 failed, 0 running, about ")
    said = console.file.getvalue()
    assert said == ("" if quiet else "1 of 3 cells are done, 2 left\n")
