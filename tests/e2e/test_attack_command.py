"""`fedhh attack`: what it prints and draws, and a run with fake clients from the command line."""

from __future__ import annotations

import json

import pytest

WORDS = (
    *("attack", "small", "--set", "population.clients=20000", "--workers", "0", "-q"),
    *("--set", "protocol.clients_per_layer=auto", "--runs", "1"),
)


@pytest.mark.slow(
    "tests/experiments/attack/test_attack.py::test_a_small_attack_finds_how_many_fakes_a_word_takes"
)
def test_an_attack_is_a_table_a_figure_and_json(command, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "160")
    done = command(*WORDS, "--figure", "attack.png", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "fake clients that get a word into the result" in " ".join(done.stdout.split())
    assert (tmp_path / "attack.png").read_bytes().startswith(b"\x89PNG")
    found = json.loads(command(*WORDS, "--format", "json", cwd=tmp_path).stdout)
    (one,) = found["attacks"]
    half, most = one["needed"]["0.5"], one["needed"]["0.95"]
    assert half["low"] <= half["clients"] <= most["clients"]
    assert f"{half['clients']:,} [" in done.stdout


@pytest.mark.slow("tests/experiments/run/test_run_adversary.py::test_a_sentence_says_what_they_did")
def test_a_run_says_what_its_fake_clients_did(command, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "200")
    fakes = ("--set", "adversary.clients=1500", "--set", 'adversary.targets=["zzqqzz"]')
    done = command("run", "small", *fakes, "--workers", "0", "-q", "--out", "ran", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    record = json.loads((tmp_path / "ran" / "result.json").read_text())
    assert record["adversary"]["targets_found"] == 1
    shown = command("show", "ran", "--all", cwd=tmp_path)
    assert "pushed 'zzqqzz': 1 of 1" in " ".join(shown.stdout.split())


def test_contradictions_end_with_one_line(command, tmp_path):
    both = ("--set", "adversary.clients=3", "--set", "adversary.share=0.1")
    done = command("run", "small", *both, cwd=tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert "Expected one of adversary.clients or adversary.share" in line
