"""`fedhh account ledger`: what a device loses per day and over its life."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedhh.cli.account.options import AccountFormat, AccountFormatOption, RulesPreset, SampleSeed
from fedhh.cli.options import SecondOpinionOption, SettingsOption, TrustOption
from fedhh.validation import InputError


def ledger(  # noqa: PLR0917 - typer makes these options, none is positional
    preset: RulesPreset = None,
    use_case: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=EPSILON:RECORDS",
            help="Rules of your own; repeatable. In full "
            "NAME=EPSILON:RECORDS/DAYS:ROLLOVER:LIFETIME: the epsilon of a record (2+6 if it is "
            "two reports), how many are sent in so many days (one if not said), how many unused "
            "ones are kept (0 if not said; or unlimited), how many are ever sent.",
        ),
    ] = None,
    permanent: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=EPSILON:VALUES",
            help="A use case of permanent responses; repeatable: the epsilon of all answers about "
            "one value, and how many values a device has in its life.",
        ),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(
            help="A discovery run, started anew every so many days: preset, file, or the directory "
            "of a finished one."
        ),
    ] = None,
    settings: SettingsOption = None,
    trust: TrustOption = False,
    every: Annotated[
        int | None, typer.Option(help="With --run: days between two starts; 7 if not said.")
    ] = None,
    days: Annotated[int, typer.Option(help="Days of the device's life, from opt-in.")] = 365,
    without: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Leave out a use case; repeatable. Of a budget, the last word will do.",
        ),
    ] = None,
    key_names: Annotated[
        int | None,
        typer.Option(
            help="Audited systems: names (languages) of a budget that a device uses; 1 if not said."
        ),
    ] = None,
    idle_days: Annotated[
        int | None,
        typer.Option(help="Audited systems: first days on which nothing happens; 0 if not said."),
    ] = None,
    busy_days: Annotated[
        int | None,
        typer.Option(help="Audited systems: days after those on which something does; else all."),
    ] = None,
    events: Annotated[
        int | None,
        typer.Option(help="Audited systems: events of each name on a busy day; 10 if not said."),
    ] = None,
    delta: Annotated[
        float, typer.Option(help="Of advanced and PLD composition, 1e-14 to 0.1.")
    ] = 1e-10,
    seed: SampleSeed = 0,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", "--figure", help="Draw the loss over life: PNG, PDF or SVG."),
    ] = None,
    second_opinion: SecondOpinionOption = False,
    output_format: AccountFormatOption = AccountFormat.TABLE,
) -> None:
    """What a device loses per record, event, day, 24 hours and over its life: local privacy.

    By the sum of epsilons, by advanced and by optimal (PLD) composition, of each use case and of
    all together. An audited system is also run, day by day, as a device that is always busy.

    Example: fedhh account ledger --preset macos-10.12 --days 365
    """
    from fedhh.cli.account.ledger_request import LedgerRequest
    from fedhh.cli.account.ledger_tables import print_event, print_ledger

    request = LedgerRequest(
        preset=preset,
        use_cases=tuple(use_case or ()),
        permanent=tuple(permanent or ()),
        run=run,
        settings=tuple(settings or ()),
        every=every,
        num_days=days,
        without=tuple(without or ()),
        key_names=key_names,
        idle_days=idle_days,
        busy_days=busy_days,
        events=events,
        delta=delta,
        seed=seed,
    )
    if output_format is AccountFormat.DP_EVENT:
        if second_opinion or plot is not None:
            raise InputError("Expected --format dp-event without --second-opinion and --plot.")
        print_event(request)
        return
    print_ledger(
        request,
        plot=plot,
        second_opinion=second_opinion,
        as_json=output_format is AccountFormat.JSON,
    )
