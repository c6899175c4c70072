"""`fedhh account user`: central epsilon of all contributions of a client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedhh.cli.account.options import (
    AccountFormat,
    AccountFormatOption,
    Delta,
    DomainSize,
    LocalEpsilon,
)
from fedhh.cli.options import SecondOpinionOption

if TYPE_CHECKING:
    from fedhh.accounting.second_opinion import SecondOpinion


def user(  # noqa: PLR0917 - typer makes these options, none is positional
    local_epsilon: LocalEpsilon,
    clients: Annotated[int, typer.Option(help="Clients in one cohort.")],
    max_items: Annotated[int, typer.Option(help="Contributions per client, exactly so many.")],
    delta: Delta = 1e-10,
    domain_size: DomainSize = None,
    second_opinion: SecondOpinionOption = False,
    output_format: AccountFormatOption = AccountFormat.TABLE,
) -> None:
    """Central epsilon of all contributions of a client.

    Example: fedhh account user --local-epsilon 10 --clients 500000 --max-items 60
    """
    from rich.table import Table

    from fedhh.accounting import user_level_epsilon
    from fedhh.cli.account.bounds import round_up
    from fedhh.cli.console import open_console, print_json
    from fedhh.cli.second_opinions import print_opinions

    if output_format is AccountFormat.DP_EVENT:
        from fedhh.accounting.dp_event import no_shuffle

        raise no_shuffle()
    if second_opinion:
        from fedhh.accounting.second_opinion import check_delta

        check_delta(delta)
    names = ["clones"] if domain_size is None else ["clones", "blanket"]
    bounds: dict[str, Any] = {}
    opinions: list[SecondOpinion] = []
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
        if second_opinion:
            from fedhh.accounting.second_opinion import opinion_on_shuffle

            opinions.append(
                opinion_on_shuffle(
                    name,
                    local_epsilon=local_epsilon,
                    num_reports=clients,
                    times=max_items,
                    delta=delta,
                    domain_size=domain_size,
                    stated=both.slots,
                    claim=f"{name}, slots",
                )
            )
            bounds[name]["second_opinion"] = opinions[-1].to_dict()
    content = {
        "unit": "user",
        "neighboring": "swap",
        "delta": delta,
        "local_epsilon_of_all_contributions": local_epsilon * max_items,
        "bounds": bounds,
    }
    if output_format is AccountFormat.JSON:
        print_json(content)
        return
    table = Table(title=f"central epsilon at delta {delta:g}, user level, swap")
    for heading in ("bound", "by groups", "by slots", "smaller"):
        table.add_column(heading)
    for name, row in bounds.items():
        slots = "not applicable" if row["slots"] is None else round_up(row["slots"])
        table.add_row(name, round_up(row["groups"]), slots, round_up(row["epsilon"]))
    open_console().print(table)
    if opinions:
        print_opinions(opinions)
