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
    from fedhh.cli.account.output import show_table
    from fedhh.cli.console import open_console, print_json, print_written
    from fedhh.experiments.study.text_table import TextTable
    from fedhh.oracles.sketch_errors import FROM_RANK, NUM_CELLS, NUM_HASHES
    from fedhh.oracles.sketch_errors import cms_variance as errors_of

    found = errors_of(epsilon=epsilon, num_reports=reports, num_values=values, rank=rank, seed=seed)
    if plot is not None:
        from fedhh.experiments.report.oracle_figures import plot_sketch_errors

        plot_sketch_errors(plot, found)
    if output_format is Format.JSON:
        print_json(found.to_dict())
        return
    table = TextTable(
        title=f"standard deviation of a count of {found.count:,.0f}\n{found.title}",
        columns=("m cells", *(f"k = {k:,}" for k in NUM_HASHES)),
        rows=tuple(
            (f"{m:,}", *(f"{value:,.0f}" for value in row))
            for m, row in zip(NUM_CELLS, found.surface, strict=True)
        ),
        note="",
        labels=0,
    )
    console = open_console()
    show_table(table, console=console)
    console.print(f"No size goes below {found.floor:,.0f}.")
    for (m, k), value in found.simulated.items():
        formula = found.surface[NUM_CELLS.index(m), NUM_HASHES.index(k)]
        console.print(
            f"One simulated sketch, m = {m:,}, k = {k:,}: {value:,.0f} (formula {formula:,.0f}), "
            f"over values beyond rank {FROM_RANK:,}.",
            soft_wrap=True,
        )
    if plot is not None:
        print_written(plot)
