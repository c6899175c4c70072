"""One display for all kinds: their units, what goes on outside of them, and how it stands."""

from __future__ import annotations

import io
import tomllib

import pytest

from fedhh.cli import experiment
from fedhh.cli.console import SafeConsole
from fedhh.cli.progress import LiveProgress
from fedhh.clients.drawn import DrawnClients
from fedhh.clients.synthetic import synthetic_population
from fedhh.experiments.run.run import simulate
from fedhh.experiments.study.callbacks import Callbacks, Work
from fedhh.experiments.study.parts import Line
from fedhh.experiments.study.request import Request
from fedhh.experiments.sweep.plan import parse_sweep
from fedhh.experiments.sweep.sweep import run_sweep
from fedhh.longitudinal.devices.worker import DeviceWorker
from fedhh.longitudinal.pipeline.build import build_model, build_use_cases
from fedhh.longitudinal.pipeline.config import load_pipeline
from fedhh.longitudinal.pipeline.run import Run
from fedhh.server.sfp import Sfp
from fedhh.simulation.executor import InProcessExecutor


class Recorded(Callbacks):
    """Records all events but steps."""

    def __init__(self) -> None:
        self.all: list[str] = []

    def phase(self, text, done=0, of=0) -> None:
        self.all.append(text)

    def start(self, work) -> None:
        self.all.append(f"{work.done} of {work.total} {work.noun}")

    def begin(self, unit) -> None:
        self.all.append(f"begin {unit}")

    def finish(self, unit, result) -> None:
        self.all.append(unit)


@pytest.fixture
def terminal():
    return SafeConsole(file=io.StringIO(), force_terminal=True, width=150)


def shown(progress: LiveProgress) -> str:
    progress._bar.refresh()
    console = SafeConsole(file=io.StringIO(), width=150)
    console.print(progress._bar.get_renderable())
    return console.file.getvalue()


def days(done: int = 0) -> Work:
    return Work(noun="days", total=4, done=done, steps=40, steps_done=10 * done)


def test_units_have_a_share_and_phases_stand_in_their_place(terminal):
    with LiveProgress(terminal) as progress:
        assert progress.line().startswith("preparing, ")
        progress.start(days())
        progress.advance(10)
        progress.finish("day 1", 1)
        assert "1 of 4 days" in shown(progress)
        assert "25%" in shown(progress)
        assert progress.line().startswith("1 of 4 days, 25%, 0:00:0")
        progress.phase("publishing \x1bemoji (1 of 6)")
        assert "publishing \\x1bemoji (1 of 6)" in shown(progress)
        assert "days" not in shown(progress)
        assert "25%" not in shown(progress)
        progress.advance(10)
        assert "1 of 4 days" in shown(progress)
        assert "50%" in shown(progress)


def test_units_at_the_same_time_are_named_and_a_note_follows(terminal):
    with LiveProgress(terminal) as progress:
        progress.start(Work(noun="cells", total=9))
        for number in range(6):
            progress.begin(f"cell {number}")
        progress.finish("cell 0", None)
        progress.note("1 failed")
        assert progress.lines == [
            "cell 1", "cell 2", "cell 3", "cell 4", "and 1 more", "1 failed",
        ]  # fmt: skip
        assert "1 of 9 cells" in shown(progress)
        assert ", 5 running, " in progress.line()
        assert progress.line().endswith(" left, 1 failed")


@pytest.mark.slow("::test_units_have_a_share_and_phases_stand_in_their_place")
def test_a_phase_of_known_length_has_its_own_share():
    heard = []

    class Recording(LiveProgress):
        def phase(self, text, done=0, of=0):
            heard.append((done, of))
            super().phase(text, done, of)

    population = DrawnClients("keyboard60d", 20_000, seed=0)
    with Recording(SafeConsole(file=io.StringIO())) as progress:
        population.word_counts(lambda done, of: progress.phase("counting true words", done, of))
        assert progress.line().startswith("counting true words, 100%, ")
    assert heard[0] == (0, 20_000)
    assert heard[-1] == (20_000, 20_000)
    assert sorted(heard) == heard


def test_compiling_is_shown_while_it_lasts():
    with LiveProgress(SafeConsole(file=io.StringIO())) as progress:
        progress.compile("ranks.draw_adopted")
        assert "compiling, which only the first run after an installation does" in progress.line()
        progress.compile("")
        assert "compiling" not in progress.line()


@pytest.mark.parametrize("quiet", [False, True])
def test_what_was_done_before_and_what_is_known_is_printed_unless_quiet(quiet):
    console = SafeConsole(file=io.StringIO())
    with LiveProgress(console, quiet=quiet) as progress:
        progress.say([Line("400 users")])
        progress.start(days(done=3))
    said = console.file.getvalue()
    assert said == ("" if quiet else "400 users\n3 of 4 days are done, 1 left\n")


@pytest.mark.slow("::test_a_pipeline_tells_its_days_and_all_that_it_does_without_devices")
def test_a_run_tells_its_rounds():
    class Hostile(Sfp):
        title = "[/]\x1b[2J"

    recorded = Recorded()
    population = synthetic_population("chat", 600, seed=0)
    with LiveProgress(SafeConsole(file=io.StringIO())) as progress:
        protocol = Hostile(clients_per_layer=600)
        simulate(protocol, population, seed=0, callbacks=[progress, recorded])
        line = progress.line()
    assert line.startswith(r"[/]\x1b[2J: 1 of 1 rounds, 100%, ")
    assert recorded.all == ["0 of 1 rounds", "pass 1/1 layer 1/1"]


SWEEP = """
population = { source = "chat", clients = 600 }
protocol = { depth = 3, passes = 1, eta_max = 50, clients_per_layer = 100 }
sweep = { axes = { "protocol.eta_max" = [20, 30] } }
"""


@pytest.mark.slow("::test_a_pipeline_tells_its_days_and_all_that_it_does_without_devices")
def test_a_sweep_tells_its_cells(tmp_path):
    recorded = Recorded()
    run_sweep(
        parse_sweep(tomllib.loads(SWEEP), "mine"), tmp_path / "out", workers=0, callbacks=[recorded]
    )
    first, second = "eta_max 20, seed 0", "eta_max 30, seed 0"
    assert recorded.all == ["0 of 2 cells", f"begin {first}", first, f"begin {second}", second]


def test_a_pipeline_tells_its_days_and_all_that_it_does_without_devices(tmp_path):
    settings = ("pipeline.devices=200", "pipeline.days=3", "pipeline.publish_every=2")
    config = load_pipeline("pipeline-small", settings=settings, use_cases=("emoji", "health"))
    use_cases = build_use_cases(config)
    worker = DeviceWorker(build_model(config, use_cases), seed=config.seed)
    recorded = Recorded()
    run = Run(
        config, use_cases, InProcessExecutor(worker), stored_in=tmp_path / "c.arrays",
        seconds_between=0,
    )  # fmt: skip
    run.finish([recorded])
    published = ["publishing emoji (1 of 2)", "publishing health (2 of 2)"]
    assert recorded.all == [
        "0 of 3 days", "storing the sums", "day 1", *published, "storing the sums", "day 2",
        *published, "storing the sums", "day 3", "adding up losses",
        "publishing emoji, all days (1 of 2)", "publishing health, all days (2 of 2)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("axis", "said"),
    [
        ("item_central_epsilon = [1, 2]", "choosing each cell's epsilon"),
        ('"protocol.eta_max" = [20, 30]', "checking each cell"),
    ],
)
def test_what_an_experiment_checks_is_shown_like_its_units(monkeypatch, tmp_path, axis, said):
    file = tmp_path / "equal.toml"
    file.write_text(SWEEP.replace('"protocol.eta_max" = [20, 30]', axis))
    lines = []

    class Shown(LiveProgress):
        def phase(self, text: str, done: int = 0, of: int = 0) -> None:
            super().phase(text, done, of)
            lines.append(self.line())

    monkeypatch.setattr(experiment, "LiveProgress", Shown)
    experiment.run_experiment(Request(source=file), dry_run=True)
    assert [line.split("%")[0] for line in lines] == [f"{said}, 0", f"{said}, 50"]
