"""The markup of a page: everything that users typed is text in it."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from fedhh.experiments.report.style import png_bytes
from fedhh.experiments.report.text_table import TextTable
from fedhh.validation import printable

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto; padding: 0 1rem;
  color: #1a1a1a; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 14px; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #ddd; text-align: right;
  vertical-align: top; white-space: nowrap; }
th { border-bottom: 2px solid #888; }
td.label, th.label { text-align: left; white-space: normal; }
img { max-width: 100%; margin: .5rem 0; }
pre { background: #f6f6f6; padding: 1rem; overflow-x: auto; }
.note { color: #555; font-size: 13px; }
"""


def escaped(text: str) -> str:
    """Return text as markup that shows it."""
    return html.escape(printable(text))


def figure_tags(drawn: dict[str, Figure | str]) -> list[str]:
    """Return figures as images inside the page; in place of one that is missing, why it is."""
    return [
        f'<p class="note">{escaped(name)}: {escaped(figure)}</p>'
        if isinstance(figure, str)
        else f'<img alt="{escaped(name)}" src="data:image/png;base64,'
        f'{base64.b64encode(png_bytes(figure)).decode("ascii")}">'
        for name, figure in drawn.items()
    ]


def config_tags(path: Path) -> list[str]:
    """Return a configuration's text, if the file is there."""
    if not path.exists():
        return []
    text = html.escape(path.read_text(encoding="utf-8", errors="replace"))
    return [f"<h2>Configuration</h2><pre>{text}</pre>"]


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


def page(title: str, body: Sequence[str]) -> str:
    """Return a whole page."""
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f"<title>{escaped(title)}</title>",
            f"<style>{_STYLE}</style>\n</head>\n<body>",
            f"<h1>{escaped(title)}</h1>",
            *body,
            "</body>\n</html>\n",
        ]
    )
