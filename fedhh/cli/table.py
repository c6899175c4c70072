"""`fedhh table`: a table of a sweep's results, to be piped."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class TableFormat(StrEnum):
    """How a table is written."""

    MARKDOWN = "markdown"
    CSV = "csv"
    LATEX = "latex"
    JSON = "json"


def table(
    name: Annotated[
        str, typer.Argument(help="summary, comparison, sampling, gboard-table1 or -figure1.")
    ],
    results: Annotated[Path, typer.Option(help="A sweep's directory.")],
    output_format: Annotated[
        TableFormat, typer.Option("--format", help="How to write it.")
    ] = TableFormat.MARKDOWN,
) -> None:
    """Print a table of a sweep's results.

    Example: fedhh table gboard-table1 --results runs/table1 --format latex
    """
    from fedhh.cli.console import print_json
    from fedhh.cli.safe_text import safe_text
    from fedhh.experiments.report.tables import make_table
    from fedhh.experiments.run.stored_files import reading

    with reading(results):
        made = make_table(name, results)
    if output_format is TableFormat.JSON:
        print_json(
            {"title": made.title, "columns": made.columns, "rows": made.rows, "note": made.note}
        )
        return
    text = made.render(output_format)
    # A program gets the labels as they are, a terminal nothing that it would act on.
    sys.stdout.write(safe_text(text, longest=None, keep="\n") if sys.stdout.isatty() else text)
