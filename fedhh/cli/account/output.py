"""Results of accounting on the console: one table each, epsilons rounded up."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fedhh.cli.console import SafeConsole
    from fedhh.experiments.study.text_table import TextTable


def show_table(
    table: TextTable,
    *,
    console: SafeConsole | None = None,
    left: Collection[str] = (),
    heads: bool = True,
) -> None:
    """Print a table, with its title above and its note below.

    Args:
        table: Its labels are aligned to the left, other columns to the right.
        console: Where to; standard output if None.
        left: Other columns that are aligned to the left.
        heads: Whether to print the heads.
    """
    from rich.table import Table

    from fedhh.cli.console import open_console

    shown = Table(title=table.title or None, caption=table.note or None, show_header=heads)
    for number, head in enumerate(table.columns):
        if number < table.labels:
            shown.add_column(head, overflow="fold", no_wrap=not heads and number == 0)
        else:
            shown.add_column(head, justify="left" if head in left else "right")
    for row in table.rows:
        shown.add_row(*row)
    (console or open_console()).print(shown)


def round_up(epsilon: float) -> str:
    """Return an epsilon as text, rounded up."""
    if not math.isfinite(epsilon):
        return "inf"
    return f"{math.ceil(epsilon * 1e6) / 1e6:.7g}"
