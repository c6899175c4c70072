"""`fedhh report`: a directory as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    directory: Annotated[Path, typer.Argument(help="A run's or a sweep's directory.")],
    out: Annotated[
        Path | None, typer.Option(help="The file; report.html in DIRECTORY if none.")
    ] = None,
) -> None:
    """Write one self-contained HTML file: tables, figures, words, guarantees, configuration.

    Example: fedhh report runs/mine
    """
    from fedhh.cli.console import print_written
    from fedhh.experiments.report.html import write_report

    print_written(write_report(directory, out))
