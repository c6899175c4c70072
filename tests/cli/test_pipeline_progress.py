"""Where a pipeline is: its days by their share, what servers do afterwards by its name."""

from __future__ import annotations

import io

import pytest

from fedhh.cli.console import SafeConsole
from fedhh.cli.pipeline_progress import DaysProgress
from fedhh.longitudinal.devices.worker import DeviceWorker
from fedhh.longitudinal.pipeline.build import build_model, build_use_cases
from fedhh.longitudinal.pipeline.config import load_pipeline
from fedhh.longitudinal.pipeline.run import Run
from fedhh.simulation.executor import InProcessExecutor


def terminal() -> SafeConsole:
    return SafeConsole(file=io.StringIO(), force_terminal=True, width=120)


def drawn(progress: DaysProgress) -> str:
    """What the bar shows now."""
    console = terminal()
    console.print(progress._progress.get_renderable())
    return console.file.getvalue()


@pytest.fixture
def progress():
    with DaysProgress(terminal(), days=2, steps_per_day=10, quiet=False) as made:
        made.start(0)
        yield made


def test_days_have_a_share_and_what_follows_them_a_name(progress: DaysProgress):
    progress.advance(10)
    progress.finish_day(1)
    assert "day 2 of 2" in drawn(progress)
    assert "50 %" in drawn(progress)
    progress.advance(10)
    progress.phase("publishing emoji (1 of 6)")
    progress.finish_day(2)
    shown = drawn(progress)
    assert "publishing emoji (1 of 6)" in shown
    assert "100 %" not in shown
    assert "day 2" not in shown
    assert "left" not in shown
    assert progress.line().startswith("publishing emoji (1 of 6), 100 % of the days, ")
    progress.phase("writing\x1btables")
    assert "writing\\x1btables" in drawn(progress)


def test_days_go_on_after_a_publication(progress: DaysProgress):
    progress.advance(10)
    progress.phase("publishing emoji (1 of 1)")
    assert "50 %" not in drawn(progress)
    progress.finish_day(1)
    assert "day 2 of 2" in drawn(progress)
    assert "50 %" in drawn(progress)
    assert "publishing" not in drawn(progress)
    assert progress.line().startswith("day 2 of 2, 50 %, ")


def test_a_run_names_all_that_it_does_without_devices(tmp_path):
    config = load_pipeline(
        preset="pipeline-small",
        settings=("pipeline.devices=200", "pipeline.days=3", "pipeline.publish_every=2"),
        use_cases=("emoji", "health"),
    )
    use_cases = build_use_cases(config)
    worker = DeviceWorker(build_model(config, use_cases), seed=config.seed)
    seen: list[str] = []
    run = Run(
        config, use_cases, InProcessExecutor(worker), checkpoint=tmp_path / "c.npz",
        seconds_between_checkpoints=0,
    )  # fmt: skip
    run.finish(after_day=lambda day: seen.append(f"day {day}"), phase=seen.append)
    published = ["publishing emoji (1 of 2)", "publishing health (2 of 2)"]
    assert seen == [
        "saving the state", "day 1", *published, "saving the state", "day 2", *published,
        "saving the state", "day 3", "adding up losses", "publishing emoji, all days (1 of 2)",
        "publishing health, all days (2 of 2)",
    ]  # fmt: skip
