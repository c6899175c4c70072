"""What the README shows is true: its code runs, its files exist; and all commands of all pages."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from fedhh.cli.app import app
from fedhh.experiments.config.built_in import preset_names
from tests.thinned import thinned

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.slow("::test_presets_and_files_that_are_named_exist")
def test_the_python_example_runs(capsys):
    (code,) = blocks("python")
    names: dict[str, object] = {}
    exec(code, names)
    out = capsys.readouterr().out
    assert "lol" in out
    assert "coverage" in out
    assert names["figure"].axes  # type: ignore[attr-defined]
    assert len(code.strip().splitlines()) < 15


def command_lines() -> list[str]:
    """Return the commands of all pages, and of the README's tables and sentences."""
    pages = [README, *(page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.md"))]
    lines = [
        line.split(" #")[0].strip().removeprefix(".venv/bin/")
        for page in pages
        for block in re.findall(r"^```sh\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)
        for line in block.replace("\\\n", " ").splitlines()
    ]
    lines += re.findall(r"`(fedhh [^`]+)`", README)
    return sorted({line for line in lines if line.startswith("fedhh ")})


@pytest.mark.parametrize("line", thinned(command_lines()))
def test_every_command_exists_with_its_options(line: str, capsys, monkeypatch):
    words = shlex.split(line)[1:]
    path = [word for word in words[:2] if re.fullmatch(r"[a-z][a-z-]*", word)]
    monkeypatch.setenv("COLUMNS", "200")
    app([*path, "--help"], standalone_mode=False)
    shown = capsys.readouterr().out
    assert all(word in shown for word in words if word.startswith("--"))


def test_presets_and_files_that_are_named_exist():
    assert {"default", "small"} <= set(preset_names())
    for target in re.findall(r"\]\(([^)#:]+)[)#]", README):
        assert (ROOT / target).exists(), target
