"""`fedhh account plan`: the clients, or the local epsilon, of a plan for a central target."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedhh.cli.account.options import AccountFormat, AccountFormatOption, HonestShare, asked_of
from fedhh.cli.options import RunPresetOption, SettingsOption
from fedhh.validation import InputError

if TYPE_CHECKING:
    from fedhh.accounting.guarantees import NotApplicable
    from fedhh.accounting.plan import Plan
    from fedhh.accounting.plan_account import FoundPlan
    from fedhh.experiments.study.parts import Part

_SHAPE = (
    "layers", "passes", "validation_share", "max_items", "oracle", "domain_size", "eta_max",
    "alphabet_size",
)  # fmt: skip
"""What a `LayeredPlan` is made of."""


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
    honest_share: HonestShare = None,
    preset: RunPresetOption = None,
    config: Annotated[
        Path | None, typer.Option(help="A run's TOML file, whose protocol is the plan.")
    ] = None,
    settings: SettingsOption = None,
    output_format: AccountFormatOption = AccountFormat.TABLE,
) -> None:
    """Fewest clients, or the local epsilon, of a whole plan for a central target.

    A target is met by the bound that a run claims before it starts. Layers ask clients of their
    own; a protocol's layers, passes and validation round come from --preset or --config. With
    --honest-share, the other clients tell the server their reports.

    Example: fedhh account plan --local-epsilon 6 --central-epsilon 1 --layers 10 --passes 2
    Example: fedhh account plan --preset default --central-epsilon 1 --unit user
    """
    asked = asked_of(locals())
    from fedhh.accounting.guarantees import NotApplicable
    from fedhh.accounting.plan_account import LayeredPlan, account_plan
    from fedhh.cli.text_tables import print_result
    from fedhh.experiments.study.parts import Line

    shape = {name: asked.pop(name) for name in _SHAPE if name in asked}
    for name in ("preset", "config", "settings"):
        asked.pop(name, None)
    if preset is None and config is None:
        if settings:
            raise InputError("Expected --set only with --preset or --config.")
        plans: Callable[[int, float], Plan] = (layered := LayeredPlan(**shape))
        title, delta = layered.title, 1e-10 if delta is None else delta
    else:
        if shape:
            raise InputError(
                "Expected the plan from --preset or --config, or from --layers, --passes and the "
                "like, got both; change a preset's by --set protocol.KEY=VALUE."
            )
        from fedhh.experiments.config.load import load_config
        from fedhh.experiments.config.protocol import build_protocol
        from fedhh.experiments.run.equal_privacy import plans_of

        changed = [*(settings or ()), *([] if delta is None else [f"privacy.delta={delta!r}"])]
        loaded = load_config(preset=preset, file=config, settings=changed)
        protocol = build_protocol(loaded).with_central_epsilon(central_epsilon)
        plans, title, delta = plans_of(protocol), protocol.title, loaded.privacy.delta
        if local_epsilon is None and clients is None and loaded.privacy.central_target is None:
            asked["local_epsilon"] = loaded.privacy.local_epsilon
    found = account_plan(plans, **{**asked, "title": title, "delta": delta})
    if output_format is AccountFormat.DP_EVENT:
        _print_event(found)
        return
    target = f"{title}: {unit} central epsilon {central_epsilon:g} at delta {delta:g}"
    head = Line(f"{target}, before the run")
    if isinstance(found, NotApplicable):
        reason = found.reason
        parts = (head, Line(f"no plan: {reason}"))
        print_result(output_format, lambda: {"plan": None, "reason": reason}, parts)
    else:
        print_result(output_format, found.to_dict, (head, *_parts(found)))


def _print_event(found: FoundPlan | NotApplicable) -> None:
    """Print what the server reads of one item or client, as an event of dp-accounting."""
    from fedhh.accounting.dp_event import NEIGHBORS, event_of_plan, expression
    from fedhh.accounting.guarantees import NotApplicable
    from fedhh.cli.console import open_console, print_line

    if isinstance(found, NotApplicable):
        raise InputError(f"No plan, so no event: {found.reason}")
    event = event_of_plan(found.plan, unit=found.unit)
    console = open_console()
    print_line(console, f"# {found.title}: all reports about one {found.unit}, local; {NEIGHBORS}.")
    print_line(console, expression(event))


def _parts(found: FoundPlan) -> Iterator[Part]:
    from fedhh.accounting.guarantees import UNITS
    from fedhh.experiments.run.privacy import epsilon_of
    from fedhh.experiments.study.parts import Line
    from fedhh.experiments.study.text_table import TextTable, round_up

    local = [found.report.best(unit, "local") for unit in UNITS]
    central = [found.report.before_run(unit) for unit in UNITS]
    yield TextTable(
        title="",
        columns=("", *UNITS),
        rows=(
            ("local epsilon", *(round_up(epsilon_of(each)) for each in local)),
            ("central epsilon", *(round_up(epsilon_of(each)) for each in central)),
            ("central delta", *(f"{each.delta:g}" for each in central)),
            ("central bound", *(each.method for each in central)),
        ),
        note="",
    )
    yield Line(f"{found.shape}.")
    if found.honest_share < 1:
        yield Line(
            f"{found.honest_share:.4g} of all clients are honest; the others tell the server their "
            f"reports. Layers have at least {central[0].smallest_cohort:,} honest clients."
        )
    other = central[1] if found.unit == "item" else central[0]
    yield Line(f"{other.unit}: {other.theorem}")
    yield Line("To quote:", style="bold")
    yield Line(found.statement, is_whole=True)
