"""`fedhh run` for all kinds of experiments, and the words of single kinds for the same call."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

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
    SeedOption,
    SeparatorOption,
    SettingsOption,
    TrustOption,
    VerboseOption,
    changes,
)
from fedhh.validation import InputError


def _named(incomplete: str) -> list[str]:
    from fedhh.experiments.config.built_in import COMMANDS, preset_names

    names = [name for kind in COMMANDS for name in preset_names(kind)]
    return [name for name in names if name.startswith(incomplete)]


SourceArgument = Annotated[
    str | None,
    typer.Argument(
        autocompletion=_named,
        metavar="SOURCE",
        help="A preset's name, or a TOML file: of a run, or with a table sweep, "
        "sweep.protocols, pipeline or longitudinal.",
    ),
]
PresetOption = Annotated[
    str | None, typer.Option(autocompletion=_named, help="A built-in configuration, as SOURCE.")
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(help="A TOML file, as SOURCE; of a sweep with a table sweep or sweep.protocols."),
]
WorkersOption = Annotated[
    str | None,
    typer.Option(
        metavar="N|auto",
        help="Ray actors that hold clients, or cells and protocols side by side; 0: no Ray; auto: "
        "what is sooner done.",
    ),
]
OutOption = Annotated[Path | None, typer.Option(help="The directory; a new one if none.")]
SeedsOption = Annotated[int | None, typer.Option(help="Seeds per cell.")]

pipeline = typer.Typer(
    help="Devices over days: caps, an ingestor, an aggregator, and what devices lose.\n\n"
    "Example: fedhh pipeline run pipeline-small",
    no_args_is_help=True,
)
longitudinal = typer.Typer(
    help="A discovery repeated over months, under a cap for each device.\n\n"
    "Example: fedhh longitudinal run weekly-small",
    no_args_is_help=True,
)


def run(  # noqa: PLR0917 - typer makes these options, only the source is positional
    source: SourceArgument = None,
    preset: PresetOption = None,
    config: ConfigOption = None,
    data: DataOption = None,
    separator: SeparatorOption = None,
    columns: ColumnsOption = None,
    fold_case: FoldCaseOption = False,
    known: KnownOption = None,
    settings: SettingsOption = None,
    seed: SeedOption = None,
    workers: WorkersOption = None,
    ray_address: RayAddressOption = None,
    delta: Annotated[
        float | None, typer.Option(help="Delta of central guarantees, 1e-14 to 0.1.")
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="Alpha of approximate k-anonymity.")] = None,
    out: OutOption = None,
    resume: ResumeOption = False,
    trust: TrustOption = False,
    dry_run: DryRunOption = False,
    live: LiveOption = False,
    output_format: FormatOption = Format.TABLE,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Run an experiment of any kind, with its tables and figures; the file says its kind.

    Without a source: real words, two protocols on the same clients.

    Example: fedhh run --data words.parquet --set privacy.local_epsilon=6
    Example: fedhh run epsilon-n-quick --out runs/map
    """
    changed = changes(
        settings, known=known, columns=columns, separator=separator, fold_case=fold_case or None,
        delta=delta, alpha=alpha, seed=seed, workers=workers, ray_address=ray_address,
    )  # fmt: skip
    _run(None, (source, preset, config), changed, data, out, resume, dry_run, live, output_format,
         quiet)  # fmt: skip


def sweep(  # noqa: PLR0917
    source: SourceArgument = None,
    preset: PresetOption = None,
    config: ConfigOption = None,
    settings: SettingsOption = None,
    seeds: SeedsOption = None,
    seed: FirstSeedOption = None,
    workers: WorkersOption = None,
    ray_address: RayAddressOption = None,
    parallel: Annotated[
        str, typer.Option(help="What workers share: cells, clients (of one cell), or auto.")
    ] = "auto",
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
    changed = changes(settings, seeds=seeds, seed=seed, workers=workers, ray_address=ray_address)
    _run("sweep", (source, preset, config), changed, None, out, resume, dry_run, live,
         output_format, quiet, parallel=parallel)  # fmt: skip


def compare(  # noqa: PLR0917
    source: SourceArgument = None,
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
    out: OutOption = None,
    resume: ResumeOption = False,
    trust: TrustOption = False,
    dry_run: DryRunOption = False,
    live: LiveOption = False,
    output_format: FormatOption = Format.TABLE,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Run protocols on the same clients: one table, figures over epsilon.

    A source is a run's configuration, or a sweep that lists protocols.

    Without options: LDP TrieHH (greedy, random; one pass, two), Adaptive TrieHH and Apple's SFP
    (with CMS, with Subset Selection) on a chat population.

    Example: fedhh compare --data words.parquet --seeds 3
    Example: fedhh compare --protocol adaptive-triehh --protocol pem
    Example: fedhh compare field-quick --at item-central-epsilon=1
    """
    changed = changes(
        settings, known=known, columns=columns, separator=separator, fold_case=fold_case or None,
        seeds=seeds, seed=seed, workers=workers, ray_address=ray_address, ceiling=ceiling or None,
    )  # fmt: skip
    _run("comparison", (source, preset, config), changed, data, out, resume, dry_run, live,
         output_format, quiet, protocols=protocol or (), at=at)  # fmt: skip


@pipeline.command("run")
def run_pipeline(  # noqa: PLR0917
    source: SourceArgument = None,
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
    output_format: FormatOption = Format.TABLE,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Let devices live for some days, and print what was learned and what it cost them.

    Example: fedhh pipeline run apple --days 30 --devices 100000
    """
    changed = changes(
        settings, days=days, devices=devices, seed=seed, workers=workers, ray_address=ray_address
    )
    _run("pipeline", (source, preset, config), changed, None, out, resume, dry_run, False,
         output_format, quiet, use_cases=tuple(use_cases or ()))  # fmt: skip


@longitudinal.command("run")
def run_longitudinal(  # noqa: PLR0917
    source: SourceArgument = None,
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
    output_format: FormatOption = Format.TABLE,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Repeat a discovery week by week: days until new words are found, and what devices lose.

    Words that are found are known to all devices from then on; only devices with budget left are
    asked.

    Example: fedhh longitudinal run weekly --protocol ldp-triehh --protocol sfp
    """
    changed = changes(
        settings, known=known, columns=columns, separator=separator, fold_case=fold_case or None,
        seed=seed, workers=workers, ray_address=ray_address,
    )  # fmt: skip
    _run("repeated-collection", (source, preset, config), changed, data, out, resume, dry_run,
         False, output_format, quiet, protocols=tuple(protocol or ()))  # fmt: skip


def _run(  # noqa: PLR0917
    kind: str | None,
    sources: tuple[str | Path | None, ...],
    settings: tuple[str, ...],
    data: Path | None,
    out: Path | None,
    resume: bool,
    dry_run: bool,
    live: bool,
    output_format: Format,
    quiet: bool,
    **options: Any,
) -> None:
    from fedhh.cli.experiment import run_experiment
    from fedhh.experiments.study.request import Request

    given = [each for each in sources if each is not None]
    if len(given) > 1:
        raise InputError("Expected one of SOURCE, --preset and --config, got several; choose one.")
    request = Request(
        source=given[0] if given else None,
        settings=settings,
        data=data,
        out=out,
        resume=resume,
        options=options,
    )
    run_experiment(
        request, kind=kind, dry_run=dry_run, live=live, output_format=output_format, quiet=quiet
    )
