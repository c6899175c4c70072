"""`fedhh account plan`: the clients, or the local epsilon, of a plan for a central target."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedhh.cli.account.options import AccountFormat, AccountFormatOption
from fedhh.cli.options import RunPresetOption, SettingsOption

if TYPE_CHECKING:
    from rich.console import Console

    from fedhh.cli.account.plan_request import PlanAnswer


def plan(  # noqa: PLR0917 - typer makes these options, none is positional
    central_epsilon: Annotated[float, typer.Option(help="Target, before the run.")],
    unit: Annotated[str, typer.Option(help="Whose target: item or user.")] = "item",
    delta: Annotated[
        float | None, typer.Option(help="Central delta, 1e-14 to 0.1; 1e-10 or the preset's.")
    ] = None,
    local_epsilon: Annotated[
        float | None, typer.Option(help="Given this, how many clients?")
    ] = None,
    clients: Annotated[
        int | None, typer.Option(help="Given these, in all, which local epsilon?")
    ] = None,
    layers: Annotated[
        int | None, typer.Option(help="Layers of a pass, each with a cohort; 1 if none.")
    ] = None,
    passes: Annotated[int | None, typer.Option(help="Passes; 1 if none.")] = None,
    validation_share: Annotated[
        float | None, typer.Option(help="Share of all clients in a validation round, if any.")
    ] = None,
    max_items: Annotated[
        int | None, typer.Option(help="Contributions per client; 1 if none.")
    ] = None,
    oracle: Annotated[str | None, typer.Option(help="The randomizer; ss if none.")] = None,
    domain_size: Annotated[
        int | None, typer.Option(help="Values of every layer, the dummy included; any if none.")
    ] = None,
    eta_max: Annotated[
        int | None, typer.Option(help="Prefixes that a layer keeps, which bounds its values.")
    ] = None,
    alphabet_size: Annotated[
        int | None, typer.Option(help="With --eta-max: symbols, the end symbol included; 27.")
    ] = None,
    preset: RunPresetOption = None,
    config: Annotated[
        Path | None, typer.Option(help="A run's TOML file, whose protocol is the plan.")
    ] = None,
    settings: SettingsOption = None,
    output_format: AccountFormatOption = AccountFormat.TABLE,
) -> None:
    """Fewest clients, or the local epsilon, of a whole plan for a central target.

    A target is met by the bound that a run claims before it starts. Layers ask clients of their
    own; a protocol's layers, passes and validation round come from --preset or --config.

    Example: fedhh account plan --local-epsilon 6 --central-epsilon 1 --layers 10 --passes 2
    Example: fedhh account plan --preset default --central-epsilon 1 --unit user
    """
    from fedhh.cli.account.plan_request import Shape, plan_request
    from fedhh.cli.console import open_console, print_json

    request = plan_request(
        unit=unit,
        central_epsilon=central_epsilon,
        delta=delta,
        local_epsilon=local_epsilon,
        clients=clients,
        shape=Shape(
            layers=layers,
            passes=passes,
            validation_share=validation_share,
            max_items=max_items,
            oracle=oracle,
            domain_size=domain_size,
            eta_max=eta_max,
            alphabet_size=alphabet_size,
        ),
        preset=preset,
        config=config,
        settings=tuple(settings or ()),
    )
    answer = request.answer()
    if output_format is AccountFormat.JSON:
        print_json(answer.to_dict())
    elif output_format is AccountFormat.DP_EVENT:
        _print_event(open_console(), answer)
    else:
        _print(open_console(), answer)


def _print_event(console: Console, answer: PlanAnswer) -> None:
    """Print what the server reads of one item or client, as an event of dp-accounting."""
    from fedhh.accounting.dp_event import NEIGHBORS, event_of_plan, expression
    from fedhh.cli.console import print_line
    from fedhh.validation import InputError

    unit = answer.request.unit
    if answer.mechanism is None:
        raise InputError(f"No plan, so no event: {answer.reason}")
    event = event_of_plan(answer.mechanism, unit=unit)
    print_line(
        console, f"# {answer.request.title}: all reports about one {unit}, local; {NEIGHBORS}."
    )
    print_line(console, expression(event))


def _print(console: Console, answer: PlanAnswer) -> None:
    from rich.table import Table

    from fedhh.cli.account.bounds import round_up
    from fedhh.experiments.run.privacy import epsilon_of

    request = answer.request
    console.print(
        f"{request.title}: {request.unit} central epsilon {request.central_epsilon:g} at delta "
        f"{request.delta:g}, before the run"
    )
    if answer.mechanism is None:
        console.print(f"no plan: {answer.reason}")
        return
    local, central, local_of_user, central_of_user = answer.guarantees
    table = Table()
    for heading in ("", "item", "user"):
        table.add_column(heading, justify="right" if heading else "left")
    for label, pair in (
        ("local epsilon", (local, local_of_user)),
        ("central epsilon", (central, central_of_user)),
    ):
        table.add_row(label, *(round_up(epsilon_of(each)) for each in pair))
    table.add_row("central delta", f"{central.delta:g}", f"{central_of_user.delta:g}")
    table.add_row("central bound", central.method, central_of_user.method)
    console.print(table)
    cohorts, items = answer.cohorts, answer.mechanism.max_items
    fewest = f"{min(cohorts):,}"
    sizes = fewest if min(cohorts) == max(cohorts) else f"{fewest} to {max(cohorts):,}"
    rounds = "one round" if len(cohorts) == 1 else f"{len(cohorts)} rounds"
    console.print(
        f"{answer.clients:,} clients in all, in {rounds} of {sizes}, with {items} "
        f"contributions each of local epsilon {answer.local_epsilon:g}."
    )
    console.print("Neighbors swap one item, or all items of one user.")
    for each in (central, central_of_user):
        console.print(f"{each.unit}: {each.theorem}")
