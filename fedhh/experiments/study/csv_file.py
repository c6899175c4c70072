"""Tables as CSV that a spreadsheet can open without running what somebody typed.

A spreadsheet takes a cell for a formula if it begins with one of ``= + - @``, a tab or a carriage
return, quoted or not. Such text gets an apostrophe in front, and so does text that begins with an
apostrophe: who drops the first symbol of all text that begins with one has the text again. Numbers
are written as numbers.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from fedhh.system.files import whole_file

_MARKED = (*"=+-@\t\r", *"＝＋－＠", "'")


def cell_text(text: str) -> str:
    """Return text as a cell that no spreadsheet takes for a formula.

    >>> cell_text("=cmd()"), cell_text("'tis"), cell_text("plain")
    ("'=cmd()", "''tis", 'plain')
    """
    return f"'{text}" if text.startswith(_MARKED) else text


def csv_text(table: pd.DataFrame) -> str:
    """Return a table as CSV; missing values are empty, infinite ones ``inf``."""
    neutral = _neutral(table)
    texts = neutral.select_dtypes(exclude="number")
    # Readers take a bare carriage return for the end of a row, and pandas quotes it only so.
    bare = any("\r" in str(cell) for name in texts for cell in texts[name])
    quoting: Literal[0, 2] = csv.QUOTE_NONNUMERIC if bare else csv.QUOTE_MINIMAL
    return neutral.to_csv(index=False, lineterminator="\n", quoting=quoting)


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """Write a table as CSV, whole or not at all."""
    with whole_file(path) as temporary:
        temporary.write_text(csv_text(table), encoding="utf-8", newline="\n")


def _neutral(table: pd.DataFrame) -> pd.DataFrame:
    def cell(value: Any) -> Any:
        return cell_text(value) if isinstance(value, str) else value

    texts = table.select_dtypes(exclude="number")
    return table.assign(**{str(name): texts[name].map(cell) for name in texts})
