"""A plug-in that fails or exits: code 1 and one line; of a sweep, the cell's error."""

from __future__ import annotations

import sys

import pandas as pd
import pytest

from tests.thinned import thinned

MODULE = """
import sys
from dataclasses import dataclass

from fedhh.clients.clients import Clients
from fedhh.oracles import SubsetSelection
from fedhh.server.ldp_triehh import LdpTrieHH


def fail():
    {raises}


class Chosen(SubsetSelection):
    def _add_values(self, *arguments, **more):
        {oracle}
        return super()._add_values(*arguments, **more)


@dataclass(frozen=True, kw_only=True)
class Mine(LdpTrieHH):
    def keep(self, answers):
        {protocol}
        return super().keep(answers)


class Own(Clients):
    def __init__(self, num_clients, *, seed):
        {population}
"""
CONFIG = """
[population]
source = "zipf"
clients = 300
known = "none"
alphabet = "lower"
virtual = true
model = { vocabulary = 100, word_length = 3 }
[protocol]
name = "ldp-triehh"
depth = 3
passes = 1
eta_max = 50
max_items = 2
[execution]
workers = 0
"""
PLACES = {
    "oracle": "protocol.oracle=failing_plugin:Chosen",
    "protocol": "protocol.name=failing_plugin:Mine",
    "population": "population.source=failing_plugin:Own",
}
RAISED = {
    'raise ValueError("bad number")': "ValueError: bad number",
    "raise SystemExit(0)": "RuntimeError: code that was called wanted to exit with 0",
    "sys.exit()": "RuntimeError: code that was called wanted to exit with None",
}
EXIT = "RuntimeError: code that was called wanted to exit with 0"


@pytest.fixture
def folder(tmp_path, monkeypatch, own_modules):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder, place, raises="raise SystemExit(0)"):
    calls = dict.fromkeys(PLACES, "pass") | {place: "fail()"}
    (folder / "failing_plugin.py").write_text(MODULE.format(raises=raises, **calls))
    sys.modules.pop("failing_plugin", None)
    text = CONFIG
    if place == "population":
        # Such a class makes its words itself.
        text = "".join(
            f"{line}\n" for line in CONFIG.splitlines() if line[:5] not in {"virtu", "model"}
        )
    (folder / "a.toml").write_text(text)
    (folder / "s.toml").write_text(text + '[sweep.axes]\n"privacy.local_epsilon" = [4.0, 8.0]\n')


def settings(place):
    return ("--trust", "--set", PLACES[place])


@pytest.mark.parametrize("place", thinned(PLACES))
@pytest.mark.parametrize("raises", RAISED)
def test_what_a_plugin_raises_is_one_line(folder, command, place, raises):
    write(folder, place, raises)
    done = command("run", "--config", "a.toml", *settings(place), "--out", "out")
    assert done.returncode == 1
    assert f"fedhh failed: {RAISED[raises]}" in done.stderr.splitlines()
    assert "Traceback" not in done.stderr
    assert not (folder / "out" / "result.json").exists()


def test_an_input_error_stays_one(folder, command):
    write(folder, "protocol", 'raise __import__("fedhh").InputError("Expected less.")')
    done = command("run", "--config", "a.toml", *settings("protocol"))
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, "Error: Expected less.")


@pytest.mark.slow("::test_what_a_plugin_raises_is_one_line")
def test_on_ray_workers_it_is_the_same_line(folder, command, shared_ray):
    write(folder, "oracle")
    done = command("run", "--config", "a.toml", *settings("oracle"), "--workers", "1")
    assert done.returncode == 1
    assert f"fedhh failed: {EXIT}" in done.stderr.splitlines()


@pytest.mark.slow("::test_what_a_plugin_raises_is_one_line")
@pytest.mark.parametrize("place", PLACES)
def test_in_a_sweep_it_is_the_cells_error(folder, command, place):
    write(folder, place)
    command("sweep", "s.toml", *settings(place), "--out", "out")
    swept = pd.read_parquet(folder / "out" / "results.parquet")
    assert (swept["status"] == "failed").all()
    assert swept["error"].tolist() == [EXIT] * 2


@pytest.mark.slow("::test_what_a_plugin_raises_is_one_line")
def test_on_ray_it_is_the_cells_error_too(folder, command, shared_ray):
    write(folder, "protocol")
    cells = ("--workers", "1", "--set", "population.virtual=false")
    command("sweep", "s.toml", *settings("protocol"), *cells, "--out", "out")
    assert pd.read_parquet(folder / "out" / "results.parquet")["error"].iloc[0] == EXIT
