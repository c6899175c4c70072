"""Prints a table of text, with everything in it shown as it is and nothing cut to fit."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from fedhh.cli.safe_text import LONGEST_LINE, safe_text
from fedhh.experiments.report.text_table import TextTable

# Around the text of a column: a space on both sides, and a line.
_AROUND = 3


def print_table(console: Console, table: TextTable) -> None:
    """Print a table of text, and below it what the numbers are.

    Columns that do not fit beside the others follow in a table of their own, with the same labels.
    """
    heads = [safe_text(column) for column in table.columns]
    rows = [[safe_text(cell) for cell in row] for row in table.rows]
    title = safe_text(table.title) or None
    for columns in _that_fit(heads, rows, table.labels, console.width):
        needed = [_width(heads, rows, number) for number in columns]
        wished = [max(cell_len(heads[n]), w) for n, w in zip(columns, needed, strict=True)]
        # Left to itself, a table would take from numbers to give to heads.
        is_tight = _total(needed) <= console.width < _total(wished)
        shown = Table(title=title, title_justify="left")
        for number, width in zip(columns, needed, strict=True):
            shown.add_column(
                heads[number],
                justify="left" if number < table.labels else "right",
                width=width if is_tight else None,
                overflow="fold",
            )
        for row in rows:
            shown.add_row(*(row[number] for number in columns))
        console.print(shown)
        title = None
    if table.note:
        console.print(safe_text(table.note, longest=LONGEST_LINE), style="dim")


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
