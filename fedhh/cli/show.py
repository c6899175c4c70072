"""`fedhh show`: what is finished, from its files: the main table, one that is chosen, or all."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedhh.cli.options import (
    ColumnsShownOption,
    Format,
    FormatOption,
    MetricOption,
    RowsOption,
    chosen_of,
)


def show(  # noqa: PLR0917 - typer makes these options, only the directory is positional
    directory: Annotated[
        Path, typer.Argument(help="What a command has left: its directory, or a file of it.")
    ],
    table: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="One table alone: main, the one that says most; of a run with devices also "
            "calendar; of a sweep also summary, comparison, sampling, gboard-table1 or -figure1.",
        ),
    ] = None,
    metric: MetricOption = None,
    rows: RowsOption = None,
    columns: ColumnsShownOption = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All tables: of a run words, layers and privacy, too.")
    ] = False,
    words: Annotated[
        int | None, typer.Option(help="All tables, with so many discovered words; 20.", min=0)
    ] = None,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Print the main table of a finished run, sweep, pipeline or repeated collection.

    Example: fedhh show runs/mine --all
    Example: fedhh show runs/map --metric coverage --rows epsilon --columns clients_per_layer
    Example: fedhh show runs/table1 --table gboard-table1 --format latex
    """
    from fedhh.cli.console import open_console
    from fedhh.cli.finished import directory_of
    from fedhh.cli.text_tables import print_as, print_result
    from fedhh.experiments.study.kinds import Asked, kind_of, nothing_finished
    from fedhh.experiments.study.stored_files import reading
    from fedhh.validation import InputError

    place = directory_of(directory)
    chosen = chosen_of(metric, rows, columns)
    asked = Asked(
        everything=everything or words is not None,
        words=20 if words is None else words,
    )
    if sum((chosen.is_asked, asked.everything, table is not None)) > 1:
        raise InputError(
            "Expected one of --table, of --all (with --words), and of --metric (with --rows or "
            "--columns), got several."
        )
    with reading(place):
        kind = kind_of(place)
        if kind is None:
            raise nothing_finished(place)
        if table is None and not chosen.is_asked:
            show_parts = kind.whole if output_format is Format.TABLE else kind.shown
            print_result(
                output_format,
                lambda: kind.record(place, asked),
                show_parts(place, asked),
                console=open_console(width_unless_terminal=kind.width),
            )
            return
        if chosen.is_asked:
            made = kind.chosen_table(place, chosen)
        else:
            made = kind.table(place) if table == "main" else kind.named_table(place, table or "")
    print_as(made, output_format)
