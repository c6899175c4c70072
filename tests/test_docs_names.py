"""What pages name is there: members of a protocol, commands; and what they show is Python."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

from fedhh.cli.app import app
from fedhh.protocol import DiscoveryProtocol

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *DOCS.rglob("*.md")]


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def test_members_of_a_protocol_that_pages_name_are_members():
    table = page("tutorials/own-protocol.md")
    members = re.findall(r"^\| `(\w+)(?:\(.*?\))?` \|", table, flags=re.MULTILINE)
    assert len(members) == 4
    members += re.findall(r"`self\.(\w+)", page("extending.md"))
    assert [each for each in members if not hasattr(DiscoveryProtocol, each)] == []


def test_commands_that_a_sentence_names_after_another_exist():
    of_top = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    missing = []
    for path in PAGES:
        for group, first, others in re.findall(
            r"`fedhh (?:([a-z]+) )?([a-z]+)`((?:(?:,| and| or)\s+`[a-z][a-z-]*`)+)",
            path.read_text(encoding="utf-8"),
        ):
            known = of_top[group].commands if group else of_top
            for each in (first, *re.findall(r"`(.+?)`", others)):
                if each not in known:
                    missing.append((path.name, group, each))
    assert missing == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_python_of_a_page_is_python(path: Path):
    text = path.read_text(encoding="utf-8")
    for block in re.findall(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE):
        compile(block, path.name, "exec", dont_inherit=True)
