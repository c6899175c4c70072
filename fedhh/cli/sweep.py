"""`fedhh sweep`: many settings and seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedhh.cli.options import (
    DryRunOption,
    FirstSeedOption,
    Format,
    FormatOption,
    LiveOption,
    QuietOption,
    RayAddressOption,
    ResumeOption,
    SettingsOption,
    SweepPresetOption,
    TrustOption,
    VerboseOption,
    changes,
)


def sweep(  # noqa: PLR0917 - typer makes these options, only the file is positional
    file: Annotated[Path | None, typer.Argument(help="A TOML file with \\[sweep].")] = None,
    preset: SweepPresetOption = None,
    config: Annotated[Path | None, typer.Option(help="The same as FILE.")] = None,
    settings: SettingsOption = None,
    seeds: Annotated[int | None, typer.Option(help="Seeds per cell.")] = None,
    seed: FirstSeedOption = None,
    workers: Annotated[
        str | None,
        typer.Option(
            metavar="N|auto",
            help="Cells that run side by side; 0: no Ray; auto: what is sooner done.",
        ),
    ] = None,
    ray_address: RayAddressOption = None,
    parallel: Annotated[
        str, typer.Option(help="What workers share: cells, clients (of one cell), or auto.")
    ] = "auto",
    out: Annotated[Path | None, typer.Option(help="The sweep's directory.")] = None,
    resume: ResumeOption = False,
    trust: TrustOption = False,
    dry_run: DryRunOption = False,
    live: LiveOption = False,
    output_format: FormatOption = Format.TABLE,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Run many settings and seeds: one table of results, figures over the settings.

    Example: fedhh sweep --preset epsilon-n-quick --out runs/map
    """
    from fedhh.cli.console import open_console, print_directory, print_json
    from fedhh.cli.sweep_request import SweepRequest, requested_table, run_requested
    from fedhh.cli.sweep_tables import draw_sweep, print_sweep
    from fedhh.experiments.report.sweep_kind import frame_rows
    from fedhh.validation import InputError

    if file is not None and config is not None:
        raise InputError("Expected FILE or --config, got both; give one.")
    request = SweepRequest(
        file=file or config,
        preset=preset,
        settings=changes(
            settings, seeds=seeds, seed=seed, workers=workers, ray_address=ray_address
        ),
        out=out,
        resume=resume,
        parallel=parallel,
        dry_run=dry_run,
        live=live,
        as_json=output_format is Format.JSON,
        quiet=quiet,
    )
    done = run_requested(requested_table(request), request)
    if done is None:
        return
    if done.has_results:
        draw_sweep(done.directory, quiet=quiet)
    if request.as_json:
        print_json(frame_rows(done.frame))
    elif quiet:
        print_directory(done.directory)
    else:
        print_sweep(open_console(), done.plan, done.frame, done.directory)
    if not done.is_complete:
        raise typer.Exit(1)
