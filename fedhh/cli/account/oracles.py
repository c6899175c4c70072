"""`fedhh account oracles`: which frequency oracle to use."""

from __future__ import annotations

from typing import Annotated

import typer

from fedhh.cli.account.options import Plot
from fedhh.cli.options import Format, FormatOption


def oracles(
    epsilon: Annotated[float, typer.Option(help="Privacy of one report, 0.01 to 30.")],
    domain_size: Annotated[int, typer.Option(help="Number of values, the dummy included.")],
    plot: Plot = None,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Noise, report size and server's work of all oracles, and which of them to use.

    Example: fedhh account oracles --epsilon 4 --domain-size 10000 --plot oracles.png
    """
    from fedhh.cli.account.oracle_table import oracles_command

    oracles_command(
        epsilon=epsilon,
        domain_size=domain_size,
        plot=plot,
        as_json=output_format is Format.JSON,
    )
