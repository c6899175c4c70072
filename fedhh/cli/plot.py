"""`fedhh plot`: figures of a run or a sweep."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def plot(  # noqa: PLR0917 - typer makes these options, only the directory is positional
    directory: Annotated[Path, typer.Argument(help="A run's or a sweep's directory.")],
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
) -> None:
    """Draw the figures of a run, pipeline or sweep as PNG, PDF, SVG; --x and what follows: sweeps.

    Example: fedhh plot runs/map --x privacy.local_epsilon --facet protocol.clients_per_layer
    """
    from fedhh.cli.console import open_console, print_line, print_written
    from fedhh.cli.safe_text import LONGEST_LINE, safe_text
    from fedhh.experiments.pipeline.directory import is_pipeline
    from fedhh.experiments.report.pipeline_figures import write_pipeline_figures
    from fedhh.experiments.report.run_figures import plot_run
    from fedhh.experiments.report.style import FORMATS
    from fedhh.experiments.report.sweep_figures import METRICS, sweep_figures, write_figures
    from fedhh.experiments.run.directory import is_finished
    from fedhh.experiments.run.stored_files import reading
    from fedhh.validation import InputError

    missing: dict[str, str] = {}
    with reading(directory):
        if is_finished(directory):
            if x or by or facet or where or metric:
                raise InputError(
                    f"{directory} holds a run, whose figures take no option but --out; --x, --by, "
                    "--facet, --where and --metric are for sweeps."
                )
            if is_pipeline(directory):
                paths = write_pipeline_figures(directory, out=out, formats=FORMATS)
            else:
                paths = plot_run(directory, out=out)
        else:
            drawn = sweep_figures(
                directory,
                x=x,
                by=by,
                facet=facet or (),
                where=where or (),
                metrics=metric or METRICS,
            )
            paths = write_figures(drawn, out or directory)
            missing = {name: reason for name, reason in drawn.items() if isinstance(reason, str)}
    for path in paths:
        print_written(path, " (also .pdf, .svg)")
    for name, reason in missing.items():
        print_line(open_console(), f"No {name}: {safe_text(reason, longest=LONGEST_LINE)}")
