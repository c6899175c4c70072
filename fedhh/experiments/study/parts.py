"""What is printed of an experiment besides tables: facts, lines, columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedhh.experiments.study.text_table import TextTable


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Values with their names.

    Attributes:
        title: Of what.
        rows: What, the value, and a note on it.
    """

    title: str
    rows: Sequence[tuple[str, str, str]]


@dataclass(frozen=True)
class Line:
    """A line of text.

    Attributes:
        text: The line.
        style: "bold", "italic", "dim", or none.
        indent: Spaces before it, and before what of it wraps.
        is_whole: Whether no width breaks it.
    """

    text: str
    style: str = ""
    indent: int = 0
    is_whole: bool = False


@dataclass(frozen=True)
class Columns:
    """Columns without lines between them.

    Attributes:
        heads: Their heads.
        rows: Their cells.
        label: Number of the column that says what a row is, whose text may wrap.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    label: int = 0


Part = TextTable | Facts | Line | Columns
