"""`fedhh account user`: central epsilon of all contributions of a client."""

from __future__ import annotations

from typing import Annotated

import typer

from fedhh.cli.account.options import (
    AccountFormat,
    AccountFormatOption,
    Delta,
    DomainSize,
    LocalEpsilon,
)
from fedhh.cli.options import SecondOpinionOption


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
    from fedhh.accounting import NotApplicable, account_user
    from fedhh.cli.account.output import round_up, show_table
    from fedhh.cli.console import print_json
    from fedhh.cli.second_opinions import print_opinions
    from fedhh.experiments.study.text_table import TextTable

    if output_format is AccountFormat.DP_EVENT:
        from fedhh.accounting.dp_event import no_shuffle

        raise no_shuffle()
    found = account_user(
        local_epsilon=local_epsilon,
        num_clients=clients,
        max_items=max_items,
        delta=delta,
        domain_size=domain_size,
    )
    opinions = found.second_opinions() if second_opinion else None
    if output_format is AccountFormat.JSON:
        print_json(found.to_dict(opinions))
        return
    rows = tuple(
        (
            name,
            round_up(both.groups),
            "not applicable" if isinstance(both.slots, NotApplicable) else round_up(both.slots),
            round_up(both.epsilon),
        )
        for name, both in found.bounds.items()
    )
    show_table(
        TextTable(
            title=f"central epsilon at delta {delta:g}, user level, swap",
            columns=("bound", "by groups", "by slots", "smaller"),
            rows=rows,
            note="",
            labels=4,
        )
    )
    if opinions:
        print_opinions(list(opinions.values()))
