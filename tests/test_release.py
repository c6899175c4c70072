"""What a release needs: a readme for an index, declared imports, one version everywhere."""

from __future__ import annotations

import ast
import email
import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
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


@pytest.mark.slow("::test_an_undeclared_import_is_seen")
def test_everything_that_the_package_imports_is_declared():
    names = imported_by(ROOT / "fedhh")
    assert "psutil" in names
    assert undeclared(names, PROJECT["dependencies"]) == set()


def test_an_undeclared_import_is_seen():
    without = [each for each in PROJECT["dependencies"] if not each.startswith("scipy")]
    assert undeclared({"numpy", "scipy", "json"}, without) == {"scipy"}


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


# Of what licence a file is that holds no text of fedhh's own, by the end of its name.
NOT_OURS = {
    "words/assets/known_scowl70_en.txt.gz": "LicenseRef-SCOWL",
    "words/assets/SCOWL_COPYRIGHT.txt": "LicenseRef-SCOWL",
    "explorer/assets/explorer.js": "ISC AND MIT",
    "explorer/assets/NOTICE.txt": "ISC AND MIT",
}
OURS = (".py", ".pyi", ".toml", ".css", "py.typed", "population_presets.json", "swear_words_en.txt")
LICENSE = "Apache-2.0 AND LicenseRef-SCOWL AND ISC AND MIT"


def licenses_of(files: list[str]) -> set[str]:
    """Return the licences of some files of the package, each of which is one that we know."""
    found = {"Apache-2.0"}
    for name in files:
        if not name.endswith(OURS):
            (of,) = (of for end, of in NOT_OURS.items() if name.endswith(end))
            found |= set(of.split(" AND "))
    return found


def test_the_package_holds_nothing_under_another_license():
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    patterns = setuptools["setuptools"]["package-data"]["fedhh"]
    package = ROOT / "fedhh"
    files = {str(path) for pattern in patterns for path in package.glob(pattern)}
    assert licenses_of(sorted(files)) == set(LICENSE.split(" AND "))
    assert PROJECT["license"] == LICENSE
    notices = [ROOT / name for name in PROJECT["license-files"]]
    assert all(path.is_file() for path in notices)
    assert licenses_of([str(path) for path in notices if path.name != "LICENSE"]) == set(
        LICENSE.split(" AND ")
    )


def test_a_file_that_nobody_knows_is_seen():
    with pytest.raises(ValueError, match="not enough values"):
        licenses_of(["fedhh/words/assets/known_xx.txt.gz"])


@pytest.mark.slow("::test_the_package_holds_nothing_under_another_license")
def test_the_wheel_names_no_copyleft_and_holds_no_file_of_one(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "fedhh", source / "fedhh", ignore=shutil.ignore_patterns("__pycache__"))
    # With the build system that pyproject.toml asks for, which may be newer than ours.
    words = ["wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(source)]
    done = subprocess.run(
        [sys.executable, "-m", "pip", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    (built,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(built) as wheel:
        names = wheel.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        about = email.message_from_bytes(wheel.read(metadata))
    assert about["License-Expression"] == LICENSE
    assert about.get_all("License-File") == PROJECT["license-files"]
    package = [name for name in names if name.startswith("fedhh/")]
    assert len(package) > 100
    assert licenses_of(package) == set(LICENSE.split(" AND "))
    assert not [name for name in names if "known_" in name and name.endswith(".gz")][1:]
