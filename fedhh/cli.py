"""Command line: parses words, calls the package, turns errors into one line and an exit code.

Exit codes: 0 done, 1 failed, 2 wrong input, 130 interrupted (what is finished is kept). Imports
stand inside the commands, so that `fedhh --help` loads neither Ray nor numba nor pandas.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from fedhh.cli_account import account
from fedhh.cli_options import (
    DataOption,
    Format,
    FormatOption,
    KnownOption,
    RayAddressOption,
    SettingsOption,
)
from fedhh.simulation.stopping import stop_at_signals
from fedhh.validation import InputError

# Typer brings click under its own name or click's, depending on its version.
_UsageError: type[Exception] = typer.BadParameter.__mro__[2]

# The setting that an option stands for.
_SETTING_OF = {
    "known": "population.known",
    "delta": "privacy.delta",
    "alpha": "privacy.alpha",
    "seeds": "sweep.seeds",
    "seed": "seed",
    "workers": "execution.workers",
    "ray_address": "execution.ray_address",
}

_INTERRUPTED = "Interrupted; what is finished is kept."

app = typer.Typer(
    help="Simulate interactive federated heavy-hitter discovery under local differential privacy.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
data = typer.Typer(help="Describe, prepare and synthesize populations.", no_args_is_help=True)
presets = typer.Typer(help="Built-in configurations.", no_args_is_help=True)
app.add_typer(account, name="account")
app.add_typer(data, name="data")
app.add_typer(presets, name="presets")


@app.command()
def run(  # noqa: PLR0917 - typer makes these options, none is positional
    preset: Annotated[str | None, typer.Option(help="A built-in configuration.")] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file.")] = None,
    data: DataOption = None,
    known: KnownOption = None,
    settings: SettingsOption = None,
    seed: Annotated[int | None, typer.Option(help="Seed of everything that is drawn.")] = None,
    workers: Annotated[
        int | None, typer.Option(help="Ray actors that hold clients; 0: no Ray.")
    ] = None,
    ray_address: RayAddressOption = None,
    delta: Annotated[
        float | None, typer.Option(help="Delta of central guarantees, 1e-14 to 0.1.")
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="Alpha of approximate k-anonymity.")] = None,
    out: Annotated[Path | None, typer.Option(help="The run's directory.")] = None,
    resume: Annotated[bool, typer.Option(help="Go on with the run in --out.")] = False,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Discover words: one run, with its tables and figures.

    Example: fedhh run --data words.parquet --set privacy.local_epsilon=6
    """
    from fedhh.experiments.commands import RunRequest, run_command

    request = RunRequest(
        preset=preset,
        config=config,
        settings=_changes(
            settings,
            known=known,
            delta=delta,
            alpha=alpha,
            seed=seed,
            workers=workers,
            ray_address=ray_address,
        ),
        data=data,
        out=out,
        resume=resume,
    )
    run_command(request, as_json=output_format is Format.JSON)


@app.command()
def sweep(  # noqa: PLR0917 - typer makes these options, only the file is positional
    file: Annotated[Path | None, typer.Argument(help="A TOML file with [sweep].")] = None,
    preset: Annotated[str | None, typer.Option(help="A built-in sweep.")] = None,
    config: Annotated[Path | None, typer.Option(help="The same as FILE.")] = None,
    settings: SettingsOption = None,
    seeds: Annotated[int | None, typer.Option(help="Seeds per cell.")] = None,
    seed: Annotated[int | None, typer.Option(help="The first seed.")] = None,
    workers: Annotated[
        int | None, typer.Option(help="Cells that run side by side; 0: no Ray.")
    ] = None,
    ray_address: RayAddressOption = None,
    parallel: Annotated[
        str, typer.Option(help="What workers share: cells, clients (of one cell), or auto.")
    ] = "auto",
    out: Annotated[Path | None, typer.Option(help="The sweep's directory.")] = None,
    resume: Annotated[bool, typer.Option(help="Run what is missing in --out.")] = False,
    dry_run: Annotated[bool, typer.Option(help="Check and list the cells only.")] = False,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Run many settings and seeds: one table of results.

    Example: fedhh sweep --preset epsilon-n-quick --out runs/map
    """
    from fedhh.experiments.sweep_commands import SweepRequest, sweep_command

    if file is not None and config is not None:
        raise InputError("Expected FILE or --config, got both; give one.")
    request = SweepRequest(
        file=file or config,
        preset=preset,
        settings=_changes(
            settings,
            seeds=seeds,
            seed=seed,
            workers=workers,
            ray_address=ray_address,
        ),
        out=out,
        resume=resume,
        parallel=parallel,
        dry_run=dry_run,
    )
    if not sweep_command(request, as_json=output_format is Format.JSON):
        raise typer.Exit(1)


@app.command()
def compare(  # noqa: PLR0917 - typer makes these options, none is positional
    preset: Annotated[str | None, typer.Option(help="A built-in comparison.")] = None,
    config: Annotated[
        Path | None, typer.Option(help="A TOML file, of a run or with [sweep.protocols].")
    ] = None,
    data: DataOption = None,
    known: KnownOption = None,
    settings: SettingsOption = None,
    seeds: Annotated[int | None, typer.Option(help="Seeds per protocol and epsilon.")] = None,
    seed: Annotated[int | None, typer.Option(help="The first seed.")] = None,
    workers: Annotated[
        int | None, typer.Option(help="Runs side by side; 0: one after the other, no Ray.")
    ] = None,
    ray_address: RayAddressOption = None,
    out: Annotated[Path | None, typer.Option(help="The comparison's directory.")] = None,
    resume: Annotated[bool, typer.Option(help="Run what is missing in --out.")] = False,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Run protocols side by side on the same clients: one table, figures over epsilon.

    Without options: LDP TrieHH (greedy, random; one pass, two) and Apple's SFP (with CMS, with
    Subset Selection) on a chat population.

    Example: fedhh compare --data words.parquet --seeds 3
    """
    from fedhh.experiments.compare_commands import compare_command
    from fedhh.experiments.sweep_commands import SweepRequest

    if preset is not None and config is not None:
        raise InputError("Expected --preset or --config, got both; choose one.")
    request = SweepRequest(
        file=config,
        preset=preset,
        settings=_changes(
            settings,
            known=known,
            seeds=seeds,
            seed=seed,
            workers=workers,
            ray_address=ray_address,
        ),
        out=out,
        resume=resume,
        data=data,
    )
    if not compare_command(request, as_json=output_format is Format.JSON):
        raise typer.Exit(1)


@app.command()
def table(
    name: Annotated[str, typer.Argument(help="summary, comparison, sampling or gboard-table1.")],
    results: Annotated[Path, typer.Option(help="A sweep's directory.")],
    kind: Annotated[str, typer.Option("--format", help="markdown, csv or latex.")] = "markdown",
) -> None:
    """Print a table of a sweep's results.

    Example: fedhh table gboard-table1 --results runs/table1 --format latex
    """
    from fedhh.experiments.sweep_commands import table_command

    table_command(name, results, kind=kind)


@app.command()
def plot(
    directory: Annotated[Path, typer.Argument(help="A sweep's directory.")],
    out: Annotated[Path | None, typer.Option(help="Where figures go; DIRECTORY if none.")] = None,
    x: Annotated[str | None, typer.Option(help="The setting along the x axis.")] = None,
    by: Annotated[str | None, typer.Option(help="The setting with a line per value.")] = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="A column of the results; repeatable.")
    ] = None,
) -> None:
    """Draw a sweep's figures as PNG, PDF and SVG.

    Example: fedhh plot runs/map --x privacy.local_epsilon --by protocol.clients_per_layer
    """
    from fedhh.experiments.sweep_commands import plot_command

    plot_command(directory, out=out, x=x, by=by, metrics=tuple(metric or ()))


@app.command()
def report(
    directory: Annotated[Path, typer.Argument(help="A run's or a sweep's directory.")],
    out: Annotated[
        Path | None, typer.Option(help="The file; report.html in DIRECTORY if none.")
    ] = None,
) -> None:
    """Write one self-contained HTML file: tables, figures, words, guarantees, configuration.

    Example: fedhh report runs/mine
    """
    from fedhh.experiments.html_report import write_report

    typer.echo(f"Wrote {write_report(directory, out)}")


@data.command("describe")
def data_describe(
    file: Annotated[Path, typer.Argument(help="Parquet, CSV, CSV.gz or JSON Lines.")],
    known: Annotated[str, typer.Option(help="Known words: scowl70, none, or a file.")] = "scowl70",
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Print users, words, their concentration, and how many are unknown.

    Example: fedhh data describe words.parquet
    """
    from fedhh.experiments.commands import describe_command

    describe_command(file, known=known, as_json=output_format is Format.JSON)


@data.command("prepare")
def data_prepare(
    source: Annotated[Path, typer.Argument(help="A file with columns user and text.")],
    out: Annotated[Path, typer.Argument(help="Counted words: user, word, count.")],
) -> None:
    """Turn text into counted words; docs/populations.md states the tokenisation.

    Example: fedhh data prepare messages.jsonl words.parquet
    """
    from fedhh.experiments.commands import prepare_command

    prepare_command(source, out)


@data.command("synthesize")
def data_synthesize(
    out: Annotated[Path, typer.Argument(help="Parquet, CSV, CSV.gz or JSON Lines.")],
    preset: Annotated[str, typer.Option(help="chat, keyboard60d, tweet or post.")] = "chat",
    clients: Annotated[int, typer.Option(help="How many clients to draw.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
) -> None:
    """Write a synthetic population: its clients' unknown words.

    Example: fedhh data synthesize --preset tweet --clients 100000 tweets.parquet
    """
    from fedhh.experiments.commands import synthesize_command

    synthesize_command(out, preset=preset, clients=clients, seed=seed)


@presets.command("list")
def presets_list() -> None:
    """Print the names of the built-in configurations, and the command that takes each.

    Example: fedhh presets list
    """
    from fedhh.experiments.config import RUNS, SWEEPS, preset_names

    for kind, command in ((RUNS, "fedhh run"), (SWEEPS, "fedhh sweep")):
        for name in preset_names(kind):
            typer.echo(f"{name:<28}{command}")


@presets.command("show")
def presets_show(name: Annotated[str, typer.Argument(help="A preset's name.")]) -> None:
    """Print a built-in configuration, ready to be saved and changed.

    Example: fedhh presets show gboard-production > mine.toml
    """
    from fedhh.experiments.config import RUNS, SWEEPS, preset_names, preset_text

    kind = SWEEPS if name in preset_names(SWEEPS) else RUNS
    typer.echo(preset_text(name, kind), nl=False)


def _changes(settings: list[str] | None, **options: Any) -> tuple[str, ...]:
    """Return the settings, and the options that stand for a setting."""
    given = [
        f"{_SETTING_OF[option]}={json.dumps(value)}"
        for option, value in options.items()
        if value is not None
    ]
    return (*(settings or ()), *given)


def main() -> None:
    """Run the command line and exit."""
    stop_at_signals(_INTERRUPTED)
    try:
        status = app(standalone_mode=False)
    except InputError as error:
        status = _complain(str(error))
    except _UsageError as error:
        status = _explain_usage(error)
    except BrokenPipeError:
        # The reader went away, as `fedhh ... | head` does; that is no failure of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    except Exception as error:
        if os.environ.get("FEDHH_TRACEBACK"):
            raise
        typer.echo(
            f"fedhh failed: {type(error).__name__}: {error}\nSet FEDHH_TRACEBACK=1 to see where.",
            err=True,
        )
        status = 1
    sys.exit(status)


def _explain_usage(error: Any) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":  # the help has been shown
        error.show()
    else:
        typer.echo(f"Error: {error.format_message()} See --help.", err=True)
    return 2


def _complain(message: str) -> int:
    typer.echo(f"Error: {message}", err=True)
    return 2
