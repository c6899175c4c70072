"""Widths of a table's columns: heads wrap at spaces, and no word of a head and no number is cut."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Column, Table

WIDEST = 10_000
"""Cells: wider than any table, and the room of a table that is printed whole."""

_FOLDED = 16
"""Cells: what is left of a word of a column that may be folded."""


def set_widths(table: Table, console: Console, room: int) -> int:
    """Set the width of each column so that a table fits into a room if that is possible.

    Columns get what they need first, and share the rest; what is wider than the room stays whole.

    Args:
        table: Its columns get their widths.
        console: Measures what is no text.
        room: Cells for the whole table.

    Returns:
        Width of the table in cells; larger than the room if the needed widths do not fit.
    """
    if not table.columns:
        return 0
    needed, wished = zip(*(_widths(console, each) for each in table.columns), strict=True)
    unbounded = console.options.update(width=WIDEST)
    around = Measurement.get(console, unbounded, table).maximum - sum(wished)
    widths = shared(needed, wished, room - around)
    for column, width in zip(table.columns, widths, strict=True):
        column.width = width
    total: int = around + sum(widths)
    return total


def shared(needed: Sequence[int], wished: Sequence[int], room: int) -> list[int]:
    """Return widths of columns, at least those needed and at most those wished."""
    if sum(wished) <= room:
        return list(wished)
    widths = list(needed)
    left = room - sum(widths)
    while left > 0:
        # A cell at a time to the narrowest of those that wish for more.
        number = min(
            (n for n, width in enumerate(widths) if width < wished[n]), key=widths.__getitem__
        )
        widths[number] += 1
        left -= 1
    return widths


def _widths(console: Console, column: Column) -> tuple[int, int]:
    """Return the width that a column needs, and the width at which nothing of it wraps."""
    heads = _measures(console, column.header)
    cells = [_measures(console, cell) for cell in column.cells]
    wished = max(column.min_width or 0, *(most for _, most in (heads, *cells)))
    if column.no_wrap:
        return wished, wished
    if column.justify == "right":
        # Numbers: also "8,046 ± 904" stays in one line.
        own = max((most for _, most in cells), default=0)
    else:
        own = max((least for least, _ in cells), default=0)
    if column.overflow == "fold":
        own = min(own, _FOLDED)
    return max(heads[0], own, column.min_width or 0), wished


def _measures(console: Console, content: RenderableType) -> tuple[int, int]:
    """Return the widths of the longest word and of the longest line."""
    if isinstance(content, str):
        text = console.render_str(content).plain
        return _widest(text.split()), _widest(text.splitlines())
    measured = Measurement.get(console, console.options.update(width=WIDEST), content)
    return measured.minimum, measured.maximum


def _widest(texts: Sequence[str]) -> int:
    return max(map(cell_len, texts), default=0)
