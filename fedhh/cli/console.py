"""Consoles, the only ones of the command line: nothing that is printed is taken for markup."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from fedhh.cli.safe_text import safe_text


class SafeConsole(Console):
    """Shows strings as they are: no markup, no emoji codes, no control characters.

    Also those in tables. What is styled is an object of rich, whose text its maker makes safe.
    """

    def __init__(self, *, stderr: bool = False, width: int | None = None, **options: Any) -> None:
        """Write to standard output or standard error."""
        super().__init__(
            stderr=stderr, width=width, markup=False, emoji=False, highlight=False, **options
        )

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a string as text; line breaks are the program's own."""
        return super().render_str(safe_text(text, longest=None, keep="\n"), **options)


def open_console(*, stderr: bool = False, width_unless_terminal: int | None = None) -> SafeConsole:
    """Return a console, perhaps wider than usual where no terminal says how wide it is."""
    console = SafeConsole(stderr=stderr)
    if width_unless_terminal is None or console.is_terminal:
        return console
    return SafeConsole(stderr=stderr, width=width_unless_terminal)


def print_line(console: Console, line: str) -> None:
    """Print a line that no width breaks: with a path, say, which is to be copied."""
    console.print(line, soft_wrap=True)


def print_written(path: Path, note: str = "") -> None:
    """Print that a file has been written."""
    print_line(open_console(), f"Wrote {safe_text(path, longest=None)}{note}")


def quoted_path(path: Path) -> str:
    """Return a path as a shell takes it, safe to print."""
    return safe_text(shlex.quote(str(path)), longest=None)


def print_places(console: Console, directory: Path) -> None:
    """Print where a result's files are, and how to see all of it."""
    quoted = quoted_path(directory)
    print_line(console, f"Files: {safe_text(directory, longest=None)}")
    print_line(console, f"All tables: fedhh show {quoted}")
    print_line(console, f"A page to explore: fedhh report {quoted}")


def print_directory(directory: Path) -> None:
    """Print a directory alone; as it is where a program reads it."""
    text = str(directory)
    sys.stdout.write(f"{safe_text(text, longest=None) if sys.stdout.isatty() else text}\n")


def print_json(content: Any) -> None:
    """Print one JSON value to standard output, whatever its width."""
    text = json.dumps(content, indent=2, allow_nan=False)
    # Of all that a terminal acts on, JSON leaves this one alone.
    sys.stdout.write(text.replace("\x7f", "\\u007f") + "\n")
