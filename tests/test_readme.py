"""What the README shows is true: its code runs, its commands and files exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from fedhh.cli.app import app
from fedhh.experiments.config.built_in import preset_names

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)


def test_the_python_example_runs(capsys):
    (code,) = blocks("python")
    names: dict[str, object] = {}
    exec(code, names)
    out = capsys.readouterr().out
    assert "lol" in out
    assert "coverage" in out
    assert names["figure"].axes  # type: ignore[attr-defined]
    assert len(code.strip().splitlines()) < 15


def commands() -> list[list[str]]:
    lines = [line.split("#")[0].strip() for block in blocks("sh") for line in block.splitlines()]
    lines += re.findall(r"`(fedhh [^`]+)`", README)  # of its tables and sentences
    words = [shlex.split(line) for line in lines]
    return [w[1:] for w in words if w and w[0].endswith("fedhh")]


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_command_exists_with_its_options(words: list[str], capsys):
    options = {word for word in words if word.startswith("--")}
    path = [word for word in words[:2] if re.fullmatch(r"[a-z]+", word)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "200")
        app([*path, "--help"], standalone_mode=False)
    shown = capsys.readouterr().out
    assert all(option in shown for option in options)


def test_presets_and_files_that_are_named_exist():
    assert {"default", "small"} <= set(preset_names())
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (Path(__file__).parent.parent / target).exists(), target
