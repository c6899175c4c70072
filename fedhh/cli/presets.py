"""`fedhh presets`: the built-in configurations, and what a configuration may hold."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from fedhh.cli.options import Format, FormatOption

if TYPE_CHECKING:
    from fedhh.experiments.config.built_in import Preset

_NOTE = (
    "Clients: of the first population. Times: about, on two cores; measured, or derived from the "
    "number of clients that are asked, without the server's work."
)

presets = typer.Typer(
    help="Built-in configurations.\n\nExample: fedhh presets list", no_args_is_help=True
)


@presets.command("list")
def list_presets(
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Print the built-in configurations: what each does, what it costs, and what runs it.

    Example: fedhh presets list
    """
    from fedhh.experiments.config.built_in import presets as built_in

    found = built_in()
    if output_format is Format.TABLE:
        _print_lines(found)
        return
    from fedhh.cli.text_tables import print_result
    from fedhh.experiments.study.text_table import TextTable

    records = tuple(map(asdict, found))
    table = TextTable(
        title="Built-in configurations",
        columns=("preset", "command", "what", "clients", "time", "basis"),
        rows=tuple(
            (
                each.name,
                each.command,
                each.what,
                f"{each.clients:,}",
                _time(each.seconds),
                each.basis,
            )
            for each in found
        ),
        note=_NOTE,
        labels=3,
        records=records,
    )
    print_result(output_format, lambda: records, (table,))


def _print_lines(found: Sequence[Preset]) -> None:
    """Print a heading for each command, and below it each of its presets, within 80 columns."""
    command = ""
    for each in found:
        if each.command != command:
            command = each.command
            typer.echo(f"{command} --preset")
        mark = "" if each.basis == "measured" else "*"
        typer.echo(f"  {each.name}  {each.clients:,} clients, {_time(each.seconds)}{mark}")
        typer.echo(_wrapped(each.what, indent=6))
    typer.echo(_wrapped(f"{_NOTE} *: derived.", indent=0))


def _wrapped(text: str, *, indent: int) -> str:
    return textwrap.fill(text, 80, initial_indent=" " * indent, subsequent_indent=" " * indent)


def _time(seconds: int) -> str:
    return f"{seconds // 60} min" if seconds >= 120 else f"{seconds} s"


@presets.command("show")
def show_preset(name: Annotated[str, typer.Argument(help="A preset's name.")]) -> None:
    """Print a built-in configuration, ready to be saved and changed.

    Example: fedhh presets show gboard-production > mine.toml
    """
    from fedhh.experiments.config.built_in import COMMANDS, preset_names, preset_text
    from fedhh.validation import require_choice

    kind_of = {each: kind for kind in COMMANDS for each in preset_names(kind)}
    require_choice([*kind_of], preset=name)
    sys.stdout.write(preset_text(name, kind_of[name]))


@presets.command("schema")
def schema() -> None:
    """Print the JSON schema of a run's configuration: every key, its default and its bounds.

    The settings of every protocol are in it that has a name without a file.

    Example: fedhh presets schema > fedhh.schema.json
    """
    from fedhh.cli.console import print_json
    from fedhh.experiments.config.schema import json_schema

    print_json(json_schema())
