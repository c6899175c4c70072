"""`fedhh account shuffle`: central epsilon of one shuffle."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from fedhh.cli.account.options import (
    AccountFormat,
    AccountFormatOption,
    Delta,
    DomainSize,
    LocalEpsilon,
    Plot,
    Reports,
)
from fedhh.cli.options import SecondOpinionOption

if TYPE_CHECKING:
    from fedhh.accounting import ShuffleAccount
    from fedhh.experiments.study.text_table import TextTable


def shuffle(  # noqa: PLR0917 - typer makes these options, none is positional
    local_epsilon: LocalEpsilon,
    reports: Reports,
    delta: Delta = 1e-10,
    oracle: Annotated[str, typer.Option(help="ss, or any for any randomizer.")] = "any",
    domain_size: DomainSize = None,
    plot: Plot = None,
    second_opinion: SecondOpinionOption = False,
    output_format: AccountFormatOption = AccountFormat.TABLE,
) -> None:
    """Central epsilon of one shuffle, item level, by every bound.

    Example: fedhh account shuffle --local-epsilon 10 --reports 30000000 --oracle ss
    --domain-size 1000001
    """
    from fedhh.accounting import account_shuffle
    from fedhh.cli.account.output import show_table
    from fedhh.cli.console import print_json, print_written
    from fedhh.cli.second_opinions import print_opinions
    from fedhh.oracles import oracle_names
    from fedhh.validation import InputError, require_choice

    require_choice(["any", *oracle_names()], oracle=oracle)
    if oracle != "ss":
        domain_size = None
    elif domain_size is None:
        raise InputError("Expected --domain-size with --oracle ss, got none.")
    if output_format is AccountFormat.DP_EVENT:
        from fedhh.accounting.dp_event import no_shuffle

        raise no_shuffle()
    found = account_shuffle(
        local_epsilon=local_epsilon,
        num_reports=reports,
        delta=delta,
        domain_size=domain_size,
    )
    opinions = found.second_opinions() if second_opinion else None
    if plot is not None:
        from fedhh.experiments.report.account_figures import plot_shuffle

        plot_shuffle(
            plot,
            local_epsilon=local_epsilon,
            num_reports=reports,
            delta=delta,
            domain_size=domain_size,
        )
    if output_format is AccountFormat.JSON:
        print_json(found.to_dict(opinions))
        return
    show_table(_table(found))
    if opinions:
        print_opinions(list(opinions.values()))
    if plot is not None:
        print_written(plot)


def _table(found: ShuffleAccount) -> TextTable:
    from fedhh.cli.account.output import round_up
    from fedhh.experiments.study.text_table import TextTable

    rows = []
    for key, stated in found.bounds.items():
        bound = stated.to_dict()
        epsilon, notes = bound["epsilon"], (stated.source, stated.note, bound["reason"])
        text = "not applicable" if epsilon is None else round_up(epsilon)
        rows.append((key.replace("_", " "), text, "; ".join(each for each in notes if each)))
    if found.epsilon_at_least is not None:
        known = math.floor(found.epsilon_at_least * 1e6) / 1e6
        rows.append(("true value, at least", f"{known:.7g}", "an attack"))
    return TextTable(
        title=f"central epsilon at delta {found.delta:g}, item level, swap",
        columns=("bound", "epsilon", "source"),
        rows=tuple(rows),
        note="",
        labels=3,
    )
