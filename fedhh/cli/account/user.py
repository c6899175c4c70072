"""`fedhh account user`: central epsilon of all contributions of a client."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fedhh.cli.account.options import Delta, DomainSize, LocalEpsilon
from fedhh.cli.options import Format, FormatOption


def user(  # noqa: PLR0917 - typer makes these options, none is positional
    local_epsilon: LocalEpsilon,
    clients: Annotated[int, typer.Option(help="Clients in one cohort.")],
    max_items: Annotated[int, typer.Option(help="Contributions per client, exactly so many.")],
    delta: Delta = 1e-10,
    domain_size: DomainSize = None,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Central epsilon of all contributions of a client.

    Example: fedhh account user --local-epsilon 10 --clients 500000 --max-items 60
    """
    from rich.table import Table

    from fedhh.accounting import user_level_epsilon
    from fedhh.cli.account.bounds import round_up
    from fedhh.cli.console import open_console, print_json

    names = ["clones"] if domain_size is None else ["clones", "blanket"]
    bounds: dict[str, Any] = {}
    for name in names:
        both = user_level_epsilon(
            bound=name,
            local_epsilon=local_epsilon,
            num_clients=clients,
            max_items=max_items,
            delta=delta,
            domain_size=domain_size,
        )
        bounds[name] = {
            "epsilon": both.epsilon,
            "method": both.method,
            "groups": both.groups,
            "slots": both.slots if isinstance(both.slots, float) else None,
        }
    content = {
        "unit": "user",
        "neighboring": "swap",
        "delta": delta,
        "local_epsilon_of_all_contributions": local_epsilon * max_items,
        "bounds": bounds,
    }
    if output_format is Format.JSON:
        print_json(content)
        return
    table = Table(title=f"central epsilon at delta {delta:g}, user level, swap")
    for heading in ("bound", "by groups", "by slots", "smaller"):
        table.add_column(heading)
    for name, row in bounds.items():
        slots = "not applicable" if row["slots"] is None else round_up(row["slots"])
        table.add_row(name, round_up(row["groups"]), slots, round_up(row["epsilon"]))
    open_console().print(table)
