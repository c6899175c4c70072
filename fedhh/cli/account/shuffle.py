"""`fedhh account shuffle`: central epsilon of one shuffle."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer

from fedhh.cli.account.options import Delta, DomainSize, LocalEpsilon, Plot, Reports
from fedhh.cli.options import Format, FormatOption


def shuffle(  # noqa: PLR0917 - typer makes these options, none is positional
    local_epsilon: LocalEpsilon,
    reports: Reports,
    delta: Delta = 1e-10,
    oracle: Annotated[str, typer.Option(help="ss, or any for any randomizer.")] = "any",
    domain_size: DomainSize = None,
    plot: Plot = None,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Central epsilon of one shuffle, item level, by every bound.

    Example: fedhh account shuffle --local-epsilon 10 --reports 30000000 --oracle ss
    --domain-size 1000001
    """
    from rich.table import Table

    from fedhh.accounting import NotApplicable, paper_subset_size, subset_selection_lower_bound
    from fedhh.cli.account.bounds import BOUND_KEYS, bound_as_json, round_up, selection_of
    from fedhh.cli.console import open_console, print_json, print_written

    selection = selection_of(oracle, domain_size)
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
    if output_format is Format.JSON:
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
    if plot is not None:
        print_written(plot)
