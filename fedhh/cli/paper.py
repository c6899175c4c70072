"""`fedhh paper`: published numbers of the field, computed again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedhh.cli.options import Format, FormatOption, QuietOption, VerboseOption


def _names(incomplete: str) -> list[str]:
    from fedhh.experiments.papers.registry import PAPERS

    return [name for name in PAPERS if name.startswith(incomplete)]


def paper(  # noqa: PLR0917 - typer makes these options, only the name is positional
    name: Annotated[
        str | None,
        typer.Argument(autocompletion=_names, help="Which; without it, all names are printed."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A scaled version, of under a minute.")
    ] = False,
    seed: Annotated[int, typer.Option(help="The first seed of all that is drawn.")] = 0,
    out: Annotated[Path | None, typer.Option(help="The reproduction's directory.")] = None,
    output_format: FormatOption = Format.TABLE,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Compute published numbers again, beside what their papers state: table, figure, findings.

    Example: fedhh paper oracle-crossover
    """
    from fedhh.cli.console import open_console, print_directory, print_json, print_line
    from fedhh.experiments.papers.registry import PAPERS, reproduction_of
    from fedhh.validation import require_at_least

    if name is None:
        _print_names(output_format)
        return
    reproduce = reproduction_of(name)
    require_at_least(0, seed=seed)

    from fedhh.cli.text_tables import print_table
    from fedhh.experiments.papers.reproduction import write_reproduction
    from fedhh.experiments.run.directory import check_directory, plain, unused_directory

    command = " ".join(
        [
            "fedhh paper",
            name,
            *(["--quick"] if quick else []),
            *([f"--seed {seed}"] if seed else []),
        ]
    )
    suffix = "_quick" if quick and PAPERS[name].has_quick else ""
    directory = out or unused_directory(Path("runs"), f"paper_{name}{suffix}")
    check_directory(directory)
    progress = open_console(stderr=True)
    made = reproduce(quick=quick, seed=seed, say=(lambda line: None) if quiet else progress.print)
    paths = write_reproduction(made, directory, command=command)
    if output_format is Format.JSON:
        records = [plain(record) for record in made.summary.records]
        print_json({"paper": name, "records": records, "findings": list(made.findings)})
    elif quiet:
        print_directory(directory)
    else:
        console = open_console(width_unless_terminal=132)
        print_table(console, made.summary)
        for finding in made.findings:
            print_line(console, f"- {finding}")
        print_line(console, f"Files: {directory} ({', '.join(path.name for path in paths)})")


def _print_names(output_format: Format) -> None:
    from fedhh.cli.console import print_json
    from fedhh.experiments.papers.registry import PAPERS

    if output_format is Format.JSON:
        print_json([{"name": name, "what": paper.line} for name, paper in PAPERS.items()])
        return
    for name, each in PAPERS.items():
        typer.echo(f"{name:<20}{each.line}")
