"""What a command has left: its directory, or a file of it, and what is printed of it."""

from __future__ import annotations

import os
from pathlib import Path

from fedhh.cli.console import open_console, print_line
from fedhh.cli.options import Format
from fedhh.cli.safe_text import safe_text
from fedhh.cli.text_tables import print_result
from fedhh.experiments.study.kinds import Asked, Kind, kind_of


def directory_of(path: Path) -> Path:
    """Return a directory, given itself or a file of what is finished in it."""
    if os.path.isfile(path) and kind_of(path.parent) is not None:
        return path.parent
    return path


def print_finished(
    directory: Path, kind: Kind, asked: Asked | None = None, how: Format = Format.TABLE
) -> None:
    """Print all of what is finished in a directory, from its files; tables say where they are.

    Raises:
        InputError: A file is missing or damaged.
    """
    asked = asked or Asked()
    console = open_console(width_unless_terminal=kind.width)
    parts = kind.parts(directory, asked)
    print_result(how, lambda: kind.record(directory, asked), parts, console=console)
    if how is not Format.TABLE:
        return
    print_line(console, f"Files: {safe_text(directory, longest=None)}")
    for line in kind.closing_lines(directory):
        print_line(console, safe_text(line, longest=None))
