"""`python -m papers`, as the user of the command line meets it."""

from __future__ import annotations

import json
from functools import partial

import pytest

from papers.__main__ import app
from papers.registry import PAPERS


@pytest.fixture
def papers(command):
    """The papers' command in this process."""
    return partial(command, commands=app)


def test_without_a_name_all_names_are_printed_with_a_line_each(papers, tmp_path):
    done = papers(cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    usage, *lines = done.stdout.splitlines()
    assert usage.startswith("python -m papers NAME ")
    assert usage.endswith(f": {', '.join(PAPERS)}.")
    assert [line.split()[0] for line in lines] == list(PAPERS)
    assert all(each.line in line for line, each in zip(lines, PAPERS.values(), strict=True))
    names = json.loads(papers("--format", "json", cwd=tmp_path).stdout)
    assert [each["name"] for each in names] == list(PAPERS)
    assert list(tmp_path.iterdir()) == []


def test_a_paper_leaves_its_files_and_prints_its_findings(papers, tmp_path):
    done = papers("triehh-batch", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1,781,400 clients: the formula gives 39,152.79" in done.stdout
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "results.csv", "summary.csv", "summary.md",
    }  # fmt: skip
    text = (tmp_path / "out" / "summary.md").read_text()
    assert "Made by `python -m papers triehh-batch`." in text
    record = json.loads(
        papers("triehh-batch", "--out", "b", "--format", "json", cwd=tmp_path).stdout
    )
    assert [each["sample"] for each in record["records"]] == [39_152, 14_286, 2_721_656]
    quiet = papers("triehh-batch", "-q", "--out", "c", cwd=tmp_path)
    assert (quiet.stdout, quiet.stderr) == ("c\n", "")


def test_a_wrong_paper_is_one_line_and_writes_nothing(papers, tmp_path):
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "file").touch()
    for words, message in (
        (["pme"], "did you mean 'pem'"),
        (["pem", "--seed", "-1"], "seed=-1"),
        (["pem", "--out", "used"], "used holds other files"),
        (["pem", "--data", "missing.gz"], "Expected an existing file, got missing.gz"),
        (["pem", "--data", "used/file"], "got 0 and 0 in used/file; the published log is"),
        (["rappor", "--data", "used/file"], "Expected no data for rappor, got used/file; only pem"),
    ):
        done = papers(*words, cwd=tmp_path)
        assert done.returncode == 2
        assert done.stderr.startswith("Error: ")
        assert done.stderr.count("\n") == 1
        assert message in done.stderr
        assert done.stdout == ""
    assert [path.name for path in tmp_path.iterdir()] == ["used"]


def test_the_command_of_fedhh_that_was_says_the_new_one(command, tmp_path):
    done = command("paper", "pem", "--quick", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "python -m papers NAME" in done.stderr
