"""What is printed when a command ends, and again by `fedhh show`."""

from __future__ import annotations

import json
import logging
import shutil

import pytest

from fedhh.experiments.report.run_tables import swear_words
from fedhh.validation import InputError
from tests.e2e.test_compare import BASE, COMPARISON, compared_with
from tests.fuzz.work import RUN, SWEEP
from tests.thinned import thinned


@pytest.fixture
def run_with_baseline(once):
    """A directory of a run and its baseline, and what a person saw of it."""
    return once(*BASE, *compared_with("baseline"))


@pytest.fixture
def finished(run_with_baseline):
    """Where that directory is `mine`."""
    return run_with_baseline[0].parent


def test_a_run_ends_in_at_most_thirty_lines_that_say_where_the_rest_is(run_with_baseline):
    directory, seen = run_with_baseline
    lines = seen.splitlines()
    assert len(lines) <= 30
    assert all(len(line) <= 80 for line in lines)
    record = json.loads((directory / "result.json").read_text())
    flat = " ".join(seen.split())
    assert lines[0] == "LDP TrieHH on chat, 8,000 clients, seed 0"
    assert f"Discovered {record['metrics']['discovered']:,} words" in flat
    assert f"a coverage of {record['metrics']['coverage']:.1%} of new-word contributions" in flat
    baseline = json.loads((directory / "baseline" / "result.json").read_text())
    for title, protocol in (("LDP TrieHH", record), ("SFP", baseline)):
        (row,) = [line.split() for line in lines if line.startswith(title)][-1:]
        assert f"{protocol['metrics']['coverage']:.1%}" in row
        assert f"{protocol['metrics']['discovered']:,}" in row
    assert "Privacy of all that a user has, against whoever links a device's messages: " in flat
    assert "40 (1 round of 5 x 8). Central epsilons hold before the run at delta 1e-10" in flat
    for command in ("show", "report"):
        assert f"fedhh {command} mine" in seen
    words = [line.split(",")[0] for line in (directory / "discoveries.csv").read_text().split()]
    shown = [line.split()[1] for line in lines if line.split()[:1] and line.split()[0].isdigit()]
    assert shown == [word for word in words[1:] if word not in swear_words()][:10]


def test_show_prints_every_table_of_a_run_and_its_baseline(command, run_with_baseline, finished):
    directory, _ = run_with_baseline
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    done = command("show", "mine", "--words", "7", cwd=finished)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.strip() for line in done.stdout.splitlines()]
    for title in ("discovered words, the first 7 of", "layers", "privacy: what this run can claim"):
        assert sum(line.startswith(title) for line in lines) == 2
    assert done.stdout.count("LDP TrieHH and SFP on the same clients") == 1
    record = json.loads((directory / "result.json").read_text())
    for guarantee in record["privacy"]["guarantees"]:
        assert guarantee["theorem"].split("(")[0] in done.stdout
    assert f"{record['cost']['reports']:,}" in done.stdout
    assert "Files: mine" in done.stdout
    assert {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()} == before


@pytest.mark.slow("::test_show_prints_every_table_of_a_run_and_its_baseline")
def test_show_keeps_to_columns_in_a_pipe_and_prints_tables_whole_without(
    command, run_with_baseline, finished, monkeypatch
):
    def longest(columns: str | None) -> int:
        monkeypatch.delenv("COLUMNS", raising=False)
        if columns is not None:
            monkeypatch.setenv("COLUMNS", columns)
        done = command("show", "mine", "--all", cwd=finished)
        assert (done.returncode, done.stderr) == (0, "")
        assert "…" not in done.stdout
        for head in ("threshold", "prefixes", "coverage"):
            assert head in done.stdout
        if columns is None:
            assert "estimated contributors ┃ ± 2 std. errors ┃ true holders" in done.stdout
        assert "epsilon or k  delta" in done.stdout
        return max(len(line.rstrip()) for line in done.stdout.splitlines())

    assert longest("100") == 100
    # Narrower than the table of layers, which is whole.
    assert 60 < longest("60") <= 80
    assert longest(None) > 130
    for wrong in ("²", "0", "12x", "9" * 5_000):
        assert longest(wrong) == longest(None)


def test_show_gives_programs_what_the_run_gave_them(command, run_with_baseline, finished):
    directory, _ = run_with_baseline
    shown = json.loads(command("show", "mine", "--format", "json", cwd=finished).stdout)
    assert shown.pop("directory") == "mine"
    assert shown.pop("baselines") == [json.loads((directory / "baseline/result.json").read_text())]
    assert shown == json.loads((directory / "result.json").read_text())


@pytest.mark.slow(
    "tests/experiments/test_received_directory.py::test_what_is_shown_without_the_code_is_what_the_run_stated"
)
def test_one_table_is_that_of_a_directory_or_a_file_of_it(
    command, refused, run_with_baseline, finished
):
    directory, _ = run_with_baseline
    one = ("--table", "main", "--format")
    text = command("show", "mine", *one, "markdown", cwd=finished).stdout
    for path in ("mine/result.json", "mine/discoveries.csv"):
        assert command("show", path, *one, "markdown", cwd=finished).stdout == text
        assert command("show", path, cwd=finished).stdout == command("show", "mine").stdout
    assert text.startswith("LDP TrieHH and SFP on the same clients\n\n| ")
    alone = json.loads(command("show", "mine/baseline", *one, "json").stdout)
    assert alone["title"] == "SFP on chat, 8,000 clients, seed 0"
    # No run claims k, so that no alpha is to be explained.
    assert "at alpha" not in text
    as_seen = command("show", "mine", *one, "table").stdout
    assert "│ LDP TrieHH │" in as_seen
    assert as_seen in command("show", "mine").stdout
    assert refused("show", "absent", "--table", "main") == refused("show", "absent")
    assert "which has one table" in refused("show", str(directory), "--table", "summary")


@pytest.mark.slow(
    "tests/experiments/test_received_directory.py::test_what_is_shown_without_the_code_is_what_the_run_stated"
)
def test_a_sweep_lists_its_cells_says_what_is_left_and_is_shown_again(command, tmp_path):
    (tmp_path / "mine.toml").write_text(COMPARISON)
    words = ("sweep", "mine.toml", "--set", "sweep.axes.privacy.local_epsilon=[4,8]")
    listed = command(*words, "--dry-run", cwd=tmp_path)
    assert listed.stdout.splitlines() == [
        "8 cells to run, 0 skipped",
        "Clients asked in all, the same for every protocol: 4,000.",
        "cells run in this process, as configured",
        "  protocol TrieHH, epsilon 4, seeds 0 to 1",
        "  protocol TrieHH, epsilon 8, seeds 0 to 1",
        "  protocol SFP, epsilon 4, seeds 0 to 1",
        "  protocol SFP, epsilon 8, seeds 0 to 1",
    ]
    cells = json.loads(command(*words, "--dry-run", "--format", "json").stdout)
    assert len(cells) == 8
    assert {cell["done"] for cell in cells} == {False}
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]
    done = command(*words, "--out", "out")
    assert done.returncode == 0
    assert done.stderr.splitlines() == listed.stdout.splitlines()[:3]
    for command_line in ("fedhh show out --all", "fedhh plot out"):
        assert f": {command_line}\n" in done.stdout
    assert {path.name for path in (tmp_path / "out").glob("*.png")} >= {"coverage.png"}

    for cell in sorted((tmp_path / "out" / "cells").iterdir())[:3]:
        cell.unlink()
    again = command("sweep", "--resume", "--out", "out", "--dry-run")
    assert again.stdout.splitlines()[-1] == "5 of 8 cells are done, 3 left"
    again = command("sweep", "--resume", "--out", "out")
    assert again.returncode == 0
    assert again.stderr.endswith("5 of 8 cells are done, 3 left\n")
    shown = command("show", "out", "--all")
    assert shown.returncode == 0
    for name in ("summary", "comparison"):
        one = ("--table", name, "--format", "markdown")
        made = command("show", "out", *one).stdout
        assert command("show", "out/results.parquet", *one).stdout == made
        rows = [line.split("|") for line in made.splitlines() if line.startswith("| ")]
        assert len(rows) > 2
        for row in rows[1:]:
            assert row[1].strip() in shown.stdout
    assert "central epsilon before the run, user" in shown.stdout
    usual = command("show", "out", "--table", "main").stdout
    assert usual == command("show", "out", "--table", "summary").stdout
    assert command("show", "out").stdout.startswith(usual)
    rows = json.loads(command("show", "out", "--format", "json").stdout)
    assert len(rows) == 8
    other = command("sweep", "--resume", "--out", "out", "--seed", "5", "--dry-run")
    assert other.returncode == 2
    assert "holds another sweep" in other.stderr


@pytest.mark.parametrize(
    ("name", "text"), thinned([("sweep", RUN + SWEEP), ("compare", COMPARISON)])
)
def test_what_has_nothing_to_draw_says_so_and_ends_well(command, tmp_path, monkeypatch, name, text):
    def refuse(directory):
        raise InputError(f"{directory}: no numbers to draw in coverage.")

    monkeypatch.setattr("fedhh.experiments.report.sweep_figures.plot_sweep", refuse)
    (tmp_path / "mine.toml").write_text(text)
    words = (name, "--config", "mine.toml", "--seeds", "1")
    done = command(*words, "--out", name, cwd=tmp_path)
    assert done.returncode == 0
    assert f"No figure: {name}: no numbers to draw in coverage.\n" in done.stderr
    quiet = command(*words, "-q", "--out", "quiet")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "quiet\n", "")


def test_show_refuses_what_is_not_finished(refused, tmp_path):
    assert "fedhh run --resume" in refused("show", "absent")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "sweep.toml").write_text("")
    assert "fedhh sweep --resume" in refused("show", "out")


@pytest.mark.slow("::test_quiet_and_verbose_exclude_each_other")
def test_quiet_prints_the_directory_alone_and_verbose_each_layer(command, tmp_path):
    small = (*BASE, "--set", "protocol.depth=4")
    done = command(*small, "-q", "--out", "a b", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "a b\n", "")
    done = command("-q", *small, "--out", "c")
    assert (done.returncode, done.stdout, done.stderr) == (0, "c\n", "")
    done = command(*small, "-v", "--out", "d")
    layers = [line for line in done.stderr.splitlines() if line.startswith("info: pass 1, layer ")]
    assert len(layers) == 4
    assert "Discovered" in done.stdout
    # The next command says no more than it is asked to.
    shutil.rmtree(tmp_path / "d")
    assert command(*small, "--out", "d").stderr == ""
    assert logging.getLogger("fedhh").level == logging.WARNING


def test_quiet_and_verbose_exclude_each_other(refused):
    assert "--quiet or --verbose" in refused("run", "-q", "-v")
    assert "--quiet or --verbose" in refused("-v", "run", "-q")


def test_the_schema_knows_every_key(command):
    schema = json.loads(command("presets", "schema").stdout)
    assert {"population", "protocol", "privacy", "execution"} <= schema["properties"].keys()
    assert "eta_max" in json.dumps(schema)


@pytest.mark.parametrize(
    "words", [("--table", "main", "--all"), ("--metric", "recall", "--words", "3")]
)
def test_show_prints_one_thing_at_a_time(refused, words):
    assert "Expected one of --table, of --all" in refused("show", "absent", *words)
