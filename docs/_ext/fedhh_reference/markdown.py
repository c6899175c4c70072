"""Small pieces of Markdown, and what docstrings say, made fit for it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from typing import Any


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; cells are one line of Markdown each."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def code(text: Any) -> str:
    """Return text as code, also if it holds back-ticks."""
    fence = "``" if "`" in str(text) else "`"
    return f"{fence}{text}{fence}"


def prose(text: str) -> str:
    """Return a docstring's text as Markdown: double back-ticks become single ones."""
    return " ".join(re.sub(r"``(.+?)``", r"`\1`", text).split())


def first_line(kind: Any) -> str:
    """Return the first line of a docstring."""
    return prose((inspect.getdoc(kind) or "").partition("\n\n")[0])


def entries(docstring: str | None, section: str = "Attributes") -> dict[str, str]:
    """Return what a section of a Google-style docstring says, by name."""
    _, _, after = inspect.cleandoc(docstring or "").partition(f"\n{section}:\n")
    block = re.split(r"\n(?=\S)", after, maxsplit=1)[0]
    found = re.findall(r"^ {4}(\w+): (.*(?:\n {5,}.*)*)", block, re.MULTILINE)
    return {name: prose(text) for name, text in found}


def _cell(text: str) -> str:
    return text.replace("\n", " ").replace("|", "\\|")
