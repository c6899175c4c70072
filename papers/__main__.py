"""`python -m papers`: published numbers of the field, computed again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedhh.cli.app import main
from fedhh.cli.options import Format, FormatOption, QuietOption, VerboseOption

app = typer.Typer(
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    add_completion=False,
)


@app.command()
def papers(  # noqa: PLR0917 - typer makes these options, only the name is positional
    name: Annotated[
        str | None,
        typer.Argument(help="Which; without it, all names are printed."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A scaled version, of under a minute.")
    ] = False,
    seed: Annotated[int, typer.Option(help="The first seed of all that is drawn.")] = 0,
    data: Annotated[
        Path | None, typer.Option(help="For pem: the search log; docs/reproductions.md has it.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The reproduction's directory.")] = None,
    output_format: FormatOption = Format.TABLE,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Compute published numbers again, next to what their papers state: table, figure, findings.

    Example: python -m papers oracle-crossover
    """
    from fedhh.cli.console import open_console, print_directory, print_json, print_line
    from fedhh.validation import require_at_least
    from papers.registry import PAPERS, reproduction_of

    if name is None:
        _print_names(output_format)
        return
    reproduce = reproduction_of(name, data=data)
    require_at_least(0, seed=seed)

    from fedhh.cli.text_tables import print_table
    from fedhh.experiments.study.directory import check_directory, check_writable, unused_directory
    from fedhh.experiments.study.json_values import plain
    from papers.reproduction import write_reproduction

    command = " ".join(
        [
            "python -m papers",
            name,
            *(["--quick"] if quick else []),
            *([f"--seed {seed}"] if seed else []),
            *([f"--data {data.name}"] if data else []),
        ]
    )
    suffix = "_quick" if quick and PAPERS[name].has_quick else ""
    directory = out or unused_directory(Path("runs"), f"paper_{name}{suffix}")
    check_directory(directory)
    check_writable(directory)
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
    from papers.registry import PAPERS

    if output_format is Format.JSON:
        print_json([{"name": name, "what": paper.line} for name, paper in PAPERS.items()])
        return
    typer.echo(f"python -m papers NAME computes one of them again: {', '.join(PAPERS)}.")
    for name, each in PAPERS.items():
        typer.echo(f"{name:<20}{each.line}")


if __name__ == "__main__":
    main(app)
