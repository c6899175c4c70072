"""What holds for the directories of every kind: who may write them, resume them, and show them."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from fedhh.experiments.run import directory as run
from fedhh.experiments.study.kinds import KINDS, find
from fedhh.experiments.study.request import Request
from fedhh.experiments.study.source import load_source, open_study
from fedhh.experiments.sweep import directory as sweep
from fedhh.longitudinal.pipeline import directory as pipeline
from fedhh.longitudinal.repeated import directory as repeated
from fedhh.system.files import owned
from fedhh.validation import InputError
from tests.fuzz.work import MONTHS, PIPELINE, RUN, SWEEP, call
from tests.thinned import thinned

COMPARISON = '[sweep.protocols]\nTrieHH = { name = "ldp-triehh" }\nPEM = { name = "pem" }\n'
TEXTS = {
    "run": RUN,
    "sweep": RUN + SWEEP,
    "comparison": RUN + COMPARISON,
    "pipeline": PIPELINE,
    "repeated-collection": RUN + MONTHS,
}
pytestmark = pytest.mark.usefixtures("undrawn")

UNFINISHED = {
    "run": ("result.json",),
    "sweep": ("results.parquet", "cells"),
    "comparison": ("results.parquet", "cells"),
    "pipeline": ("result.json",),
    "repeated-collection": ("result.json", "periods"),
}
"""What is taken away, so that there is something left to do."""

OWN = {"results.csv", "days.csv", "published.csv", "discoveries.csv"}
"""Files with the results and nothing of the clock."""


def test_every_kind_is_here():
    assert TEXTS.keys() == KINDS.keys()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kinds")


@pytest.fixture(params=[*TEXTS])
def kind(request: pytest.FixtureRequest) -> str:
    word: str = request.param
    return word


one_by_default = pytest.mark.parametrize("kind", thinned(TEXTS))
"""A run; the other kinds go on, and are shown, by the same code."""


@pytest.fixture
def file(home: Path, kind: str) -> Path:
    path = home / f"{kind}.toml"
    path.write_text(TEXTS[kind])
    return path


@pytest.fixture
def finished(home: Path, kind: str, file: Path) -> Path:
    directory = home / kind
    if not directory.exists():
        call("run", file, "--out", directory, "-q")
    return directory


def results(directory: Path) -> dict[str, bytes]:
    return {name: (directory / name).read_bytes() for name in OWN if (directory / name).exists()}


def test_a_file_says_its_kind_and_a_dry_run_makes_nothing(
    kind: str, file: Path, tmp_path: Path, monkeypatch, capsys
):
    assert load_source(Request(source=file)).kind == kind
    monkeypatch.chdir(tmp_path)
    call("run", file, "--dry-run")
    assert capsys.readouterr().out
    call("run", file, "--dry-run", "--format", "json")
    assert json.loads(capsys.readouterr().out)
    assert not list(tmp_path.iterdir())


def begun(kind: str, file: Path, directory: Path) -> None:
    """Make the directory of what was stopped before it had any result."""
    study: Any = open_study(Request(source=file))[1]
    if kind == "run":
        run.new_directory(study.configs[0], directory, name=kind)
    elif kind == "pipeline":
        pipeline.make_directory(study.config, directory, name=kind)
    elif kind == "repeated-collection":
        repeated.open_directory(directory, study.collection, resume=False)
    else:
        sweep.open_directory(directory, study.sweep, resume=False)


def test_of_two_who_resume_the_second_is_refused(kind: str, file: Path, tmp_path: Path):
    directory = tmp_path / kind
    begun(kind, file, directory)
    before = sorted(directory.rglob("*"))
    said = f"{directory} belongs to a command that is still running; wait"
    with owned(directory), pytest.raises(InputError, match=re.escape(said)):
        call("run", "--resume", "--out", directory, "-q")
    assert sorted(directory.rglob("*")) == before


@pytest.mark.parametrize("kind", ["run"])
def test_of_a_run_and_its_resume_the_second_is_refused(
    kind: str, file: Path, tmp_path: Path, monkeypatch
):
    directory = tmp_path / kind

    def resume(*_: object) -> None:
        call("run", "--resume", "--out", directory, "-q")

    monkeypatch.setattr("fedhh.experiments.run.directory.write_result", resume)
    with pytest.raises(InputError, match="belongs to a command that is still running"):
        call("run", file, "--out", directory, "-q")


@one_by_default
def test_a_finished_directory_is_shown_drawn_and_told(finished: Path, tmp_path: Path, capsys):
    call("show", finished)
    assert "Files: " in capsys.readouterr().out
    call("plot", finished, "--out", tmp_path)
    assert list(tmp_path.glob("*.svg"))
    call("report", finished, "--out", tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")


@one_by_default
def test_a_used_directory_is_taken_by_nobody_else(kind: str, finished: Path, file: Path):
    before = sorted(finished.rglob("*"))
    with pytest.raises(InputError, match=r"holds (another run|other files); give another --out"):
        call("run", file, "--out", finished)
    if kind in {"run", "pipeline"}:  # Others make their tables again.
        with pytest.raises(InputError, match="is finished; there is nothing to resume"):
            call("run", "--resume", "--out", finished)
    assert sorted(finished.rglob("*")) == before


@one_by_default
def test_a_resume_gives_the_same_bits_with_and_without_its_source(
    kind: str, finished: Path, file: Path, tmp_path: Path
):
    whole = results(finished)
    assert whole
    for number, source in enumerate(([], [file])):
        stopped = tmp_path / str(number)
        shutil.copytree(finished, stopped)
        for name in UNFINISHED[kind]:
            place = stopped / name
            if place.is_dir():
                sorted(place.iterdir())[-1].unlink()
            else:
                place.unlink()
        call("run", *source, "--resume", "--out", stopped, "-q")
        assert results(stopped) == whole


@one_by_default
def test_a_resume_with_other_settings_is_refused(
    kind: str, finished: Path, file: Path, tmp_path: Path
):
    stopped = tmp_path / "stopped"
    shutil.copytree(finished, stopped)
    (stopped / "result.json").unlink(missing_ok=True)
    noun = "sweep" if kind == "comparison" else find(kind).noun
    for source in ([], [file]):
        with pytest.raises(InputError, match=rf"holds another {noun} \(differs in: configuration"):
            call("run", *source, "--resume", "--out", stopped, "--seed", "7")
    with pytest.raises(InputError, match=r"holds no .* to resume"):
        call("run", "--resume", "--out", tmp_path / "absent")
    with pytest.raises(InputError, match="Expected --out DIR with --resume"):
        call("run", file, "--resume")


def test_what_cannot_run_is_refused_before_anything_is_made(kind: str, file: Path, tmp_path: Path):
    with pytest.raises(InputError, match="nonsense"):
        open_study(Request(source=file, settings=["nonsense.key=1"], out=tmp_path / "out"))
    others = {word: entry for word, entry in KINDS.items() if entry.section and word != kind}
    if kind == "pipeline":
        for word in others:
            with pytest.raises(InputError, match="of the kind pipeline, expected a"):
                load_source(Request(source=file), kind=word)
    assert not list(tmp_path.iterdir())
