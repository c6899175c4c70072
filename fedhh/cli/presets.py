"""`fedhh presets`: the built-in configurations, and what a configuration may hold."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from fedhh.cli.options import Format, FormatOption

presets = typer.Typer(
    help="Built-in configurations.\n\nExample: fedhh presets list", no_args_is_help=True
)


@presets.command("list")
def list_presets(output_format: FormatOption = Format.TABLE) -> None:
    """Print the names of the built-in configurations, and the command that takes each.

    Example: fedhh presets list
    """
    from fedhh.cli.console import print_json
    from fedhh.experiments.config.built_in import RUNS, SWEEPS, preset_names
    from fedhh.experiments.longitudinal import builtin as longitudinal

    kinds = ((RUNS, "fedhh run"), (SWEEPS, "fedhh sweep"))
    rows = [(name, command) for kind, command in kinds for name in preset_names(kind)]
    rows += [(name, "fedhh longitudinal run") for name in longitudinal.preset_names()]
    if output_format is Format.JSON:
        print_json([{"name": name, "command": command} for name, command in rows])
        return
    for name, command in rows:
        typer.echo(f"{name:<28}{command}")


@presets.command("show")
def show_preset(name: Annotated[str, typer.Argument(help="A preset's name.")]) -> None:
    """Print a built-in configuration, ready to be saved and changed.

    Example: fedhh presets show gboard-production > mine.toml
    """
    from fedhh.experiments.config.built_in import RUNS, SWEEPS, preset_names, preset_text
    from fedhh.experiments.longitudinal import builtin as longitudinal
    from fedhh.validation import require_choice

    runs, sweeps, months = preset_names(RUNS), preset_names(SWEEPS), longitudinal.preset_names()
    require_choice([*runs, *sweeps, *months], preset=name)
    if name in months:
        sys.stdout.write(longitudinal.preset_text(name))
        return
    sys.stdout.write(preset_text(name, SWEEPS if name in sweeps else RUNS))


@presets.command("schema")
def schema() -> None:
    """Print the JSON schema of a run's configuration: every key, its default and its bounds.

    The settings of every protocol are in it that has a name without a file.

    Example: fedhh presets schema > fedhh.schema.json
    """
    from fedhh.cli.console import print_json
    from fedhh.experiments.config.json_schema import json_schema

    print_json(json_schema())
