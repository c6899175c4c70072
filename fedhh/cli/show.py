"""`fedhh show`: all tables of what is finished, from its files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedhh.cli.options import Format, FormatOption, SecondOpinionOption


def show(
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
    words: Annotated[int, typer.Option(help="Discovered words to list.", min=0)] = 20,
    second_opinion: SecondOpinionOption = False,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Print the tables of finished runs, sweeps, pipelines and repeated collections.

    Example: fedhh show runs/mine
    Example: fedhh show runs/table1 --table gboard-table1 --format latex
    """
    from fedhh.cli.console import open_console
    from fedhh.cli.finished import directory_of
    from fedhh.cli.text_tables import print_as, print_result
    from fedhh.experiments.study.kinds import Asked, kind_of, nothing_finished
    from fedhh.experiments.study.stored_files import reading
    from fedhh.validation import InputError

    place = directory_of(directory)
    asked = Asked(words=words, second_opinion=second_opinion)
    with reading(place):
        kind = kind_of(place)
        if second_opinion and (table or kind is None or not kind.has_second_opinion):
            raise InputError(
                "Expected --second-opinion with the directory of a finished run, without --table, "
                f"got {place}."
            )
        if kind is None:
            raise nothing_finished(place)
        if table is None:
            in_words = output_format is Format.TABLE
            print_result(
                output_format,
                lambda: kind.record(place, asked),
                kind.whole(place, asked) if in_words else kind.parts(place, asked),
                console=open_console(width_unless_terminal=kind.width),
            )
            return
        made = kind.table(place) if table == "main" else kind.named_table(place, table)
    print_as(made, output_format)
