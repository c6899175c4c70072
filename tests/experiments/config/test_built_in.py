"""Built-in configurations, as `fedhh presets list` describes them."""

from __future__ import annotations

import csv
import io
import json
import tomllib

import pytest

from fedhh.experiments.config.built_in import COMMANDS, preset_names, preset_text, presets

NAMES = [name for kind in COMMANDS for name in preset_names(kind)]


def test_every_preset_says_what_it_does_and_what_it_costs():
    found = presets()
    assert [each.name for each in found] == NAMES
    assert len({each.what for each in found}) == len(found)
    for each in found:
        assert 20 < len(each.what) <= 80
        assert each.what.endswith(".")
        assert 1 <= each.seconds < 3_600
        assert 1_000 < each.clients <= 15_000_000
    (default,) = (each for each in found if each.name == "default")
    table = tomllib.loads(preset_text("default"))
    assert default.clients == table["population"]["clients"]


@pytest.mark.slow("::test_every_preset_says_what_it_does_and_what_it_costs")
def test_the_list_is_printed_in_every_format(command):
    def listed(how: str) -> str:
        done = command("presets", "list", "--format", how)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    records = json.loads(listed("json"))
    assert [each["name"] for each in records] == NAMES
    small = next(each for each in records if each["name"] == "small")
    assert (small["command"], small["clients"], small["basis"]) == (
        "fedhh run",
        100_000,
        "measured",
    )
    rows = list(csv.DictReader(io.StringIO(listed("csv"))))
    assert [{key: str(value) for key, value in each.items()} for each in records] == rows
    assert sum(line.startswith("| ") for line in listed("markdown").splitlines()) == 1 + len(NAMES)
    assert listed("latex").count(r" \\") == 1 + len(NAMES)
    lines = command("presets", "list").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    text = " ".join(line.strip() for line in lines)
    for each in records:
        (line,) = (line for line in lines if line.startswith(f"  {each['name']}  "))
        assert f" {each['clients']:,} clients, " in line
        assert f"{line.strip()} {each['what']}" in text
        assert line.endswith("*") == (each["basis"] == "derived")
    assert "derived" in lines[-1]
