"""What pages show of commands that state privacy is what these commands print, and who is cited."""

from __future__ import annotations

import inspect
import re
import shlex
from pathlib import Path

import attacks
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


PAGES = (
    "explanation/privacy-attacks.md",
    "howto/choose-epsilon.md",
    "howto/how-many-devices.md",
    "howto/plan-a-deployment.md",
)
QUOTED = [each for page in PAGES for each in shown(page)]


def cases() -> list[object]:
    """Return all quoted commands; guarantees of users and attacks take seconds each."""
    return [
        pytest.param(
            line,
            quoted,
            id=line,
            marks=[pytest.mark.slow] if "user" in line or "attacks.py" in line else [],
        )
        for line, quoted in QUOTED
    ]


@pytest.mark.parametrize(("line", "quoted"), thinned(cases()))
def test_numbers_of_a_page_are_what_the_command_prints(
    line: str, quoted: list[str], command, monkeypatch, capfd
):
    monkeypatch.setenv("COLUMNS", "100")
    program, *words = shlex.split(line)
    assert quoted
    if program == "python":
        assert words.pop(0) == "examples/privacy-attacks/attacks.py"
        assert attacks.main(words) == 0
        output = capfd.readouterr().out
    else:
        assert program == "fedhh"
        done = command(*words)
        assert done.returncode == 0, done.stderr
        output = done.stdout
    printed = [" ".join(each.split()) for each in output.splitlines()]
    for each in quoted:
        start = " ".join(each.split())
        assert any(other.startswith(start) for other in printed), each


@pytest.mark.parametrize("page", PAGES)
def test_numbers_in_prose_before_a_block_are_those_of_the_block(page: str):
    text = (DOCS / page).read_text(encoding="utf-8")
    for prose, block in re.findall(
        r"([^\n`|#]+(?:\n[^\n`|#]+)*)\n\n```console\n(.*?)^```$",
        text,
        flags=re.DOTALL | re.MULTILINE,
    ):
        in_block = {
            float(each.replace(",", "")) for each in re.findall(r"\d[\d,]*(?:\.\d+)?", block)
        }
        for number in re.findall(r"\d{1,3}(?:,\d{3})+", prose):
            assert float(number.replace(",", "")) in in_block, (page, number)
        for number in re.findall(r"(\d+(?:\.\d+)?) million", prose):
            digits = len(number.partition(".")[2])
            assert float(number) in {round(each / 1e6, digits) for each in in_block}, (page, number)


def test_one_contribution_takes_an_eighth_of_the_devices():
    ten, one = (
        int(quoted[0].partition(" ")[0].replace(",", ""))
        for line, quoted in shown("howto/how-many-devices.md")
        if "--unit user --local-epsilon 8" in line
    )
    assert round(ten / one) == 8
    assert "an eighth of them" in (DOCS / "howto/how-many-devices.md").read_text(encoding="utf-8")


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
    assert page.count("\n@") == 20
