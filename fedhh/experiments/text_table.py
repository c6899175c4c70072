"""A table of text, as Markdown, CSV or LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from fedhh.validation import require_choice

FORMATS = ("markdown", "csv", "latex")


@dataclass(frozen=True, kw_only=True)
class TextTable:
    """A table of text.

    Attributes:
        title: What it shows; may be empty.
        columns: Heads.
        rows: Cells.
        note: What the numbers are.
        labels: How many of the first columns say what a row is.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str
    labels: int = 1

    def render(self, kind: str) -> str:
        """Return the table as "markdown", "csv" or "latex"; CSV has the cells alone."""
        require_choice(FORMATS, format=kind)
        return {"markdown": self._markdown, "csv": self._csv, "latex": self._latex}[kind]()

    def _markdown(self) -> str:
        cells = [[cell.replace("|", "\\|") for cell in row] for row in (self.columns, *self.rows)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.columns))]
        lines = [
            "| " + " | ".join(text.ljust(w) for text, w in zip(row, widths, strict=True)) + " |"
            for row in cells
        ]
        lines.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
        title = [f"{self.title}\n"] if self.title else []
        return "\n".join([*title, *lines, f"\n{self.note}", ""])

    def _csv(self) -> str:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([self.columns, *self.rows])
        return text.getvalue()

    def _latex(self) -> str:
        def line(cells: Sequence[str]) -> str:
            return "    " + " & ".join(_latex_text(cell) for cell in cells) + r" \\"

        caption = ". ".join(_latex_text(text) for text in (self.title, self.note) if text)
        return "\n".join(
            [
                r"\begin{table}",
                r"  \centering",
                f"  \\caption{{{caption}}}",
                f"  \\begin{{tabular}}{{{'l' * len(self.columns)}}}",
                r"    \hline",
                line(self.columns),
                r"    \hline",
                *(line(row) for row in self.rows),
                r"    \hline",
                r"  \end{tabular}",
                r"\end{table}",
                "",
            ]
        )


def _latex_text(text: str) -> str:
    for symbol in "%_&#":
        text = text.replace(symbol, f"\\{symbol}")
    return text
