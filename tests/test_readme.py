"""What the README shows is true: its code runs, its files exist; for its commands see test_docs.py."""

from __future__ import annotations

import re
from pathlib import Path

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


def test_presets_and_files_that_are_named_exist():
    assert {"default", "small"} <= set(preset_names())
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (Path(__file__).parent.parent / target).exists(), target
