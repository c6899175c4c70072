"""`[devices]` on the command line: what is refused, said before a run, and shown afterwards."""

from __future__ import annotations

import json
import re
import tomllib

import pandas as pd
import pytest

from fedhh.experiments.config.load import load_config, parse_config
from fedhh.experiments.run.layers import OF_DEVICES, OF_FAKES, column_texts
from fedhh.experiments.run.stored_result import read_result
from fedhh.experiments.sweep.plan import parse_sweep
from fedhh.longitudinal.repeated.config import load_plan
from fedhh.validation import InputError
from tests.every import every

SETTINGS = {
    "population.clients": "8000",
    "protocol.clients_per_layer": "auto",
    "protocol.depth": "5",
    "devices.check_in": "papaya",
    "devices.eligible": "0.8",
    "devices.deadline_hours": "16",
    "devices.gap_hours": "2",
    "devices.least_share": "0.678",
}


def words(**changes: str) -> list[str]:
    settings = {**SETTINGS, **{key.replace("__", "."): text for key, text in changes.items()}}
    listed = [word for key, text in settings.items() for word in ("--set", f"{key}={text}")]
    return ["run", "--preset", "small", "--workers", "0", *listed]


@pytest.fixture
def run(once):
    return once(*words(baseline__name="sfp"))


def test_a_configuration_of_devices_is_read_written_and_read_again():
    curve = "devices.check_in=[[8, 0.5], [24, 0.9]]"
    config = load_config(preset="small", settings=[curve, "devices.dropout=0.1"])
    assert config.devices.check_in == ((8.0, 0.5), (24.0, 0.9))
    again = parse_config(tomllib.loads(config.to_toml()), "again")
    assert again.devices == config.devices
    assert again.result_key == config.result_key
    without = load_config(preset="small")
    assert without.devices is None
    assert "devices" not in without.to_toml()
    assert without.result_key != config.result_key


@every(
    ("settings", "message"),
    [
        (["devices.check_in=papya"], "devices: Unknown check_in 'papya'; did you mean 'papaya'"),
        (
            ["devices.check_in=3"],
            "devices.check_in = 3: expected text, or a tuple, each (a number, a number).",
        ),
        (["devices.check_in=[[1, 0.5, 2]]"], "devices.check_in = "),
        (["devices.check_in=[[2, 0.5], [1, 0.6]]"], "devices: Expected rising hours"),
        (["devices.eligible=1.5"], "devices.eligible = 1.5: expected less than or equal to 1"),
        (["devices.dropout=1"], "devices.dropout = 1: expected less than 1"),
        (["devices.deadline=3"], "unknown key devices.deadline; did you mean 'deadline_hours'"),
        (["eligible=0.5"], "unknown key eligible; did you mean devices.eligible"),
        (["devices.when_missed=go"], "devices.when_missed = "),
    ],
)
def test_what_is_wrong_is_said_with_its_path(settings, message):
    with pytest.raises(InputError) as error:
        load_config(preset="small", settings=settings)
    assert message in str(error.value)


def test_a_least_number_out_of_reach_is_refused_before_anything_runs(command, tmp_path):
    done = command(*words(devices__least_share="0.9"), "--out", "mine", cwd=tmp_path)
    assert done.returncode == 2
    assert "Expected devices.least_share <= 0.768, got least_share=0.9" in done.stderr
    assert not (tmp_path / "mine").exists()


@pytest.mark.slow(
    "tests/accounting/test_least_answers.py::test_claims_before_a_run_are_those_of_a_plan_with_the_least_answers"
)
def test_a_dry_run_says_for_how_many_answers_it_claims(command, tmp_path):
    done = command(*words(), "--dry-run", cwd=tmp_path)
    lines = [line.split() for line in done.stdout.splitlines()]
    (row,) = [line[2:] for line in lines if line[:2] == ["LDP", "TrieHH"] and len(line) == 8]
    item, local, user, local_user, cohort, least = row
    assert (local, local_user, cohort) == ("8", "40", "1,600")
    assert least == "1,085"  # .678 of 1,600
    assert 0 < float(item) <= 8 < float(user) <= 40
    plain = command("run", "--preset", "small", "--dry-run", "--workers", "0", cwd=tmp_path)
    assert "least answers" not in plain.stdout


@pytest.mark.slow(
    "tests/experiments/run/test_run_devices.py::test_the_calendar_is_of_rounds_that_follow_each_other"
)
def test_the_calendar_stands_in_the_files_the_summary_and_a_table(command, run):
    directory, seen = run
    flat = " ".join(seen.split())
    record = json.loads((directory / "result.json").read_text())
    calendar = record["calendar"]
    assert f"Days {calendar['days']:.1f}: to the result" in flat
    layers = pd.read_parquet(directory / "layers.parquet")
    assert list(layers) == [name for name in column_texts() if name not in OF_FAKES]
    assert calendar["hours"] == layers["closed_hours"].iloc[-1]
    assert calendar["share_served"] == layers["num_clients"].sum() / 8_000
    assert calendar["missed"] is None
    once = json.loads((directory / "baseline" / "result.json").read_text())["calendar"]
    assert once["days"] < 1 < calendar["days"]
    stored = read_result(directory).result
    assert stored.calendar.to_dict() == calendar
    shown = command("show", "mine", "--table", "calendar", cwd=directory.parent).stdout
    for row in layers.to_dict("records"):
        assert f"{row['num_clients']:,}" in shown
    assert f"LDP TrieHH {calendar['days']:,.1f} days" in shown
    table = command(
        "show", "mine", "--table", "calendar", "--format", "csv", cwd=directory.parent
    ).stdout
    assert len(table.splitlines()) == 1 + len(layers) + 1


@pytest.mark.slow(
    "tests/experiments/run/test_run_devices.py::test_without_devices_there_is_no_calendar_and_the_bits_are_the_same"
)
def test_a_run_without_devices_has_no_calendar(command, once):
    directory, seen = once("run", "--preset", "small", "--workers", "0")
    assert not set(OF_DEVICES) & set(pd.read_parquet(directory / "layers.parquet"))
    assert "calendar" not in json.loads((directory / "result.json").read_text())
    assert "days" not in seen.lower()
    done = command("show", "mine", "--table", "calendar", cwd=directory.parent)
    assert done.returncode == 2
    assert "with the table [devices]" in done.stderr


@pytest.mark.slow(
    "tests/experiments/run/test_run_devices.py::test_a_run_that_stops_at_once_has_tables_without_rows"
)
def test_a_run_that_stopped_is_shown_from_its_files(command, tmp_path):
    directory = tmp_path / "mine"
    stopping = words(devices__when_missed="stop", devices__least_share="0.6799")
    done = command(*stopping, "--out", "mine", cwd=tmp_path)
    missed = json.loads((directory / "result.json").read_text())["calendar"]["missed"]
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith("warning: pass 1, layer ")
    assert line.endswith("nothing more is asked")
    flat = " ".join(done.stdout.split())
    assert f"layer {missed['layer']} had {missed['answers']:,} of at least" in flat
    shown = command("show", "mine", "--table", "calendar", cwd=directory.parent).stdout
    assert "missed" in shown
    assert command("show", "mine", cwd=directory.parent).returncode == 0
    assert command("report", "mine", cwd=directory.parent).returncode == 0
    stored = read_result(directory).result
    assert stored.calendar.missed.layer == missed["layer"]


@pytest.mark.slow(
    "tests/experiments/run/test_run_devices.py::test_the_calendar_is_of_rounds_that_follow_each_other"
)
def test_protocols_are_compared_by_days(command, tmp_path):
    (tmp_path / "both.toml").write_text(
        """
        [population]
        source = "zipf"
        clients = 1000
        known = "none"
        [protocol]
        max_items = 1
        [devices]
        check_in = [[12, 0.9]]
        least_share = 0.5
        [sweep]
        seeds = 1
        [sweep.protocols]
        trie = { name = "ldp-triehh", depth = 4, passes = 1 }
        "one round" = { name = "sfp", length = 4, word_hashes = 16, fragment_hashes = 16 }
        """
    )
    done = command("compare", "both.toml", "--workers", "0", "--out", "mine", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    table = pd.read_parquet(tmp_path / "mine" / "results.parquet").set_index("protocol")
    assert table.loc["trie", "days"] == 2.0
    assert table.loc["one round", "days"] == 0.5
    assert (abs(table["share_served"] - 0.9) < 0.05).all()
    assert re.search(r"days to\b", done.stdout)


def test_settings_of_devices_are_axes_of_a_sweep():
    table = {
        "population": {"clients": 9_000},
        "sweep": {"axes": {"devices.deadline_hours": [8, 24]}},
    }
    hours = [cell.config.devices.deadline_hours for cell in parse_sweep(table, "mine").cells]
    assert set(hours) == {8, 24}
    with pytest.raises(InputError, match="devices is a table; vary one of its keys"):
        parse_sweep({"sweep": {"axes": {"devices": [1]}}}, "mine")
    with pytest.raises(InputError, match=r"unknown sweep axis devices\.deadline; did you mean"):
        parse_sweep({"sweep": {"axes": {"devices.deadline": [1]}}}, "mine")


def test_a_repeated_collection_has_no_such_table():
    with pytest.raises(InputError, match="devices: expected no such table"):
        load_plan("weekly-small", settings=["devices.eligible=0.5"])
