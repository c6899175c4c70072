"""`fedhh account cms-variance`: how large a Count Mean Sketch must be."""

from __future__ import annotations

from typing import Annotated

import typer

from fedhh.cli.account.options import Plot, SampleSeed
from fedhh.cli.options import Format, FormatOption


def cms_variance(  # noqa: PLR0917 - typer makes these options, none is positional
    epsilon: Annotated[float, typer.Option(help="Privacy of one report.")] = 2.0,
    reports: Annotated[int, typer.Option(help="Reports in the sketch.")] = 100_000_000,
    values: Annotated[int, typer.Option(help="Values, held by Zipf's law: 1 / rank.")] = 100_000,
    rank: Annotated[int, typer.Option(help="Rank of the value whose count is meant.")] = 10,
    seed: SampleSeed = 0,
    plot: Plot = None,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Standard deviation of Count Mean Sketch by its size, and two simulated sketches.

    Example: fedhh account cms-variance --epsilon 2 --plot cms.png
    """
    from fedhh.cli.account.sketch import cms_variance_command

    cms_variance_command(
        epsilon=epsilon,
        num_reports=reports,
        num_values=values,
        rank=rank,
        seed=seed,
        plot=plot,
        as_json=output_format is Format.JSON,
    )
