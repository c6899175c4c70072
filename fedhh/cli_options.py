"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """How results are printed."""

    TABLE = "table"
    JSON = "json"


FormatOption = Annotated[Format, typer.Option("--format", help="How to print the result.")]
DataOption = Annotated[
    Path | None,
    typer.Option("--data", help="Clients from a file: Parquet, CSV, CSV.gz or JSON Lines."),
]
KnownOption = Annotated[
    str | None, typer.Option("--known", help="Known words: scowl70, none, or a file.")
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change one key; repeatable."),
]
RayAddressOption = Annotated[
    str | None, typer.Option("--ray-address", help="A running Ray cluster.")
]
