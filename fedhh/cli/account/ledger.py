"""`fedhh account ledger`: what a device loses per day and over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedhh.cli.account.options import (
    AccountFormat,
    AccountFormatOption,
    RulesOption,
    SampleSeed,
    UseCaseOption,
    given,
)
from fedhh.cli.options import FigureOption, SettingsOption, TrustOption
from fedhh.validation import InputError, require_choice

if TYPE_CHECKING:
    from fedhh.longitudinal.ledger import LedgerAccount, Rules


def ledger(  # noqa: PLR0917 - typer makes these options, only the source is positional
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="SOURCE",
            help="A discovery run, started anew every so many days: preset, file, or the directory "
            "of a finished one, or a file of it.",
        ),
    ] = None,
    rules: RulesOption = None,
    use_case: UseCaseOption = None,
    permanent: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=EPSILON:VALUES",
            help="A use case of permanent responses; repeatable: the epsilon of all answers about "
            "one value, and how many values a device has in all.",
        ),
    ] = None,
    settings: SettingsOption = None,
    trust: TrustOption = False,
    every: Annotated[
        int | None, typer.Option(help="With SOURCE: days between two starts; 7 if not said.")
    ] = None,
    days: Annotated[int, typer.Option(help="Days of the device, from opt-in.")] = 365,
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
        float, typer.Option(help="Of optimal (PLD) composition, 1e-14 to 0.1.")
    ] = 1e-10,
    seed: SampleSeed = 0,
    figure: FigureOption = None,
    output_format: AccountFormatOption = AccountFormat.TABLE,
) -> None:
    """What a device loses per record, event, day, 24 hours and in all: local privacy.

    By the sum of epsilons and by optimal (PLD) composition, of each use case and of all together.
    An audited system is also run, day by day, as its worst-case device.

    Example: fedhh account ledger --rules macos-10.12 --days 365
    """
    from fedhh.cli.text_tables import print_result
    from fedhh.longitudinal.ledger import account_audited_ledger, account_ledger
    from fedhh.longitudinal.ledger.macos_presets import CONFIGURATIONS
    from fedhh.longitudinal.report.account_tables import ledger_parts

    is_event = output_format is AccountFormat.DP_EVENT
    if is_event and figure is not None:
        raise InputError("Expected --format dp-event without --figure.")
    if sum([rules is not None, bool(use_case or permanent), source is not None]) != 1:
        raise InputError(
            "Expected one of SOURCE, --rules, and rules of your own by --use-case and --permanent."
        )
    if source is None and (settings or every is not None):
        raise InputError("Expected --set and --every only with SOURCE, a run.")
    asked: dict[str, Any] = {"num_days": days, "delta": delta, "without": without or ()}
    device = given(key_names=key_names, idle_days=idle_days, busy_days=busy_days, events=events)
    if rules is not None and rules in CONFIGURATIONS:
        found = account_audited_ledger(rules, **asked, **device, seed=seed)
    elif device:
        raise InputError(
            "Expected --key-names, --idle-days, --busy-days and --events only with --rules of "
            f"{', '.join(CONFIGURATIONS)}."
        )
    else:
        stated, title = _rules(
            rules, source, use_case or (), permanent or (), every=every, settings=settings or ()
        )
        found = account_ledger(stated, title=title, **asked)
    if is_event:
        _print_event(found)
        return
    if figure is not None:
        from fedhh.longitudinal.report.account_figures import plot_ledger

        plot_ledger(
            figure,
            title=found.title,
            curve=found.curve(),
            spent=None if found.saturating is None else found.saturating.loss_by_day,
            delta=delta,
        )
    print_result(output_format, found.to_dict, ledger_parts(found), figure=figure)


def _print_event(found: LedgerAccount) -> None:
    from fedhh.accounting.dp_event import NEIGHBORS, expression
    from fedhh.cli.console import open_console, print_line

    event = found.dp_event()
    print_line(
        open_console(),
        f"# {found.title}: all that a device sends in {found.num_days} days, local; neighbors: "
        f"{found.neighboring}, {NEIGHBORS}.",
    )
    print_line(open_console(), expression(event))


def _rules(
    rules: str | None,
    source: str | None,
    use_cases: Sequence[str],
    permanent: Sequence[str],
    *,
    every: int | None,
    settings: Sequence[str],
) -> tuple[Rules, str]:
    """Return rules that are caps alone, and what they are called."""
    from fedhh.longitudinal.ledger import APPLE, rules_of_source
    from fedhh.longitudinal.ledger.macos_presets import CONFIGURATIONS

    if rules is not None:
        require_choice(["apple", *CONFIGURATIONS], rules=rules)
        return APPLE, "Apple's published caps"
    if source is None:
        from fedhh.cli.account.rule_text import rules_given

        return rules_given(use_cases, permanent), "your own rules"
    from fedhh.cli.finished import directory_of
    from fedhh.experiments.config.built_in import preset_names
    from fedhh.experiments.run.directory import is_finished
    from fedhh.experiments.study.kinds import nothing_finished

    path = Path(source)
    if source not in preset_names() and not source.endswith(".toml"):
        path = directory_of(path)
        if not path.is_file() and not is_finished(path):
            raise nothing_finished(path)
    return rules_of_source(path, every=7 if every is None else every, settings=settings)
