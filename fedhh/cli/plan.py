"""`fedhh plan`: settings for a goal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedhh.cli.options import (
    ColumnsOption,
    DataOption,
    DeltaOption,
    FigureOption,
    FoldCaseOption,
    Format,
    FormatOption,
    KnownOption,
    QuietOption,
    RayAddressOption,
    RunSourceArgument,
    SeedOption,
    SeparatorOption,
    SettingsOption,
    TrustOption,
    VerboseOption,
    WorkersOption,
    changes,
)


def plan(  # noqa: PLR0917 - typer makes these options, only the source is positional
    source: RunSourceArgument = None,
    data: DataOption = None,
    separator: SeparatorOption = None,
    columns: ColumnsOption = None,
    fold_case: FoldCaseOption = False,
    known: KnownOption = None,
    settings: SettingsOption = None,
    held_by: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Find the words held by at least this share of clients, as 1/10000; without it, "
            "as much coverage as possible.",
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="UNIT-central-epsilon=E",
            help="The most before the run: item-central-epsilon=E or user-central-epsilon=E.",
        ),
    ] = None,
    local_epsilon: Annotated[
        float | None, typer.Option(help="The most of one contribution.")
    ] = None,
    delta: DeltaOption = None,
    days: Annotated[float | None, typer.Option(help="The most days.")] = None,
    rounds_per_day: Annotated[
        float, typer.Option(help="Rounds that follow each other in a day; 0.5 for two days each.")
    ] = 1.0,
    max_upload: Annotated[
        str | None, typer.Option(metavar="SIZE", help="The most that a client sends, as 100kB.")
    ] = None,
    max_download: Annotated[
        str | None, typer.Option(metavar="SIZE", help="The most that a client receives.")
    ] = None,
    max_bytes: Annotated[
        str | None, typer.Option(metavar="SIZE", help="The most of both together.")
    ] = None,
    min_precision: Annotated[
        float, typer.Option(help="The least share of returned words that somebody holds.")
    ] = 0.5,
    trust_model: Annotated[
        str, typer.Option(help="Whom clients trust: local (nobody), central, hybrid, ..., or all.")
    ] = "all",
    protocol: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Plan with these protocols; repeatable."),
    ] = None,
    runs: Annotated[int, typer.Option(help="Runs of the search, its budget.")] = 60,
    seed: SeedOption = None,
    workers: WorkersOption = None,
    ray_address: RayAddressOption = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the best settings for fedhh run: a TOML file."),
    ] = None,
    figure: FigureOption = None,
    trust: TrustOption = False,
    output_format: FormatOption = Format.TABLE,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Settings for a goal: which protocol, epsilon, B and cohorts find most within the limits.

    Candidates run on clients of the source, drawn by another seed than the run's.

    Example: fedhh plan --held-by 1/10000 --at item-central-epsilon=1 --days 14
    --max-bytes 100kB --out plan.toml
    Example: fedhh plan small --local-epsilon 8 --trust-model local --figure front.png
    """
    from fedhh.cli.console import open_console, print_written
    from fedhh.cli.progress import LiveProgress
    from fedhh.cli.text_tables import print_result
    from fedhh.experiments.planner.deployment import check_plan_file
    from fedhh.experiments.planner.planner import plan as make_plan

    if out is not None:
        check_plan_file(out)
    with LiveProgress(open_console(stderr=True), quiet=quiet) as progress:
        found = make_plan(
            source,
            settings=changes(
                settings,
                columns=columns,
                separator=separator,
                fold_case=fold_case,
                known=known,
                delta=delta,
                seed=seed,
                workers=workers,
                ray_address=ray_address,
            ),
            data=data,
            held_by=held_by,
            at=at,
            local_epsilon=local_epsilon,
            days=days,
            rounds_per_day=rounds_per_day,
            max_upload=max_upload,
            max_download=max_download,
            max_bytes=max_bytes,
            min_precision=min_precision,
            trust_model=trust_model,
            protocols=protocol or (),
            runs=runs,
            callbacks=(progress,),
        )
    if out is not None:
        found.write(out)
    if figure is not None:
        from fedhh.experiments.report.plan_figures import plot_plan

        plot_plan(figure, found)
    print_result(output_format, found.to_dict, found.parts, figure=figure)
    if out is not None and output_format is Format.TABLE:
        print_written(out)
