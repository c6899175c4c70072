"""A table as markup: everything that users typed is text in it."""

from __future__ import annotations

import html
from collections.abc import Iterable

from fedhh.experiments.study.text_table import TextTable
from fedhh.validation import printable


def escaped(text: str) -> str:
    """Return text as markup that shows it."""
    return html.escape(printable(text))


def table_tag(table: TextTable) -> str:
    """Return a table and its note."""

    def cell(tag: str, number: int, text: str) -> str:
        kind = ' class="label"' if number < table.labels else ""
        return f"<{tag}{kind}>{escaped(text)}</{tag}>"

    def row(tag: str, texts: Iterable[str]) -> str:
        return "<tr>" + "".join(cell(tag, i, text) for i, text in enumerate(texts)) + "</tr>"

    body = "\n".join(row("td", cells) for cells in table.rows)
    return (
        f"<table>\n{row('th', table.columns)}\n{body}\n</table>\n"
        f'<p class="note">{escaped(table.note)}</p>'
    )
