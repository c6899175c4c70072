"""Protocols compared, as the user of the command line meets them."""

from __future__ import annotations

import json
import shutil
import signal
import tomllib

import pytest

from tests.processes import start, wait_until
from tests.thinned import thinned
from tests.waiting import SERVER, write_waiting

SMALL_SKETCHES = (
    "word_hashes=64", "word_cells=64", "fragment_hashes=64", "fragment_cells=64", "num_puzzles=16",
)  # fmt: skip
BASE = ("run", "--preset", "small", "--set", "population.clients=8000", "--workers", "0")


def compared_with(section: str, name: str = "sfp") -> list[str]:
    """Options for a small SFP in a section."""
    values = [f"{section}.name={name}", *(f"{section}.{value}" for value in SMALL_SKETCHES)]
    return [word for value in values for word in ("--set", value)]


@pytest.mark.slow(
    "tests/experiments/config/test_protocol.py::test_every_protocol_runs_through_the_same_call"
)
@pytest.mark.parametrize("name", ["sfp", "pem", "triehh"])
def test_every_protocol_runs_by_name(tmp_path, command, name: str):
    sketches = compared_with("protocol") if name == "sfp" else ["--set", f"protocol.name={name}"]
    if name == "triehh":
        sketches += ["--set", "protocol.central_epsilon=20", "--set", "privacy.delta=0.01"]
    done = command(*BASE, *sketches, "--out", "mine", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["protocol"]["name"] == name
    assert record["metrics"]["discovered"] > 0
    units = {(g["unit"], g["trust"]) for g in record["privacy"]["guarantees"] if g["best"]}
    assert units == {(u, t) for u in ("item", "user") for t in ("local", "central")}


@pytest.mark.slow(
    "tests/experiments/config/test_protocol_section.py::test_a_baseline_contributes_as_the_protocol_does_unless_it_says_so"
)
def test_a_baseline_is_a_run_of_its_own_and_a_runs_config_gives_both_again(tmp_path, command, once):
    mine, seen = once(*BASE, *compared_with("baseline"))
    assert [line.split()[0] for line in seen.splitlines() if "%" in line][-2:] == ["LDP", "SFP"]
    again = ("run", "--config", f"{mine}/baseline/config.toml", "--out", "alone")
    alone = command(*again, cwd=tmp_path)
    assert alone.returncode == 0, alone.stderr
    for name in ("discoveries.csv", "layers.parquet", "config.toml"):
        assert (mine / "baseline" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes()
    whole = command(
        "run", "--config", f"{mine}/config.toml", "--out", "again", "--format", "json", cwd=tmp_path
    )
    record = json.loads(whole.stdout)
    (baseline,) = record["baselines"]
    assert baseline["protocol"]["name"] == "sfp"
    assert baseline["seed"] == record["seed"]
    for name in ("discoveries.csv", "discoveries.parquet", "layers.parquet"):
        for run in (".", "baseline"):
            again = (tmp_path / "again" / run / name).read_bytes()
            assert again == (mine / run / name).read_bytes()


@pytest.mark.slow(
    "tests/experiments/run/test_resume.py::test_the_same_run_goes_on_to_the_same_words"
)
@pytest.mark.usefixtures("own_modules")
def test_a_run_stopped_in_its_baseline_goes_on_there(tmp_path, command):
    go = write_waiting(tmp_path, "stopped/baseline")
    both = (*BASE, "--trust", *compared_with("baseline", SERVER))
    process = start(*both, "--out", "stopped", cwd=tmp_path)
    wait_until((tmp_path / "stopped" / "baseline").exists, process)
    process.send_signal(signal.SIGTERM)
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == 130
    assert complaint.endswith("Interrupted; what is finished is kept.\n")
    assert not (tmp_path / "stopped" / "result.json").exists()
    assert (tmp_path / "stopped" / "log" / "0.arrays").exists()
    go.touch()
    resumed = command("run", "--resume", "--trust", "--out", "stopped", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    whole = command(*both, "--out", "whole", cwd=tmp_path)
    assert whole.returncode == 0, whole.stderr
    for name in ("discoveries.csv", "baseline/discoveries.csv", "baseline/layers.parquet"):
        stopped = (tmp_path / "stopped" / name).read_bytes()
        assert stopped == (tmp_path / "whole" / name).read_bytes()


def test_a_run_that_was_killed_as_its_baseline_began_goes_on(tmp_path, command):
    small = ("--set", "population.clients=500", "--set", "protocol.depth=2")
    words = (*BASE, *small, "--set", "output.keep_log=true", "--set", "baseline.name=triehh")
    assert command(*words, "--out", "mine", cwd=tmp_path).returncode == 0
    found = (tmp_path / "mine/baseline/discoveries.csv").read_bytes()
    (tmp_path / "mine/result.json").unlink()
    shutil.rmtree(tmp_path / "mine/baseline")
    (tmp_path / "mine/baseline").mkdir()
    resumed = command("run", "--resume", "--out", "mine", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert (tmp_path / "mine/baseline/discoveries.csv").read_bytes() == found


COMPARISON = """
[population]
source = "chat"
clients = 4_000

[protocol]
max_items = 3
depth = 5
eta_max = 50

[metrics]
top_k = [20]

[execution]
workers = 0

[sweep]
title = "Two protocols"
seeds = 2

[sweep.axes.privacy]
local_epsilon = [8, 10]

[sweep.protocols.TrieHH]
passes = 1

[sweep.protocols.SFP]
name = "sfp"
word_hashes = 64
word_cells = 64
fragment_hashes = 64
fragment_cells = 64
num_puzzles = 16
"""


@pytest.mark.slow(
    "tests/experiments/report/test_comparison.py::test_a_cell_is_the_mean_and_half_its_interval"
)
def test_a_comparison_leaves_its_table_and_its_figures(tmp_path, command):
    (tmp_path / "mine.toml").write_text(COMPARISON)
    done = command("compare", "--config", "mine.toml", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    measures = ("precision", "words", "run, user")
    for text in ("TrieHH", "SFP", "Local epsilon 8", *measures):
        assert text in done.stdout
    out = tmp_path / "out"
    names = {path.name for path in out.iterdir()}
    assert {"comparison.md", "comparison.csv", "results.parquet"} <= names
    assert {
        f"{x}.{ending}" for x in ("coverage", "precision") for ending in ("png", "svg")
    } <= names
    table = (out / "comparison.csv").read_text().splitlines()
    assert table[0].startswith("privacy.local_epsilon,protocol,seeds,coverage_mean,coverage_low,")
    assert [line.split(",")[:2] for line in table[1:]] == [
        [epsilon, name] for epsilon in ("8.0", "10.0") for name in ("TrieHH", "SFP")
    ]
    assert "server_mean" in table[0].split(",")
    wanted = ("--metric", "recall", "--rows", "epsilon", "--columns", "protocol")
    by_epsilon = command("show", "out", *wanted, cwd=tmp_path).stdout
    assert "┃ epsilon ┃" in by_epsilon
    once_more = ("compare", "--resume", "--out", "out", *wanted)
    assert command(*once_more, cwd=tmp_path).stdout == by_epsilon
    again = command("show", "out", "--table", "comparison", "--format", "markdown", cwd=tmp_path)
    assert again.stdout == (out / "comparison.md").read_text()


def compared(command, *words: str, cwd=None) -> dict[str, set[str]]:
    """Return the cells of a comparison by protocol, in the order of the table."""
    few = ("--seeds", "1", "--set", "privacy.local_epsilon=8")
    done = command("compare", *words, *few, "--dry-run", "--format", "json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    cells: dict[str, set[str]] = {}
    for cell in json.loads(done.stdout):
        cells.setdefault(cell["protocol"], set()).add(cell["cell"])
    return cells


@pytest.mark.slow(
    "tests/experiments/report/test_comparison.py::test_a_run_without_baselines_is_compared_by_the_best_settings"
)
def test_participation_is_compared_by_default_and_protocols_are_chosen(command, tmp_path):
    default = compared(command, cwd=tmp_path)
    labels = list(default)
    assert labels == ["LDP TrieHH, every round", "LDP TrieHH, one round", "SFP"]
    chosen = compared(command, "--protocol", "sfp", "--protocol", "pem", "--protocol", labels[0])
    assert list(chosen) == ["SFP", "PEM", labels[0]]
    for label in chosen.keys() & default.keys():
        assert chosen[label] == default[label]
    assert list(compared(command, "--protocol", "ldp-triehh")) == labels[:1]
    assert len(compared(command, "small", "--as-published")) == 7
    # A run's configuration has a longest word of its own.
    (tmp_path / "run.toml").write_text('[protocol]\nname = "ldp-triehh"\ndepth = 3\n')
    own = ("compare", "--config", "run.toml", "--protocol", "adaptive-triehh", "--seeds", "1")
    own += ("--set", "population.clients=500", "--workers", "0", "--out", "out")
    longest = command(*own)
    assert longest.returncode == 0, longest.stderr
    stored = tomllib.loads((tmp_path / "out" / "sweep.toml").read_text())
    (listed,) = stored["sweep"]["protocols"].items()
    assert (listed[0], listed[1]["depth"]) == ("Adaptive TrieHH", 3)


@pytest.mark.slow(
    "tests/experiments/sweep/test_objects.py::test_a_small_sweep_has_the_rows_of_its_single_runs"
)
def test_who_else_is_compared_changes_no_bit(tmp_path, command):
    (tmp_path / "mine.toml").write_text(COMPARISON)
    words = ("compare", "--config", "mine.toml", "--seeds", "1", "--format", "json")
    eight = ("--set", "sweep.axes.privacy.local_epsilon=[8]")
    rows = []
    for number, names in enumerate((["SFP"], ["adaptive-triehh", "SFP"])):
        asked = [word for name in names for word in ("--protocol", name)]
        done = command(*words, *eight, *asked, "--out", f"{number}", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        rows.append({row["protocol"]: row for row in json.loads(done.stdout)})
    alone, together = rows
    assert list(together) == ["Adaptive TrieHH", "SFP"]
    assert {k: v for k, v in together["SFP"].items() if k in alone["SFP"]} == alone["SFP"]
    # What is stopped goes on with the same words.
    again = command(*words[:3], *eight, "--protocol", "SFP", "--resume", "--out", "0")
    assert again.returncode == 2
    assert "SFP" in command("compare", "--resume", "--protocol", "SFP", "--out", "0").stdout


@pytest.mark.slow(
    "tests/experiments/sweep/test_plan.py::test_a_file_of_clients_takes_the_place_of_all_populations"
)
def test_a_comparison_takes_a_file_of_clients(tmp_path, command):
    rows = ["user,word,count"]
    rows += [f"{user},{w},1" for user in range(900) for w in ("brb", "afk", f"w{user % 50:02}")]
    (tmp_path / "words.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "mine.toml").write_text(COMPARISON)
    done = command(
        "compare", "--config", "mine.toml", "--data", "words.csv", "--known", "none", "--seeds",
        "1", "--set", "sweep.axes.privacy.local_epsilon=[8]", "--format", "json", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [row["protocol"] for row in rows] == ["TrieHH", "SFP"]
    assert {row["population_clients"] for row in rows} == {900}


@pytest.mark.parametrize(
    ("words", "message"),
    thinned(
        [
            (["--preset", "sfp"], "Unknown sweep 'sfp'"),
            (["--preset", "eta-regime-quick"], "expected [sweep.protocols]"),
            (["--config", "absent.toml"], "absent.toml"),
            (["--config", "a.toml", "--preset", "b"], "choose one"),
            (["--data", "absent.csv"], "absent.csv"),
            (["--metric", "recal"], "Unknown metric 'recal'; did you mean 'recall'? One of "),
            (["--rows", "seeds"], "Known: metric, protocol, user_central_epsilon."),
            (["--resume"], "Expected --out DIR with --resume"),
            (["field-quick", "--set", "sweep.protocols.x.name=zz"], "Unknown protocol 'zz'"),
            (["--protocol", "pen"], "Unknown protocol 'pen'; did you mean 'pem'? Known: adaptive"),
            (
                ["--protocol", "pen"],
                "Labels of the list: 'LDP TrieHH, every round'; 'LDP TrieHH, one",
            ),
            (
                ["field-quick", "--as-published"],
                "got preset field-quick, which lists its protocols",
            ),
            (
                ["--protocol", "sfp", "--protocol", "no:Such"],
                "'no:Such' names code: the module 'no'",
            ),
            (["--preset", "eta-regime-quick", "--protocol", "sfp"], "expected [sweep.protocols]"),
        ],
        keep=6,
    ),
)
def test_wrong_comparisons_are_one_line_and_write_nothing(tmp_path, refused, words, message):
    assert message in refused("compare", *words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow(
    "tests/experiments/report/test_comparison.py::test_a_comparison_is_at_the_epsilon_that_is_given"
)
def test_protocols_are_compared_at_one_central_epsilon(command, tmp_path):
    (tmp_path / "two.toml").write_text(
        "[population]\nclients = 4_000\n[protocol]\nmax_items = 1\n[privacy]\ndelta = 1e-6\n"
        '[sweep.protocols.PEM]\nname = "pem"\n[sweep.protocols.central]\nname = "triehh"\n'
    )
    words = ("compare", "--config", "two.toml", "--dry-run", "--format", "json")
    done = command(*words, "--at", "user-central-epsilon=2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    pem, central = json.loads(done.stdout)
    assert pem["user_central_epsilon"] == central["user_central_epsilon"] == 2
    assert pem["privacy.local_epsilon"] > 2
    assert central["privacy.local_epsilon"] is None
    done = command(*words, "--at", "central-epsilon=2", cwd=tmp_path)
    assert done.returncode == 2
    assert "Expected --at item-central-epsilon=E or user-central-epsilon=E" in done.stderr
