"""Consoles, the only ones of the command line: nothing that is printed is taken for markup."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from fedhh.cli.line_width import says_width
from fedhh.cli.safe_text import safe_text
from fedhh.cli.table_widths import WIDEST, set_widths


class SafeConsole(Console):
    """Shows strings as they are: no markup, no emoji codes, no control characters.

    Also those in tables. What is styled is an object of rich, whose text its maker makes safe.
    A table that does not fit is wider than the console: neither heads nor numbers are cut.
    """

    def __init__(
        self,
        *,
        stderr: bool = False,
        width: int | None = None,
        whole_tables: bool = False,
        **options: Any,
    ) -> None:
        """Write to standard output or standard error.

        Args:
            stderr: Whether to standard error.
            width: In cells; that of the terminal, of COLUMNS, or 80 if None.
            whole_tables: Print tables as wide as they are, whatever the width.
            options: Of rich's console.
        """
        super().__init__(
            stderr=stderr, width=width, markup=False, emoji=False, highlight=False, **options
        )
        self._whole_tables = whole_tables

    @property
    def room(self) -> int:
        """Cells that a table may take in a line."""
        return WIDEST if self._whole_tables else self.width

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as rich does, tables with nothing cut."""
        shown = [
            _Fitted(each, set_widths(each, self, self.room)) if isinstance(each, Table) else each
            for each in objects
        ]
        if any(isinstance(each, _Fitted) for each in shown):
            options["crop"] = False
        super().print(*shown, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a string as text; line breaks are the program's own."""
        return super().render_str(safe_text(text, longest=None, keep="\n"), **options)


@dataclass(frozen=True)
class _Fitted:
    """A table whose columns have their widths, and its own, which may exceed the console's."""

    table: Table
    width: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from console.render(self.table, options.update(width=self.width))


def open_console(*, stderr: bool = False, width_unless_terminal: int | None = None) -> SafeConsole:
    """Return a console, as wide as its terminal, or else as the environment's COLUMNS says.

    Args:
        stderr: Whether it writes to standard error.
        width_unless_terminal: Where neither says how wide, texts wrap at this width in cells, and
            tables are printed whole; 80 cells for both if None.
    """
    console = SafeConsole(stderr=stderr)
    if width_unless_terminal is None or console.is_terminal or says_width():
        return console
    return SafeConsole(stderr=stderr, width=width_unless_terminal, whole_tables=True)


def print_line(console: Console, line: str) -> None:
    """Print a line that no width breaks: with a path, say, which is to be copied."""
    console.print(line, soft_wrap=True)


def print_wrapped(console: Console, line: str, *, style: str = "") -> None:
    """Print a whole line, broken at blanks to the console's width."""
    console.print(safe_text(line, longest=None), style=style)


def print_written(path: Path, note: str = "") -> None:
    """Print that a file has been written."""
    print_line(open_console(), f"Wrote {safe_text(path, longest=None)}{note}")


def print_directory(directory: Path) -> None:
    """Print a directory alone; as it is where a program reads it."""
    text = str(directory)
    sys.stdout.write(f"{safe_text(text, longest=None) if sys.stdout.isatty() else text}\n")


def print_json(content: Any) -> None:
    """Print one JSON value to standard output, whatever its width."""
    text = json.dumps(content, indent=2, allow_nan=False)
    # Of all that a terminal acts on, JSON leaves this one alone.
    sys.stdout.write(text.replace("\x7f", "\\u007f") + "\n")
