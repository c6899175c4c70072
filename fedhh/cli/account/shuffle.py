"""`fedhh account shuffle`: central epsilon of one shuffle."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

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
    from fedhh.accounting.second_opinion import SecondOpinion


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
    from rich.table import Table

    from fedhh.accounting import NotApplicable, paper_subset_size, subset_selection_lower_bound
    from fedhh.cli.account.bounds import BOUND_KEYS, bound_as_json, round_up, selection_of
    from fedhh.cli.console import open_console, print_json, print_written
    from fedhh.cli.second_opinions import print_opinions

    selection = selection_of(oracle, domain_size)
    if output_format is AccountFormat.DP_EVENT:
        from fedhh.accounting.dp_event import no_shuffle

        raise no_shuffle()
    if plot is not None:
        from fedhh.experiments.report.account_figures import check_figure, plot_shuffle

        check_figure(plot)
    bounds = {
        key: bound_as_json(
            name,
            local_epsilon=local_epsilon,
            num_reports=reports,
            delta=delta,
            domain_size=selection,
        )
        for key, name in BOUND_KEYS.items()
    }
    opinions: dict[str, SecondOpinion] = {}
    if second_opinion:
        opinions = _opinions(
            bounds,
            local_epsilon=local_epsilon,
            num_reports=reports,
            delta=delta,
            domain_size=selection,
        )
        for key, bound in bounds.items():
            bound["second_opinion"] = opinions[key].to_dict() if key in opinions else None
    content: dict[str, Any] = {
        "unit": "item",
        "neighboring": "swap",
        "local_epsilon": local_epsilon,
        "reports": reports,
        "delta": delta,
        "bounds": bounds,
    }
    if selection is not None:
        lower = subset_selection_lower_bound(
            local_epsilon=local_epsilon,
            num_reports=reports,
            domain_size=selection,
            subset_size=paper_subset_size(local_epsilon, selection),
        )
        content["domain_size"] = selection
        content["true_epsilon_at_least"] = (
            None if isinstance(lower, NotApplicable) else lower.epsilon(delta)
        )
    if plot is not None:
        plot_shuffle(
            plot,
            local_epsilon=local_epsilon,
            num_reports=reports,
            delta=delta,
            domain_size=selection,
        )
    if output_format is AccountFormat.JSON:
        print_json(content)
        return
    table = Table(title=f"central epsilon at delta {delta:g}, item level, swap")
    for name in ("bound", "epsilon", "source"):
        table.add_column(name, overflow="fold")
    for key, bound in bounds.items():
        epsilon = bound["epsilon"]
        table.add_row(
            key.replace("_", " "),
            "not applicable" if epsilon is None else round_up(epsilon),
            "; ".join(each for each in (bound["source"], bound["note"], bound["reason"]) if each),
        )
    if content.get("true_epsilon_at_least") is not None:
        known = math.floor(content["true_epsilon_at_least"] * 1e6) / 1e6
        table.add_row("true value, at least", f"{known:.7g}", "an attack")
    open_console().print(table)
    if opinions:
        print_opinions(list(opinions.values()))
    if plot is not None:
        print_written(plot)


def _opinions(
    bounds: dict[str, dict[str, Any]],
    *,
    local_epsilon: float,
    num_reports: int,
    delta: float,
    domain_size: int | None,
) -> dict[str, SecondOpinion]:
    """Return a second opinion on each bound that states delta for every epsilon, by its key."""
    from fedhh.accounting.second_opinion import check_delta, opinion_on_shuffle
    from fedhh.cli.account.bounds import BOUND_KEYS

    check_delta(delta)
    return {
        key: opinion_on_shuffle(
            BOUND_KEYS[key],
            local_epsilon=local_epsilon,
            num_reports=num_reports,
            delta=delta,
            domain_size=domain_size,
            stated=bound["epsilon"],
        )
        for key, bound in bounds.items()
        if bound["applicable"] and BOUND_KEYS[key] != "closed-form"
    }
