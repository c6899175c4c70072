"""`fedhh attack`: how many fake clients a discovery survives."""

from __future__ import annotations

from typing import Annotated

import typer

from fedhh.cli.options import (
    ColumnsOption,
    DataOption,
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
    VerboseOption,
    WorkersOption,
    changes,
)


def attack(  # noqa: PLR0917 - typer makes these options, only the source is positional
    source: RunSourceArgument = None,
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
            help="Attack these protocols; repeatable; all: the source's own and its baselines.",
        ),
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=V1,V2",
            help="Attack with each value of a setting, as privacy.local_epsilon=2,8; repeatable.",
        ),
    ] = None,
    strategy: Annotated[
        str,
        typer.Option(
            help="output: reports crafted for the target; input: honest reports of the target."
        ),
    ] = "output",
    targets: Annotated[
        int, typer.Option(help="Words that the same fake clients push; all have to be found.")
    ] = 1,
    runs: Annotated[
        int, typer.Option(help="Runs of each setting, after those that find the range.")
    ] = 4,
    seed: SeedOption = None,
    workers: WorkersOption = None,
    ray_address: RayAddressOption = None,
    figure: FigureOption = None,
    output_format: FormatOption = Format.TABLE,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """How many fake clients get a word into the result that nobody holds, by protocol.

    Each run pushes many random words, each by its own number of fake clients.

    Example: fedhh attack small
    Example: fedhh attack small --protocol ldp-triehh --protocol sfp
    --vary privacy.local_epsilon=4,8 --figure attack.png
    """
    from fedhh.cli.console import open_console
    from fedhh.cli.progress import LiveProgress
    from fedhh.cli.text_tables import print_result
    from fedhh.experiments.attack.attack import attack as make_attack

    with LiveProgress(open_console(stderr=True), quiet=quiet) as progress:
        found = make_attack(
            source,
            settings=changes(
                settings,
                columns=columns,
                separator=separator,
                fold_case=fold_case,
                known=known,
                seed=seed,
                workers=workers,
                ray_address=ray_address,
            ),
            data=data,
            protocols=protocol or (),
            strategy=strategy,  # type: ignore[arg-type] # checked there
            targets=targets,
            vary=vary or (),
            runs=runs,
            callbacks=(progress,),
        )
    if figure is not None:
        from fedhh.experiments.report.attack_figures import plot_attack

        plot_attack(figure, found)
    print_result(output_format, found.to_dict, (found.table(),), figure=figure)
