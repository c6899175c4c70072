"""What pages show of commands that state privacy is what these commands print, and who is cited."""

from __future__ import annotations

import inspect
import re
import shlex
from pathlib import Path

import pytest

from fedhh.server.registry import PROTOCOLS, protocol_class
from tests.thinned import thinned

DOCS = Path(__file__).parent.parent / "docs"
ROOT = DOCS.parent


def shown(page: str) -> list[tuple[str, list[str]]]:
    """Return the commands of a page with the lines that it quotes of what they print."""
    text = (DOCS / page).read_text(encoding="utf-8")
    quoted: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```console\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            if line.startswith("$ "):
                quoted.append((line.removeprefix("$ "), []))
            else:
                quoted[-1][1].append(line)
    return quoted


QUOTED = [
    each
    for page in (
        "explanation/privacy-attacks.md",
        "howto/choose-epsilon.md",
        "howto/how-many-devices.md",
        "howto/plan-a-deployment.md",
    )
    for each in shown(page)
]


def cases() -> list[object]:
    """Return all quoted commands; guarantees of users take seconds each."""
    return [
        pytest.param(line, quoted, id=line, marks=[pytest.mark.slow] if "user" in line else [])
        for line, quoted in QUOTED
    ]


@pytest.mark.parametrize(("line", "quoted"), thinned(cases()))
def test_numbers_of_a_page_are_what_the_command_prints(
    line: str, quoted: list[str], command, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "100")
    program, *words = shlex.split(line)
    assert program == "fedhh"
    assert quoted
    done = command(*words)
    assert done.returncode == 0, done.stderr
    printed = [" ".join(each.split()) for each in done.stdout.splitlines()]
    for each in quoted:
        start = " ".join(each.split())
        assert any(other.startswith(start) for other in printed), each


def test_every_paper_of_a_protocol_can_be_cited():
    page = (DOCS / "cite.md").read_text(encoding="utf-8")
    titles = {
        " ".join(re.sub(r"[{}]", "", title).lower().split())
        for title in re.findall(r"^ *title *= \{(.*)\},$", page, flags=re.MULTILINE)
    }
    for name in PROTOCOLS:
        source = inspect.getmodule(protocol_class(name)).__doc__.partition("Source: ")[2]
        for title in re.findall(r'"(.*?)"', " ".join(source.split()))[:1]:
            assert title.lower() in titles
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    for key in ("title", "version", "license"):
        (value,) = re.findall(rf'^{key}: "?(.*?)"?$', citation, flags=re.MULTILINE)
        assert re.search(rf"{key} *= \{{{re.escape(value)}\}},", page)
    assert page.count("\n@") == 19
