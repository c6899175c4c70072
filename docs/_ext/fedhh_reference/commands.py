"""The page of commands, from the command line's own description of itself."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import typer

from fedhh.cli.app import app
from fedhh_reference.markdown import code, table

_INTRODUCTION = """# Commands

`fedhh COMMAND --help` says the same. Exit codes: 0 done, 1 failed, 2 wrong input, 130 interrupted
(what is finished is kept).

"""


def page() -> str:
    """Return the page."""
    parts = [_INTRODUCTION]
    for path, command in commands(typer.main.get_command(app), "fedhh"):
        parts.append(_section(path, command))
    return "".join(parts)


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield every command that does something, with the words that call it."""
    inner = getattr(command, "commands", None)
    if inner is None:
        if not command.hidden:
            yield path, command
        return
    for name, each in inner.items():
        yield from commands(each, f"{path} {name}")


def parameters(command: Any) -> Iterator[tuple[str, str, str, str]]:
    """Yield names, what is expected, default and meaning of each argument and option."""
    kinds = get_type_hints(inspect.unwrap(command.callback))
    for parameter in command.params:
        if getattr(parameter, "hidden", False) or parameter.name not in kinds:
            continue
        is_argument = parameter.param_type_name == "argument"
        names = [parameter.name.upper()] if is_argument else parameter.opts
        expected = expectation(kinds[parameter.name])
        if parameter.multiple:
            expected += ", repeatable"
        default = getattr(parameter.default, "value", parameter.default)
        shown = "" if default is None or default is False or callable(default) else code(default)
        yield (
            ", ".join(map(code, [*names, *getattr(parameter, "secondary_opts", ())])),
            expected,
            "required" if parameter.required else shown,
            _plain(getattr(parameter, "help", "") or ""),
        )


def expectation(kind: Any) -> str:
    """Return what a parameter of a type takes."""
    if get_origin(kind) in {Union, UnionType}:
        return " or ".join(expectation(each) for each in get_args(kind) if each is not type(None))
    if get_origin(kind) is list:
        return expectation(get_args(kind)[0])
    if isinstance(kind, type) and issubclass(kind, Enum):
        return ", ".join(code(member.value) for member in kind)
    names = {bool: "flag", int: "integer", float: "number", str: "text", Path: "path"}
    return names[kind]


def _section(path: str, command: Any) -> str:
    text = _plain(command.help or "")
    about, _, example = text.partition("Example: ")
    rows = list(parameters(command))
    parts = [f"## {path}\n\n{about.strip()}\n\n"]
    if rows:
        parts.append(table(("option", "value", "default", "meaning"), rows) + "\n")
    if example:
        parts.append(f"```sh\n{example.strip()}\n```\n\n")
    return "".join(parts)


def _plain(text: str) -> str:
    """Return help text without the markup of the terminal's."""
    return re.sub(r"\\(?=\[)", "", text.replace("\f", "").replace("\b", "")).strip()
