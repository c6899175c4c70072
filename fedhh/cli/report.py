"""`fedhh report`: a directory as one page to explore."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from fedhh.cli.options import FinishedArgument


def report(
    directory: FinishedArgument,
    other: Annotated[
        Path | None, typer.Argument(help="Another run's directory, to be laid over the first.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The file, or - for standard output; if none, report.html in DIRECTORY; of two "
            "compared-with-OTHER.html."
        ),
    ] = None,
) -> None:
    """Write one HTML file to explore: the trie, votes, words, guarantees; or tables and charts.

    It opens without a network, and asks for nothing.

    Example: fedhh report runs/mine
    """
    from fedhh.cli.console import print_written
    from fedhh.experiments.report.explorer.document import report_text, write_report
    from fedhh.experiments.study.stored_files import reading

    if out == Path("-"):
        with reading(directory):
            text = report_text(directory, other)
        sys.stdout.write(text)
        return
    with reading(directory):
        written = write_report(directory, other, out=out)
    print_written(written)
