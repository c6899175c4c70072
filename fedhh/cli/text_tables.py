"""Prints results in every format: tables and what stands between them, and nothing cut to fit."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from fedhh.cli.console import SafeConsole, open_console, print_json, print_wrapped, print_written
from fedhh.cli.options import Format
from fedhh.cli.safe_text import LONGEST_LINE, safe_text
from fedhh.cli.table_widths import WIDEST
from fedhh.experiments.study.parts import Columns, Facts, Line, Part
from fedhh.experiments.study.plain_text import markdown_paragraph
from fedhh.experiments.study.text_table import TextTable

# Around the text of a column: a space on both sides, and a line.
_AROUND = 3
_WIDTH = 132


def print_result(
    how: str,
    record: Callable[[], Any],
    parts: Iterable[Part],
    *,
    console: SafeConsole | None = None,
    figure: Path | None = None,
) -> None:
    """Print a result in the format that was asked for.

    Args:
        how: A value of `Format`.
        record: Returns the result as JSON values; called for JSON only.
        parts: What is shown of it. CSV and LaTeX are its tables alone, an empty line between two.
        console: Of a terminal's tables; standard output if None.
        figure: A file that was drawn, which a terminal's tables say.
    """
    if how == Format.JSON:
        print_json(record())
    elif how == Format.TABLE:
        print_parts(console or open_console(), parts)
        if figure is not None:
            print_written(figure)
    else:
        text = "\n".join(
            _rendered(part, how)
            for part in parts
            if how == Format.MARKDOWN or not isinstance(part, Line)
        )
        # A program gets labels as they are, a terminal nothing that it would act on.
        safe = safe_text(text, longest=None, keep="\n") if sys.stdout.isatty() else text
        sys.stdout.write(safe)


def print_parts(console: SafeConsole, parts: Iterable[Part]) -> None:
    """Print what is shown of an experiment, in its order."""
    for part in parts:
        match part:
            case Facts():
                _print_facts(console, part)
            case Line():
                _print_text(console, part)
            case Columns():
                _print_columns(console, part)
            case _:
                print_table(console, part)


def _rendered(part: Part, how: str) -> str:
    match part:
        case Line():
            text = markdown_paragraph(part.text)
        case TextTable():
            text = part.render(how)
        case _:
            heads = ("what", "value", "note") if isinstance(part, Facts) else tuple(part.heads)
            title = part.title if isinstance(part, Facts) else ""
            rows = tuple(tuple(row) for row in part.rows)
            text = TextTable(title=title, columns=heads, rows=rows, note="").render(how)
    return text.rstrip("\n") + "\n"


def _print_facts(console: SafeConsole, facts: Facts) -> None:
    table = Table(title=safe_text(facts.title), show_header=False, title_justify="left")
    table.add_column("what", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("note", style="dim")
    for row in facts.rows:
        table.add_row(*row)
    console.print(table)


def _print_columns(console: SafeConsole, columns: Columns) -> None:
    heads, rows = list(columns.heads), [list(row) for row in columns.rows]
    widths = [_width(heads, rows, number) for number in range(len(heads))]
    gap = 2 if sum(widths) + 2 * (len(widths) - 1) <= console.width else 1
    table = Table(box=None, padding=(0, gap, 0, 0), show_edge=False, pad_edge=False)
    for number, head in enumerate(heads):
        if number == columns.label:
            least = min(widths[number], console.width // 2)
            table.add_column(head, overflow="fold", min_width=least)
        else:
            table.add_column(head, justify="right")
    for row in rows:
        table.add_row(*map(safe_text, row))
    console.print(table)


def _print_text(console: SafeConsole, line: Line) -> None:
    longest = None if line.is_whole else LONGEST_LINE
    text = Text(safe_text(line.text, longest=longest), style=line.style)
    shown = Padding(text, (0, 0, 0, line.indent)) if line.indent else text
    console.print(shown, soft_wrap=line.is_whole)


def print_table(console: SafeConsole, table: TextTable) -> None:
    """Print a table of text, and below it what the numbers are.

    Columns that do not fit next to the others follow in a table of their own, with the same labels.
    """
    heads = [safe_text(column) for column in table.columns]
    rows = [[safe_text(cell) for cell in row] for row in table.rows]
    title = safe_text(table.title) or None
    room = WIDEST if table.is_whole else console.room
    for columns in _that_fit(heads, rows, table.labels, room):
        shown = Table(
            title=title,
            caption=table.caption or None,
            title_justify="left",
            caption_justify="left",
        )
        for number in columns:
            if number < table.labels:
                whole = _width(heads, rows, number)
                # Labels stay in one line unless they take most of it.
                least = min(whole, console.room // (1 + table.labels))
                shown.add_column(heads[number], overflow="fold", min_width=least)
            else:
                shown.add_column(heads[number], justify="right")
        for row in rows:
            shown.add_row(*(row[number] for number in columns))
        console.print(shown)
        title = None
    if table.note:
        # The program's own words, which nobody makes long but it.
        print_wrapped(console, table.note, style="dim")


def print_as(table: TextTable, how: Format) -> None:
    """Print a table alone to standard output, in the format that was asked for."""
    content = {name: getattr(table, name) for name in ("title", "columns", "rows", "note")}
    wide = open_console(width_unless_terminal=_WIDTH) if how == Format.TABLE else None
    print_result(how, lambda: content, (table,), console=wide)


def _that_fit(
    heads: list[str], rows: list[list[str]], labels: int, width: int
) -> Iterator[list[int]]:
    """Yield the numbers of the columns of each table: the labels, and others as far as they fit."""
    columns = list(range(labels))
    for number in range(labels, len(heads)):
        wider = [_width(heads, rows, each) for each in (*columns, number)]
        if _total(wider) > width and len(columns) > labels:
            yield columns
            columns = list(range(labels))
        columns.append(number)
    yield columns


def _total(widths: list[int]) -> int:
    return 1 + sum(width + _AROUND for width in widths)


def _width(heads: list[str], rows: list[list[str]], number: int) -> int:
    """Return what a column needs: its cells whole, the words of its head whole."""
    texts = [*heads[number].split(), *(row[number] for row in rows)]
    return max((cell_len(text) for text in texts), default=0)
