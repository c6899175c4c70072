"""What a release needs: a readme for an index, declared imports, one version everywhere."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import fedhh

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def readme_for_index(text: str) -> str:
    spec = importlib.util.spec_from_file_location("fedhh_setup", ROOT / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.readme_for_index(text)


def distribution(requirement: str) -> str:
    return re.split(r"[<>=\[ ;]", requirement)[0].lower().replace("_", "-")


def imported_by(folder: Path) -> set[str]:
    """Top-level names of everything that is imported, also inside functions."""
    names: set[str] = set()
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names.add((node.module or "").split(".")[0])
    return names


def undeclared(names: set[str], requirements: list[str]) -> set[str]:
    known = packages_distributions()
    declared = {distribution(requirement) for requirement in requirements}
    return {
        name
        for name in names - sys.stdlib_module_names - {"fedhh"}
        if not declared & {distribution(each) for each in known.get(name, [name])}
    }


@pytest.mark.slow("::test_the_readme_for_an_index_has_no_relative_link")
def test_everything_that_the_package_imports_is_declared():
    names = imported_by(ROOT / "fedhh")
    assert "psutil" in names
    assert undeclared(names, PROJECT["dependencies"]) == set()


@pytest.mark.slow("::test_the_readme_for_an_index_has_no_relative_link")
def test_an_undeclared_import_is_seen():
    without = [each for each in PROJECT["dependencies"] if not each.startswith("scipy")]
    assert undeclared({"numpy", "scipy", "json"}, without) == {"scipy"}


@pytest.mark.slow("::test_the_readme_for_an_index_has_no_relative_link")
def test_links_within_the_source_become_text_and_links_to_the_web_stay():
    text = "# Name\n\n[here](docs/a.md#b), [docs/a.md](docs/a.md), [web](https://x.org).\n\n![P](p.png)"
    _, shown = readme_for_index(text).split("install.\n\n")
    assert shown == (
        "here (`docs/a.md#b`), `docs/a.md`, [web](https://x.org).\n\n*Figure: P (`p.png`).*"
    )


def test_the_readme_for_an_index_has_no_relative_link():
    text = readme_for_index((ROOT / "README.md").read_text(encoding="utf-8"))
    assert text.startswith("# fedhh\n")
    assert re.findall(r"\]\((?!https?://)[^)]*\)", text) == []
    assert "docs/figures/estimates.png" in text


@pytest.mark.parametrize("file", ["CHANGELOG.md", "CITATION.cff"])
def test_the_version_is_named(file: str):
    assert PROJECT["dynamic"] == ["version", "readme"]
    assert re.search(rf"\b{re.escape(fedhh.__version__)}\b", (ROOT / file).read_text("utf-8"))
