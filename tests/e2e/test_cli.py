"""The command line as its user meets it, in processes of its own."""

from __future__ import annotations

import json
import signal

import pyarrow.parquet as pq
import pytest

from tests.processes import start, wait_until
from tests.thinned import thinned
from tests.waiting import ORACLE, write_waiting

SMALL = ("run", "--preset", "small", "--set", "population.clients=8000", "--workers", "0")


@pytest.mark.slow(
    "tests/experiments/study/test_contract.py::test_of_a_run_and_its_resume_the_second_is_refused"
)
def test_a_run_leaves_what_the_documentation_promises_and_a_second_never_touches_it(command, once):
    mine, seen = once(*SMALL)
    assert "\x1b" not in seen  # plain without a terminal
    assert "coverage" in seen
    assert "Files: mine" in seen
    names = {p.name for p in mine.iterdir()}
    assert names == {
        "config.toml", "result.json", "discoveries.parquet", "discoveries.csv", "layers.parquet",
        "coverage_by_layer.png", "trie_by_layer.png", "estimates.png", "candidates.parquet",
        "votes.parquet", "missed.parquet",
    }  # fmt: skip
    record = json.loads((mine / "result.json").read_text())
    assert record["metrics"]["coverage"] > 0.1
    assert record["fidelity"] == "per-report"
    layers = pq.read_table(mine / "layers.parquet").to_pydict()
    assert layers["layer"] == list(range(1, 13))
    assert sum(layers["num_reports"]) == record["cost"]["reports"]

    before = {p: p.read_bytes() for p in mine.iterdir()}
    second = command(*SMALL, "--out", "mine", cwd=mine.parent)
    assert second.returncode == 2
    assert "mine holds another run" in second.stderr
    finished = command("run", "--resume", "--out", "mine")
    assert finished.returncode == 2
    assert "is finished" in finished.stderr
    assert {p: p.read_bytes() for p in mine.iterdir()} == before


WAITING = (*SMALL, "--trust", "--set", f"protocol.oracle={ORACLE}")


# The other signals are tested on Ray, in test_stopping.py, and in a baseline, in test_compare.py.
@pytest.mark.slow(
    "tests/experiments/run/test_resume.py::test_the_same_run_goes_on_to_the_same_words"
)
@pytest.mark.usefixtures("own_modules")
def test_a_killed_run_goes_on_to_the_same_bits_but_not_as_another(tmp_path, command):
    go = write_waiting(tmp_path, "stopped/log/0.arrays")
    process = start(*WAITING, "--out", "stopped", cwd=tmp_path)
    logged = tmp_path / "stopped" / "log" / "0.arrays"
    wait_until(logged.exists, process)
    process.kill()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    other = command("run", "--resume", "--trust", "--out", "stopped", "--seed", "7", cwd=tmp_path)
    assert other.returncode == 2
    assert "holds another run (differs in: configuration)" in other.stderr
    assert not (tmp_path / "stopped" / "result.json").exists()
    go.touch()
    resumed = command("run", "--resume", "--trust", "--out", "stopped", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    whole = command(*WAITING, "--out", "whole", cwd=tmp_path)
    assert whole.returncode == 0, whole.stderr
    for name in ("discoveries.csv", "layers.parquet"):
        stopped = (tmp_path / "stopped" / name).read_bytes()
        assert stopped == (tmp_path / "whole" / name).read_bytes()
    assert not logged.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    thinned(
        [
            (["--set", "privacy.local_epsilon=0"], "privacy.local_epsilon = 0: expected greater"),
            (["--set", 'population.alphabet="aba"'], "'a' more than once"),
            (["--set", "protocol.etamax=3"], "did you mean 'eta_max'?"),
            (["--set", 'protocol.depth="x"'], 'protocol.depth = "x"'),
            (["--set", "protocol.oracle=zz"], "Unknown oracle 'zz'"),
            (
                ["--set", "simulation.drawn_clients=0"],
                "simulation.drawn_clients = 0: expected an integer >= 1 and <= 1099511627776, "
                'or "all".',
            ),
            (
                ["--set", "population.virtual=3"],
                'population.virtual = 3: expected true or false, or "auto".',
            ),
            (["--data", "absent.csv"], "absent.csv"),
            (["--known", "absent.txt"], "absent.txt"),
            (["--config", "absent.toml"], "absent.toml"),
            (["--preset", "smal"], "did you mean 'small'?"),
            (["--set", "population.clients=5"], "The population has 5 clients"),
            (["--set", "protocol.clients_per_layer=9000"], "clients_per_layer <= 666"),
            (["--resume"], "Expected --out DIR with --resume"),
            (["--resume", "--out", "absent"], "holds no run to resume"),
            (["--out", "full"], "full holds other files"),
            (["--ray-address", "127.0.0.1:1", "--workers", "auto"], "No Ray cluster answers"),
            (
                ["--workers", "x"],
                'execution.workers = "x": expected an integer >= 0, or "auto".',
            ),
            (["--out", "x" * 300], "File name too long; give another --out."),
            (["--data", "x" * 300 + ".csv"], "xxx.csv; check the path."),
            (["--known", "x" * 300], "which does not exist."),
            (["--data", "/dev/zero/x.csv"], "Expected an existing file"),
            (["--set", 'population.alphabet="a\\u0000"'], "without the symbol '\\x00'"),
            (["--seed", "x"], "Invalid value for '--seed'"),
            (["--nonsense"], "No such option: --nonsense"),
        ],
        keep=4,
    ),
)
def test_wrong_input_is_one_line_and_writes_nothing(tmp_path, refused, words, message: str):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("x")
    before = sorted(tmp_path.rglob("*"))
    base = SMALL if not {"--preset", "--config"} & set(words) else ("run",)
    assert message in refused(*base, *words)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.slow(
    "tests/clients/reading/test_sources.py::test_words_and_users_that_look_like_values_stay_text"
)
def test_words_that_look_like_missing_values_are_found(tmp_path, command):
    rows = ["user,word,count"]
    for user in range(4_000):
        rows += [f"{user},{word},2" for word in ("nan", "null", "na", "none", "true")]
    (tmp_path / "odd.csv").write_text("\n".join(rows) + "\n")
    done = command(
        "run", "--data", "odd.csv", "--known", "none", "--workers", "0", "--set",
        "protocol.depth=6", "--set", "protocol.eta_max=50",
        "--set", "baseline=none", "--format", "json", "--out", "mine", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["metrics"]["coverage"] == 1.0
    words = (tmp_path / "mine" / "discoveries.csv").read_text().splitlines()[1:6]
    assert {line.split(",")[0] for line in words} == {"nan", "null", "na", "none", "true"}


@pytest.mark.slow(
    "tests/clients/reading/test_sources.py::test_what_is_written_is_read_back_with_silent_clients"
)
def test_data_commands_hand_their_files_on(tmp_path, command):
    (tmp_path / "said.jsonl").write_text(
        '{"user": "a", "text": "Im off, brb lol"}\n{"user": "b", "text": "LOL! see example.com"}\n'
    )
    assert command("data", "prepare", "said.jsonl", "words.parquet", cwd=tmp_path).returncode == 0
    done = command("data", "describe", "words.parquet", "--format", "json", cwd=tmp_path)
    facts = json.loads(done.stdout)
    assert facts["clients"] == 2
    made = command(
        "data", "synthesize", "--source", "tweet", "--clients", "500", "t.csv.gz", cwd=tmp_path
    )
    assert made.returncode == 0, made.stderr
    facts = json.loads(
        command("data", "describe", "t.csv.gz", "--format", "json", cwd=tmp_path).stdout
    )
    assert facts["clients"] == 500
    assert facts["unknown_token_share"] == 1.0
    assert facts["notes"] == []
    described = command(
        "data", "describe", "words.parquet", "--alphabet", "from-data", cwd=tmp_path
    )
    assert described.returncode == 0, described.stderr
    assert 'An alphabet "from-data" is not private' in described.stdout
    assert "new words typed that can be spelled" in described.stdout


@pytest.mark.slow(
    "tests/experiments/config/test_built_in.py::test_every_preset_says_what_it_does_and_what_it_costs"
)
def test_presets_can_be_listed_shown_and_used(tmp_path, command):
    names = command("presets", "list", cwd=tmp_path).stdout.split()
    assert {"default", "small", "gboard-production"} <= set(names)
    (tmp_path / "mine.toml").write_text(command("presets", "show", "small", cwd=tmp_path).stdout)
    done = command(
        "run", "--config", "mine.toml", "--set", "population.clients=2000", "--out", "o",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
