"""`fedhh audit`: gathers its commands."""

from __future__ import annotations

import typer

from fedhh.cli.audit.devices import device, log
from fedhh.cli.audit.reports import randomizer

audit = typer.Typer(
    help="Lower bounds on epsilon from running code, next to what is claimed; a verdict.\n\n"
    "Example: fedhh audit randomizer --oracle ss --local-epsilon 2 --domain-size 20",
    no_args_is_help=True,
)
for command in (randomizer, device, log):
    audit.command()(command)
