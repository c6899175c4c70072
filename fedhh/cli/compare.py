"""`fedhh compare`: protocols side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedhh.cli.options import (
    ColumnsOption,
    DataOption,
    DryRunOption,
    FirstSeedOption,
    FoldCaseOption,
    Format,
    FormatOption,
    KnownOption,
    LiveOption,
    QuietOption,
    RayAddressOption,
    ResumeOption,
    SeparatorOption,
    SettingsOption,
    SweepPresetOption,
    TrustOption,
    VerboseOption,
    changes,
)

if TYPE_CHECKING:
    from fedhh.cli.sweep_request import DoneSweep, SweepRequest

_WIDTH = 132


def compare(  # noqa: PLR0917 - typer makes these options, none is positional
    preset: SweepPresetOption = None,
    config: Annotated[
        Path | None, typer.Option(help="A TOML file, of a run or with \\[sweep.protocols].")
    ] = None,
    data: DataOption = None,
    separator: SeparatorOption = None,
    columns: ColumnsOption = None,
    fold_case: FoldCaseOption = False,
    known: KnownOption = None,
    settings: SettingsOption = None,
    protocol: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Compare these protocols; repeatable: a name, as sfp, or a label of the list.",
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="UNIT-central-epsilon=E",
            help="Compare at equal central privacy before the run: item-central-epsilon=E or "
            "user-central-epsilon=E.",
        ),
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Seeds per protocol and epsilon.")] = None,
    seed: FirstSeedOption = None,
    workers: Annotated[
        str | None,
        typer.Option(
            metavar="N|auto", help="Runs side by side; 0: no Ray; auto: what is sooner done."
        ),
    ] = None,
    ray_address: RayAddressOption = None,
    ceiling: Annotated[
        bool,
        typer.Option(
            "--ceiling",
            help="Say which share of what is possible each protocol covers; asks all clients once "
            "more.",
        ),
    ] = False,
    out: Annotated[Path | None, typer.Option(help="The comparison's directory.")] = None,
    resume: ResumeOption = False,
    trust: TrustOption = False,
    dry_run: DryRunOption = False,
    live: LiveOption = False,
    output_format: FormatOption = Format.TABLE,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Run protocols side by side on the same clients: one table, figures over epsilon.

    Without options: LDP TrieHH (greedy, random; one pass, two), Adaptive TrieHH and Apple's SFP
    (with CMS, with Subset Selection) on a chat population.

    Example: fedhh compare --data words.parquet --seeds 3
    Example: fedhh compare --protocol adaptive-triehh --protocol pem
    Example: fedhh compare --preset field-quick --at item-central-epsilon=1
    """
    from fedhh.cli.sweep_request import SweepRequest
    from fedhh.validation import InputError

    if preset is not None and config is not None:
        raise InputError("Expected --preset or --config, got both; choose one.")
    request = SweepRequest(
        file=config,
        preset=preset,
        settings=changes(
            settings,
            known=known,
            columns=columns,
            separator=separator,
            fold_case=fold_case or None,
            seeds=seeds,
            seed=seed,
            workers=workers,
            ray_address=ray_address,
            ceiling=True if ceiling else None,
        ),
        out=out,
        resume=resume,
        dry_run=dry_run,
        data=data,
        live=live,
        as_json=output_format is Format.JSON,
        quiet=quiet,
    )
    done = _compare(request, at, protocol or [])
    if done is not None and not done.is_complete:
        raise typer.Exit(1)


def _compare(request: SweepRequest, at: str | None, protocols: Sequence[str]) -> DoneSweep | None:
    """Run protocols side by side, and write and print what came out."""
    from fedhh.cli.comparison import (
        DEFAULT_COMPARISON,
        comparison_at,
        comparison_of,
        print_comparison,
        with_chosen,
        write_comparison,
    )
    from fedhh.cli.console import open_console, print_directory, print_json, print_places
    from fedhh.cli.sweep_request import requested_table, run_requested
    from fedhh.cli.sweep_tables import draw_sweep, print_failures
    from fedhh.experiments.report.sweep_kind import frame_rows

    if request.preset is None and request.file is None and not request.resume:
        request = replace(request, preset=DEFAULT_COMPARISON)
    requested, origin = requested_table(request)
    table = comparison_of(requested, origin, settings=request.settings)
    if protocols:
        table = with_chosen(table, protocols)
    if at is not None:
        table = comparison_at(table, at)
    done = run_requested((table, origin), request)
    if done is None:
        return None
    console = open_console(stderr=request.as_json, width_unless_terminal=_WIDTH)
    print_failures(console, done.frame)
    if done.has_results:
        write_comparison(done)
        draw_sweep(done.directory, quiet=request.quiet)
    if request.as_json:
        print_json(frame_rows(done.frame))
    elif request.quiet:
        print_directory(done.directory)
    else:
        if done.has_results:
            print_comparison(console, done)
        print_places(console, done.directory, has_settings=True)
    return done
