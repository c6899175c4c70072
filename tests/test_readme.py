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


def quoted_pieces(block: str) -> list[str]:
    """Return what a block quotes, a row of a table or a stretch of text each, in order."""
    pieces, text = [], ""
    for line in [*block.splitlines(), ""]:
        words = " ".join(line.split())
        if words and not re.search(r"\S {2,}\S|^ ", line):
            text = f"{text} {words}".strip()
            continue
        pieces += [each.strip() for each in text.split("...") if each.strip()]
        text = ""
        if words not in ("", "..."):
            pieces.append(words)
    return pieces


def not_printed(block: str, printed: str) -> list[str]:
    """Return the pieces of a block that are not in what was printed, but for spaces and frames."""
    words = " ".join(["", *re.sub(r"[\u2500-\u257f]", " ", printed).split(), ""])
    return [each for each in quoted_pieces(block) if f" {each} " not in words]


def block_of_the_default_run() -> str:
    return README.partition("It prints\n\n```\n")[2].partition("\n```\n")[0]


@pytest.mark.slow("::test_a_last_digit_of_the_default_run_that_differs_is_noticed")
def test_what_the_default_run_prints_is_shown(command, monkeypatch, tmp_path: Path):
    monkeypatch.setenv("COLUMNS", "80")
    done = command("run", "--out", str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) <= 30
    assert not_printed(block_of_the_default_run(), done.stdout) == []


def test_a_last_digit_of_the_default_run_that_differs_is_noticed():
    block = block_of_the_default_run()
    assert len(quoted_pieces(block)) >= 10
    assert not_printed(block, block.replace("...", "and more")) == []
    for number in re.findall(r"[\d,.]*\d", block):
        assert not_printed(block, block.replace(number, f"{number}1")) != [], number


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
