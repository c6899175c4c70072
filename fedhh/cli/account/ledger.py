"""`fedhh account ledger`: what a device loses per day and over its life."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedhh.cli.account.options import (
    AccountFormat,
    AccountFormatOption,
    LifePlot,
    RulesPreset,
    SampleSeed,
    given,
)
from fedhh.cli.options import SecondOpinionOption, SettingsOption, TrustOption
from fedhh.validation import InputError, require_choice

if TYPE_CHECKING:
    from fedhh.longitudinal.ledger import Rules


def ledger(  # noqa: PLR0917 - typer makes these options, only the directory is positional
    directory: Annotated[
        str | None, typer.Argument(metavar="DIR", help="A finished run; the same as --run.")
    ] = None,
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
            "of a finished one, or a file of it."
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
    plot: LifePlot = None,
    second_opinion: SecondOpinionOption = False,
    output_format: AccountFormatOption = AccountFormat.TABLE,
) -> None:
    """What a device loses per record, event, day, 24 hours and over its life: local privacy.

    By the sum of epsilons, by advanced and by optimal (PLD) composition, of each use case and of
    all together. An audited system is also run, day by day, as a device that is always busy.

    Example: fedhh account ledger --preset macos-10.12 --days 365
    """
    from fedhh.cli.account.ledger_tables import print_ledger
    from fedhh.cli.console import open_console, print_json, print_line, print_written
    from fedhh.longitudinal.ledger import account_audited_ledger, account_ledger
    from fedhh.longitudinal.ledger.macos_presets import CONFIGURATIONS

    if directory is not None and run is not None:
        raise InputError("Expected DIR or --run, got both; give one.")
    run = directory if run is None else run
    is_event = output_format is AccountFormat.DP_EVENT
    if is_event and (second_opinion or plot is not None):
        raise InputError("Expected --format dp-event without --second-opinion and --plot.")
    own = bool(use_case or permanent)
    if sum([preset is not None, own, run is not None]) != 1:
        raise InputError(
            "Expected one of --preset, --run, and rules of your own by --use-case and --permanent."
        )
    if run is None and (settings or every is not None):
        raise InputError("Expected --set and --every only with --run.")
    asked: dict[str, Any] = {"num_days": days, "delta": delta, "without": without or ()}
    device = given(key_names=key_names, idle_days=idle_days, busy_days=busy_days, events=events)
    if preset is not None and preset in CONFIGURATIONS:
        found = account_audited_ledger(preset, **asked, **device, seed=seed)
    elif device:
        raise InputError(
            "Expected --key-names, --idle-days, --busy-days and --events only with a --preset of "
            f"{', '.join(CONFIGURATIONS)}."
        )
    else:
        rules, title = _rules(
            preset, run, use_case or (), permanent or (), every=every, settings=settings or ()
        )
        found = account_ledger(rules, title=title, **asked)
    if is_event:
        from fedhh.accounting.dp_event import NEIGHBORS, expression

        event = found.dp_event()
        print_line(
            open_console(),
            f"# {found.title}: all that a device sends in {days} days, local; neighbors: "
            f"{found.neighboring}, {NEIGHBORS}.",
        )
        print_line(open_console(), expression(event))
        return
    opinions = found.second_opinions() if second_opinion else None
    if plot is not None:
        from fedhh.longitudinal.report.account_figures import plot_ledger

        plot_ledger(
            plot,
            title=found.title,
            curve=found.curve(),
            spent=None if found.saturating is None else found.saturating.loss_by_day,
            delta=delta,
        )
    if output_format is AccountFormat.JSON:
        said = {} if opinions is None else {"second_opinion": [x.to_dict() for x in opinions]}
        print_json({**found.to_dict(), **said})
        return
    print_ledger(found, opinions)
    if plot is not None:
        print_written(plot)


def _rules(
    preset: str | None,
    run: str | None,
    use_cases: Sequence[str],
    permanent: Sequence[str],
    *,
    every: int | None,
    settings: Sequence[str],
) -> tuple[Rules, str]:
    """Return rules that are caps alone, and what they are called."""
    from fedhh.longitudinal.ledger import APPLE, rules_of_source
    from fedhh.longitudinal.ledger.macos_presets import CONFIGURATIONS

    if preset is not None:
        require_choice(["apple", *CONFIGURATIONS], preset=preset)
        return APPLE, "Apple's published caps"
    if run is None:
        from fedhh.cli.account.rule_text import rules_given

        return rules_given(use_cases, permanent), "your own rules"
    from fedhh.cli.finished import directory_of
    from fedhh.experiments.config.built_in import preset_names
    from fedhh.experiments.run.directory import is_finished
    from fedhh.experiments.study.kinds import nothing_finished

    source = Path(run)
    if run not in preset_names() and not run.endswith(".toml"):
        source = directory_of(source)
        if not source.is_file() and not is_finished(source):
            raise nothing_finished(source)
    return rules_of_source(source, every=7 if every is None else every, settings=settings)
