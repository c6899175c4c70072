"""`fedhh longitudinal`: a discovery that is repeated over months."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedhh.cli.options import (
    ColumnsOption,
    DataOption,
    FoldCaseOption,
    Format,
    FormatOption,
    KnownOption,
    QuietOption,
    RayAddressOption,
    SeedOption,
    SeparatorOption,
    SettingsOption,
    TrustOption,
    VerboseOption,
    changes,
)

if TYPE_CHECKING:
    import pandas as pd

    from fedhh.longitudinal.repeated.config import Plan

longitudinal = typer.Typer(
    help="A discovery repeated over months, under a cap for each device.\n\n"
    "Example: fedhh longitudinal run --preset weekly-small",
    no_args_is_help=True,
)


def _presets(incomplete: str) -> list[str]:
    from fedhh.experiments.config.built_in import LONGITUDINAL, preset_names

    return [name for name in preset_names(LONGITUDINAL) if name.startswith(incomplete)]


@longitudinal.command("run")
def run_longitudinal(  # noqa: PLR0917 - typer makes these options, none is positional
    preset: Annotated[
        str | None, typer.Option(autocompletion=_presets, help="A built-in configuration.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file.")] = None,
    data: DataOption = None,
    separator: SeparatorOption = None,
    columns: ColumnsOption = None,
    fold_case: FoldCaseOption = False,
    known: KnownOption = None,
    settings: SettingsOption = None,
    protocol: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Compare these, in place of those configured; repeatable."
        ),
    ] = None,
    seed: SeedOption = None,
    workers: Annotated[
        str | None,
        typer.Option(
            metavar="N|auto", help="Protocols side by side; 0: no Ray; auto: what is sooner done."
        ),
    ] = None,
    ray_address: RayAddressOption = None,
    out: Annotated[Path | None, typer.Option(help="The directory.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the one in --out.")] = False,
    trust: TrustOption = False,
    output_format: FormatOption = Format.TABLE,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Repeat a discovery week by week: days until new words are found, and what devices lose.

    Words that are found are known to all devices from then on; only devices with budget left are
    asked.

    Example: fedhh longitudinal run --preset weekly --protocol ldp-triehh --protocol sfp
    """
    from fedhh.cli.console import open_console, print_directory, print_json, print_line
    from fedhh.cli.finished import print_finished
    from fedhh.cli.longitudinal_progress import LivePeriods
    from fedhh.cli.safe_text import safe_text
    from fedhh.experiments.run.run import check_cluster
    from fedhh.experiments.study.directory import check_directory, check_writable, unused_directory
    from fedhh.experiments.study.json_values import plain
    from fedhh.longitudinal.repeated.directory import FIGURES, write_result, write_table
    from fedhh.longitudinal.repeated.run import run_plan
    from fedhh.longitudinal.repeated.tables import all_tables
    from fedhh.longitudinal.report.repeated_figures import Collected, plot_repeated
    from fedhh.longitudinal.report.repeated_kind import RepeatedKind
    from fedhh.longitudinal.report.repeated_table import longitudinal_table, table_statement

    plan = _plan(
        preset=preset,
        config=config,
        data=data,
        settings=changes(
            settings,
            known=known,
            columns=columns,
            separator=separator,
            fold_case=fold_case or None,
            seed=seed,
            workers=workers,
            ray_address=ray_address,
        ),
        protocols=tuple(protocol or ()),
        out=out,
        resume=resume,
    )
    execution = plan.config.execution
    check_cluster(execution.workers, execution.ray_address)
    directory = out
    if directory is None:
        name = preset or (config.stem if config is not None else "longitudinal")
        directory = unused_directory(Path(plan.config.output.directory), name)
    if not resume:
        check_directory(directory)
    check_writable(directory)
    with LivePeriods(open_console(stderr=True), quiet=quiet) as progress:
        outcome = run_plan(plan, directory, resume=resume, listener=progress)
    tables = all_tables(outcome)
    for name, table in tables.items():
        write_table(directory, name, table)
    summary = longitudinal_table(outcome, tables)
    collected = Collected(section=plan.section, tables=tables)
    figures = plot_repeated(collected, directory / FIGURES)
    rows = [plain(record) for record in summary.records]
    skipped = _skipped(outcome.plan, tables["periods"])
    stated = table_statement(summary, skipped)
    write_result(directory, {"days": outcome.days, "protocols": rows, "table": stated})
    if output_format is Format.JSON:
        print_json({"days": outcome.days, "protocols": rows})
    elif quiet:
        print_directory(directory)
    else:
        print_finished(directory, RepeatedKind())
        print_line(open_console(), f"Days until found: {safe_text(figures[0], longest=None)}")


def _plan(
    *,
    preset: str | None,
    config: Path | None,
    data: Path | None,
    settings: tuple[str, ...],
    protocols: tuple[str, ...],
    out: Path | None,
    resume: bool,
) -> Plan:
    """Return what is asked for; a resumed discovery's is the one in its directory."""
    from fedhh.experiments.config.changes import apply_settings
    from fedhh.experiments.study.resume import resumed_directory
    from fedhh.longitudinal.repeated.config import load_plan, parse_plan
    from fedhh.longitudinal.repeated.directory import WHAT, stored_table

    if resume:
        directory = resumed_directory(out, what=WHAT)
        if not (preset or config or data or protocols):
            table = stored_table(directory)
            apply_settings(table, settings)
            return parse_plan(table, str(directory))
    return load_plan(preset=preset, file=config, settings=settings, data=data, protocols=protocols)


def _skipped(plan: Plan, periods: pd.DataFrame) -> list[str]:
    """Return a line for each protocol that made fewer runs than there were periods."""
    lines = []
    for arm in plan.arms:
        own = periods[(periods["protocol"] == arm.label) & (periods["status"] != "run")]
        if arm.asked_loss is not None:
            own = own[own["yearly_loss"] == arm.asked_loss]
        if len(own):
            first = own.iloc[0]
            lines.append(
                f"{arm.name}: no run in {len(own)} periods, first in period {first['period']}: "
                f"{first['reason']}"
            )
    return lines
