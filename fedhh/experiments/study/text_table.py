"""A table: as Markdown or LaTeX for people, as CSV for programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fedhh.experiments.study.plain_text import latex, markdown, markdown_paragraph
from fedhh.validation import require_choice

FORMATS = ("markdown", "csv", "latex")

_OTHER_LETTERS = (
    r"% and lualatex or xelatex, with \usepackage{fontspec} and fonts that have its letters"
)


def round_up(epsilon: float, *, digits: int = 7) -> str:
    """Return an epsilon as a cell, rounded up at six decimals."""
    if not math.isfinite(epsilon):
        return "inf"
    return f"{math.ceil(epsilon * 1e6) / 1e6:.{digits}g}"


@dataclass(frozen=True, kw_only=True)
class TextTable:
    """A table.

    Attributes:
        title: What it shows; may be empty.
        columns: Heads.
        rows: Cells, as people read them.
        note: What the numbers are.
        labels: How many of the first columns say what a row is.
        records: The same as plain values by column, for CSV; made of the cells if empty.
        caption: Of a terminal: below it, as wide as it.
        is_whole: Whether a terminal shows all columns next to each other, however narrow it is.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str
    labels: int = 1
    records: tuple[dict[str, Any], ...] = ()
    caption: str = ""
    is_whole: bool = False

    def render(self, kind: str) -> str:
        """Return the table as "markdown", "csv" (records alone) or "latex" (with booktabs)."""
        require_choice(FORMATS, format=kind)
        return {"markdown": self._markdown, "csv": self._csv, "latex": self._latex}[kind]()

    def _markdown(self) -> str:
        cells = [[markdown(cell) for cell in row] for row in (self.columns, *self.rows)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.columns))]
        lines = [
            "| " + " | ".join(text.ljust(w) for text, w in zip(row, widths, strict=True)) + " |"
            for row in cells
        ]
        lines.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
        title, note = markdown_paragraph(self.title), markdown_paragraph(self.note)
        return "\n".join([*([f"{title}\n"] if title else []), *lines, f"\n{note}", ""])

    def _csv(self) -> str:
        import pandas as pd

        from fedhh.experiments.study.csv_file import csv_text

        records = self.records or [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return csv_text(pd.DataFrame(list(records)))

    def _latex(self) -> str:
        def line(cells: Sequence[str]) -> str:
            return "    " + " & ".join(latex(cell) for cell in cells) + r" \\"

        caption = ". ".join(latex(text) for text in (self.title, self.note) if text)
        texts = "".join((caption, *self.columns, *(cell for row in self.rows for cell in row)))
        is_latin = texts.replace("±", "").isascii()
        sides = "l" * self.labels + "r" * (len(self.columns) - self.labels)
        return "\n".join(
            [
                r"% needs \usepackage{booktabs}",
                *([] if is_latin else [_OTHER_LETTERS]),
                r"\begin{table}",
                r"  \centering",
                f"  \\caption{{{caption}}}",
                f"  \\begin{{tabular}}{{{sides}}}",
                r"    \toprule",
                line(self.columns),
                r"    \midrule",
                *(line(row) for row in self.rows),
                r"    \bottomrule",
                r"  \end{tabular}",
                r"\end{table}",
                "",
            ]
        )
