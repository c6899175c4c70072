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
    words: Annotated[int, typer.Option(help="Discovered words to list.", min=0)] = 20,
    second_opinion: SecondOpinionOption = False,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Print all tables of what is finished, from its files: runs, sweeps, pipelines, months.

    Example: fedhh show runs/mine
    """
    from fedhh.cli.console import open_console, print_json
    from fedhh.cli.finished import directory_of
    from fedhh.cli.text_tables import print_parts
    from fedhh.experiments.study.kinds import Asked, kind_of, nothing_finished
    from fedhh.experiments.study.stored_files import reading
    from fedhh.validation import InputError

    place = directory_of(directory)
    asked = Asked(words=words, second_opinion=second_opinion)
    with reading(place):
        kind = kind_of(place)
        if second_opinion and not (kind is not None and kind.has_second_opinion):
            raise InputError(
                f"Expected --second-opinion with the directory of a finished run, got {place}."
            )
        if kind is None:
            raise nothing_finished(place)
        if output_format is Format.JSON:
            print_json(kind.record(place, asked))
        else:
            console = open_console(width_unless_terminal=kind.width)
            print_parts(console, kind.whole(place, asked))
