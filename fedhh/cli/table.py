"""`fedhh table`: one table of what is finished, to be piped."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedhh.cli.options import TableFormat, TableFormatOption


def table(
    directory: Annotated[
        str,
        typer.Argument(
            metavar="DIR",
            help="What a command has left: its directory, or a file of it. With --results, NAME.",
        ),
    ],
    name: Annotated[
        str | None,
        typer.Argument(
            help="Of a sweep: summary, comparison, sampling, gboard-table1 or -figure1; the one "
            "that says most if not said."
        ),
    ] = None,
    results: Annotated[
        Path | None, typer.Option(help="The directory, where NAME stands in its place.")
    ] = None,
    output_format: TableFormatOption = TableFormat.MARKDOWN,
) -> None:
    """Print one table of what is finished: of a run, sweep, pipeline or repeated collection.

    Example: fedhh table runs/table1 gboard-table1 --format latex
    """
    from fedhh.cli.finished import directory_of, finished_table
    from fedhh.cli.text_tables import print_as
    from fedhh.experiments.study.stored_files import reading
    from fedhh.validation import InputError

    if results is not None and name is not None:
        raise InputError("Expected DIR and NAME, or NAME and --results DIR, got all three.")
    asked = name if results is None else directory
    place = directory_of(Path(directory) if results is None else results)
    with reading(place):
        made = finished_table(place, asked)
    print_as(made, output_format)
