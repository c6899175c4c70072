"""`fedhh report`: a directory as one page to explore."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    directory: Annotated[Path, typer.Argument(help="A run's or a sweep's directory.")],
    other: Annotated[
        Path | None, typer.Argument(help="Another run's directory, to be laid over the first.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The file; report.html in DIRECTORY if none.")
    ] = None,
) -> None:
    """Write one HTML file to explore: the trie, votes, words, guarantees; or a sweep's results.

    It opens without a network, and asks for nothing.

    Example: fedhh report runs/mine
    """
    from fedhh.cli.console import print_written
    from fedhh.experiments.longitudinal.directory import is_longitudinal
    from fedhh.experiments.pipeline.directory import is_pipeline
    from fedhh.experiments.report.explorer.write import write_report
    from fedhh.experiments.run.stored_files import reading
    from fedhh.validation import InputError

    for each in (directory, other):
        if each is not None and (is_pipeline(each) or is_longitudinal(each)):
            what = "a pipeline" if is_pipeline(each) else "a discovery over months"
            raise InputError(
                f"{each} holds {what}, which has no page; fedhh show prints its table."
            )

    with reading(directory):
        written = write_report(directory, other, out=out)
    print_written(written)
