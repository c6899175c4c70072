"""`fedhh plot`: figures of what is finished."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedhh.cli.options import FinishedArgument


def plot(  # noqa: PLR0917 - typer makes these options, only the directory is positional
    directory: FinishedArgument,
    out: Annotated[Path | None, typer.Option(help="Where figures go; DIRECTORY if none.")] = None,
    x: Annotated[str | None, typer.Option(help="The setting along the x axis.")] = None,
    by: Annotated[str | None, typer.Option(help="The setting with a line per value.")] = None,
    facet: Annotated[
        list[str] | None, typer.Option(help="A setting with a panel per value; repeatable.")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Draw these cells only; repeatable."),
    ] = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="A column of the results; repeatable.")
    ] = None,
    title: Annotated[
        bool, typer.Option("--title/--no-title", help="Figures with their titles, or without.")
    ] = True,
    size: Annotated[
        str | None, typer.Option(metavar="WIDTHxHEIGHT", help="Of each figure, in inches.")
    ] = None,
) -> None:
    """Draw the figures of what is finished as PNG, PDF, SVG; --x to --metric: sweeps.

    Example: fedhh plot runs/map --x privacy.local_epsilon --facet protocol.clients_per_layer
    """
    from fedhh.cli.console import open_console, print_line, print_written
    from fedhh.cli.safe_text import LONGEST_LINE, safe_text
    from fedhh.experiments.study.kinds import Drawing, finished_kind
    from fedhh.experiments.study.look import Look, parse_size
    from fedhh.experiments.study.stored_files import reading
    from fedhh.validation import InputError

    drawing = Drawing(
        out=out,
        look=Look(title=title, size=None if size is None else parse_size(size)),
        x=x,
        by=by,
        facet=facet or (),
        where=where or (),
        metrics=metric or (),
    )
    with reading(directory):
        kind = finished_kind(directory)
        if drawing.names_settings and not kind.has_settings:
            raise InputError(
                f"{directory} holds a {kind.noun}, whose figures take --out, --no-title and --size "
                "only; --x, --by, --facet, --where and --metric are for sweeps."
            )
        drawn = kind.plot(directory, drawing)
    for path in drawn.paths:
        print_written(path, " (also .pdf, .svg)")
    for name, reason in drawn.missing.items():
        print_line(open_console(), f"No {name}: {safe_text(reason, longest=LONGEST_LINE)}")
