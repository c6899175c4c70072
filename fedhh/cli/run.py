"""`fedhh run` for all kinds of experiments, and the words of single kinds for the same call."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fedhh.cli.options import (
    CHANGES,
    AlphaOption,
    ColumnsOption,
    ColumnsShownOption,
    ComparedSourceArgument,
    ConfigOption,
    DataOption,
    DeltaOption,
    DryRunOption,
    FirstSeedOption,
    FoldCaseOption,
    Format,
    FormatOption,
    KnownOption,
    LiveOption,
    MetricOption,
    OutOption,
    PipelineSourceArgument,
    PresetOption,
    QuietOption,
    RayAddressOption,
    RepeatedSourceArgument,
    ResumeOption,
    RowsOption,
    SeedOption,
    SeedsOption,
    SeparatorOption,
    SettingsOption,
    SourceArgument,
    SweepSourceArgument,
    TrustOption,
    VerboseOption,
    WorkersOption,
    changes,
    chosen_of,
)
from fedhh.validation import InputError

pipeline = typer.Typer(
    help="Devices over days: caps, an ingestor, an aggregator, and what devices lose.\n\n"
    "Example: fedhh pipeline run pipeline-small",
    no_args_is_help=True,
)
longitudinal = typer.Typer(
    help="Repeated collection: a discovery in each period, under a cap for each device.\n\n"
    "Example: fedhh longitudinal run weekly-small",
    no_args_is_help=True,
)


def run(  # noqa: PLR0917 - typer makes these options, only the source is positional
    source: SourceArgument = None,
    data: DataOption = None,
    settings: SettingsOption = None,
    seed: SeedOption = None,
    out: OutOption = None,
    resume: ResumeOption = False,
    workers: WorkersOption = None,
    dry_run: DryRunOption = False,
    live: LiveOption = False,
    output_format: FormatOption = Format.TABLE,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    preset: PresetOption = None,
    config: ConfigOption = None,
    trust: TrustOption = False,
    separator: SeparatorOption = None,
    columns: ColumnsOption = None,
    fold_case: FoldCaseOption = False,
    known: KnownOption = None,
    delta: DeltaOption = None,
    alpha: AlphaOption = None,
    ray_address: RayAddressOption = None,
) -> None:
    """Run an experiment of any kind, with its tables and figures; the file says its kind.

    Without a source: real words, two protocols on the same clients.

    Example: fedhh run --data words.parquet --set privacy.local_epsilon=6
    Example: fedhh run epsilon-n-quick --out runs/map
    """
    _run(None, locals())


def sweep(  # noqa: PLR0917
    source: SweepSourceArgument = None,
    preset: PresetOption = None,
    config: ConfigOption = None,
    settings: SettingsOption = None,
    seeds: SeedsOption = None,
    seed: FirstSeedOption = None,
    workers: WorkersOption = None,
    ray_address: RayAddressOption = None,
    out: OutOption = None,
    resume: ResumeOption = False,
    trust: TrustOption = False,
    dry_run: DryRunOption = False,
    live: LiveOption = False,
    output_format: FormatOption = Format.TABLE,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Run many settings and seeds: one table of results, figures over the settings.

    Example: fedhh sweep epsilon-n-quick --out runs/map
    """
    _run("sweep", locals())


def compare(  # noqa: PLR0917
    source: ComparedSourceArgument = None,
    preset: PresetOption = None,
    config: ConfigOption = None,
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
            help="Compare these protocols; repeatable: a label of the list, or a name, as sfp: the "
            "first of the list, or its default settings.",
        ),
    ] = None,
    as_published: Annotated[
        bool,
        typer.Option(
            "--as-published",
            help="Compare LDP TrieHH, Adaptive TrieHH and SFP with published settings, in place of "
            "best settings and one rule.",
        ),
    ] = False,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="UNIT-central-epsilon=E",
            help="Compare at equal central privacy before the run: item-central-epsilon=E or "
            "user-central-epsilon=E.",
        ),
    ] = None,
    seeds: SeedsOption = None,
    seed: FirstSeedOption = None,
    workers: WorkersOption = None,
    ray_address: RayAddressOption = None,
    ceiling: Annotated[
        bool,
        typer.Option(
            "--ceiling",
            help="Say which share of what is possible each protocol covers; asks all clients once "
            "more.",
        ),
    ] = False,
    metric: MetricOption = None,
    rows: RowsOption = None,
    table_columns: ColumnsShownOption = None,
    out: OutOption = None,
    resume: ResumeOption = False,
    trust: TrustOption = False,
    dry_run: DryRunOption = False,
    live: LiveOption = False,
    output_format: FormatOption = Format.TABLE,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Run protocols on the same clients, with several seeds: one table, figures.

    A source is a run's configuration or a sweep that lists protocols; the default run without one.
    Of a run, its protocol and its baselines are compared; without baselines, three at their best.
    For figures over epsilon: --set "privacy.local_epsilon=[4, 6, 8]".

    Example: fedhh compare --data words.parquet --seeds 3
    Example: fedhh compare --protocol adaptive-triehh --protocol pem
    Example: fedhh compare field-quick --at item-central-epsilon=1
    """
    _run("comparison", locals())


@pipeline.command("run")
def run_pipeline(  # noqa: PLR0917
    source: PipelineSourceArgument = None,
    preset: PresetOption = None,
    config: ConfigOption = None,
    days: Annotated[int | None, typer.Option(help="How many days.")] = None,
    devices: Annotated[int | None, typer.Option(help="How many devices.")] = None,
    use_cases: Annotated[
        list[str] | None, typer.Option("--use-case", help="Keep only this one; repeatable.")
    ] = None,
    settings: SettingsOption = None,
    seed: SeedOption = None,
    workers: WorkersOption = None,
    ray_address: RayAddressOption = None,
    out: OutOption = None,
    resume: ResumeOption = False,
    trust: TrustOption = False,
    dry_run: DryRunOption = False,
    live: LiveOption = False,
    output_format: FormatOption = Format.TABLE,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Let devices live for some days, and print what was learned and what it cost them.

    Example: fedhh pipeline run apple --days 30 --devices 100000
    """
    _run("pipeline", locals())


@longitudinal.command("run")
def run_longitudinal(  # noqa: PLR0917
    source: RepeatedSourceArgument = None,
    preset: PresetOption = None,
    config: ConfigOption = None,
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
    workers: WorkersOption = None,
    ray_address: RayAddressOption = None,
    out: OutOption = None,
    resume: ResumeOption = False,
    trust: TrustOption = False,
    dry_run: DryRunOption = False,
    live: LiveOption = False,
    output_format: FormatOption = Format.TABLE,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Repeat a discovery week by week: days until new words are found, and what devices lose.

    Words that are found are known to all devices from then on; only devices with budget left are
    asked.

    Example: fedhh longitudinal run weekly --protocol ldp-triehh --protocol sfp
    """
    _run("repeated-collection", locals())


def _run(kind: str | None, given: dict[str, Any]) -> None:
    """Run what the options of a command ask for; of one kind, or of any."""
    from fedhh.cli.experiment import run_experiment
    from fedhh.experiments.study.request import Request

    sources = [given[key] for key in ("source", "preset", "config") if given[key] is not None]
    if len(sources) > 1:
        raise InputError("Expected one of SOURCE, --preset and --config, got several; choose one.")
    chosen = chosen_of(given.get("metric"), given.get("rows"), given.get("table_columns"))
    request = Request(
        source=sources[0] if sources else None,
        settings=changes(**{key: value for key, value in given.items() if key in CHANGES}),
        data=given.get("data"),
        out=given["out"],
        resume=given["resume"],
        options={
            "protocols": tuple(given.get("protocol") or ()),
            "use_cases": tuple(given.get("use_cases") or ()),
            "as_published": given.get("as_published", False),
            "at": given.get("at"),
            "chosen": chosen,
        },
    )
    run_experiment(
        request,
        kind=kind,
        dry_run=given["dry_run"],
        live=given["live"],
        output_format=given["output_format"],
        quiet=given["quiet"],
        chosen=chosen,
    )
