"""`fedhh account plan`: cohorts or local epsilons for a central target."""

from __future__ import annotations

from typing import Annotated

import typer

from fedhh.cli.account.options import Delta, DomainSize
from fedhh.cli.options import Format, FormatOption


def plan(  # noqa: PLR0917 - typer makes these options, none is positional
    central_epsilon: Annotated[float, typer.Option(help="Target, item level.")],
    delta: Delta = 1e-10,
    local_epsilon: Annotated[
        float | None, typer.Option(help="Given this, how many reports?")
    ] = None,
    reports: Annotated[int | None, typer.Option(help="Given these, which local epsilon?")] = None,
    max_items: Annotated[int, typer.Option(help="Contributions per client.")] = 1,
    domain_size: DomainSize = None,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Fewest reports per layer, or largest local epsilon, for a central target.

    Example: fedhh account plan --local-epsilon 6 --central-epsilon 1
    """
    from rich.table import Table

    from fedhh.cli.account.bounds import number_text, plan_of
    from fedhh.cli.console import open_console, print_json
    from fedhh.validation import InputError, require_at_least, require_positive

    if (local_epsilon is None) == (reports is None):
        raise InputError(
            "Expected either --local-epsilon (how many reports?) or --reports (which local "
            "epsilon?), got " + ("neither." if local_epsilon is None else "both.")
        )
    require_positive(central_epsilon=central_epsilon)
    require_at_least(1, max_items=max_items)
    names = ["clones", *([] if domain_size is None else ["blanket"])]
    answers = {
        name: plan_of(
            name,
            central_epsilon=central_epsilon,
            delta=delta,
            local_epsilon=local_epsilon,
            num_reports=reports,
            max_items=max_items,
            domain_size=domain_size,
        )
        for name in names
    }
    content = {
        "unit": "item",
        "neighboring": "swap",
        "central_epsilon": central_epsilon,
        "delta": delta,
        "max_items": max_items,
        "answers": answers,
    }
    if output_format is Format.JSON:
        print_json(content)
        return
    table = Table(title=f"for central epsilon {central_epsilon:g} at delta {delta:g}, item level")
    table.add_column("bound")
    if local_epsilon is not None:
        table.add_column(f"reports per layer, local epsilon {local_epsilon:g}", justify="right")
        table.add_column(f"clients, {max_items} reports each", justify="right")
    else:
        table.add_column(f"largest local epsilon, {reports:,} reports", justify="right")
    for name, row in answers.items():
        table.add_row(name, *(number_text(value) for key, value in row.items() if key != "reason"))
    table.caption = "\n".join(row["reason"] for row in answers.values() if row["reason"]) or None
    open_console().print(table)
