"""`fedhh pipeline` as a person uses it."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from fedhh.longitudinal.pipeline.directory import SUMS, TABLES
from fedhh.longitudinal.pipeline.study import say_sums
from tests.thinned import thinned

FEW = ("--days", "2", "--devices", "400", "--workers", "0")
SMALL = ("pipeline", "run", "--preset", "pipeline-small", *FEW)


@pytest.fixture
def done(once):
    """The directory of a pipeline, and what a person saw of it."""
    return once(*SMALL)


def test_it_ends_with_a_table_of_its_use_cases(done):
    directory, seen = done
    flat = " ".join(seen.split())
    assert "400 devices over 2 days" in flat
    for name in ("words", "emoji", "health", "domains", "all together"):
        assert name in seen
    # 2 words of epsilon 10, an emoji of 4, three health types of 2 and two domains of 4.
    record = json.loads((directory / "result.json").read_text())
    together = record["ledger"]["before_run"]["together"]["guarantees"]
    (day,) = [g for g in together if (g["unit"], g["method"]) == ("day", "basic")]
    assert day["epsilon"] == 2 * 10 + 4 + 3 * 2 + 2 * 4
    assert "3 in 7 d" in flat
    assert "at delta 1e-10" in flat


def test_it_leaves_whole_files(done):
    directory, _ = done
    names = {path.name for path in directory.iterdir()}
    tables = {f"{name}.{kind}" for name in TABLES for kind in ("csv", "parquet")}
    assert names == tables | {"config.toml", "result.json", "figures"}
    figures = sorted(path.name for path in (directory / "figures").iterdir())
    assert figures == ["error_by_day.png", "loss_over_lifetime.png", "records.png"]
    days = pd.read_parquet(directory / "days.parquet")
    assert len(days) == 4 * 2
    devices = pd.read_parquet(directory / "devices.parquet")
    record = json.loads((directory / "result.json").read_text())
    assert record["schema_version"] == 1
    assert (devices.groupby("use_case")["devices"].sum() == record["devices_opted_in"]).all()
    for row in record["use_cases"]:
        mine = devices[devices["use_case"] == row["use_case"]]
        assert (mine["records"] * mine["devices"]).sum() == row["sent"]


def test_it_is_shown_again(done, command):
    directory, seen = done
    again = command("show", str(directory))
    assert again.returncode == 0
    assert again.stdout.splitlines()[:10] == seen.splitlines()[:10]
    assert command("show", str(directory)).stdout == again.stdout
    as_json = command("show", str(directory), "--format", "json")
    assert json.loads(as_json.stdout)["kind"] == "pipeline"


def test_its_configuration_gives_the_same_again(done, command, tmp_path):
    directory, _ = done
    ran = command(
        "pipeline", "run", "--config", str(directory / "config.toml"), "-q", "--out", "again",
        cwd=tmp_path,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "again\n", "")
    for name in TABLES:
        assert (tmp_path / "again" / f"{name}.csv").read_text() == (
            directory / f"{name}.csv"
        ).read_text()


def test_days_without_a_record_and_publications_of_nothing_are_fine(command, tmp_path):
    settings = ("pipeline.delay_hours=30.0", "pipeline.store_days=1", "pipeline.opt_in=0.1")
    quiet = [word for setting in settings for word in ("--set", setting)]
    ran = command(*SMALL, "--devices", "30", *quiet, "--out", "few", "-q", cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    days = pd.read_parquet(tmp_path / "few" / "days.parquet")
    assert not days["sent"][days["day"] == 1].any()
    published = pd.read_parquet(tmp_path / "few" / "published.parquet")
    assert {"use_case", "estimate", "sent"} <= set(published.columns)
    assert (published["estimate"] > 0).all()


def test_presets_are_listed_and_printed(command):
    listed = command("presets", "list").stdout.splitlines()
    below = listed[listed.index("fedhh pipeline run --preset") :]
    assert "apple" in [line.split()[0] for line in below]
    assert "epsilon = [2.0, 6.0]" in command("presets", "show", "apple").stdout


@pytest.mark.parametrize(
    ("words", "complaint"),
    thinned(
        [
            (("--preset", "pipeline-small", "--days", "-3"), "pipeline.days = -3"),
            (("--preset", "pipeline-small", "--devices", "0"), "pipeline.devices = 0"),
            (("--preset", "aple"), "did you mean 'apple'"),
            (("--preset", "pipeline-small", "--use-case", "emojis"), "did you mean 'emoji'"),
            (
                ("--preset", "pipeline-small", "--set", "pipeline.use_cases.emoji.epsilon=1e9"),
                "from 1e-06 to 700",
            ),
            (("--config", "no.toml"), "Cannot read the config"),
            ((), "Expected a pipeline: a TOML file, or"),
            (("--resume",), "--out DIR with --resume"),
        ]
    ),
)
def test_what_cannot_be_is_one_line_and_leaves_nothing(command, tmp_path, words, complaint):
    refused = command("pipeline", "run", *words, cwd=tmp_path)
    assert refused.returncode == 2
    (line,) = refused.stderr.splitlines()
    assert complaint in line
    assert not list(tmp_path.iterdir())


def test_what_is_no_pipeline_is_not_shown(command, tmp_path):
    refused = command("show", str(tmp_path))
    assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)
    (tmp_path / "result.json").write_text("{}")
    assert command("show", str(tmp_path)).returncode == 2
    (tmp_path / "result.json").write_text("x")
    assert "damaged" in command("show", str(tmp_path)).stderr


def test_kept_sums_are_said_with_its_place_and_size(command, tmp_path):
    kept = command(*SMALL, "--set", "output.keep_log=true", "--out", "mine", cwd=tmp_path)
    assert kept.returncode == 0, kept.stderr
    # It takes a minute until sums are stored.
    assert "keep_log" not in kept.stdout
    state = tmp_path / "mine" / SUMS
    state.write_bytes(bytes(2_500_000))
    shown = " ".join(command("show", "mine", cwd=tmp_path).stdout.split())
    assert f"Kept by output.keep_log: the servers' sums, 2.5 MB in mine/{SUMS}" in shown


def test_one_that_is_stopped_says_what_it_leaves(capfd, tmp_path):
    state = tmp_path / "a\x1bb.arrays"
    say_sums(state)
    assert capfd.readouterr().err == ""
    state.write_bytes(bytes(1_240_000))
    say_sums(state)
    (line,) = capfd.readouterr().err.splitlines()
    assert "1.2 MB in " in line
    assert "\x1b" not in line
    assert line.startswith("Left to go on with: ")
