"""A table: as Markdown or LaTeX for people, as CSV for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from fedhh.experiments.report.plain_text import latex, markdown
from fedhh.experiments.run.csv_file import csv_text
from fedhh.validation import printable, require_choice

FORMATS = ("markdown", "csv", "latex")


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
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str
    labels: int = 1
    records: tuple[dict[str, Any], ...] = ()

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
        title = [f"{printable(self.title)}\n"] if self.title else []
        return "\n".join([*title, *lines, f"\n{self.note}", ""])

    def _csv(self) -> str:
        records = self.records or [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return csv_text(pd.DataFrame(list(records)))

    def _latex(self) -> str:
        def line(cells: Sequence[str]) -> str:
            return "    " + " & ".join(latex(cell) for cell in cells) + r" \\"

        caption = ". ".join(latex(text) for text in (self.title, self.note) if text)
        sides = "l" * self.labels + "r" * (len(self.columns) - self.labels)
        return "\n".join(
            [
                r"% needs \usepackage{booktabs}",
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
