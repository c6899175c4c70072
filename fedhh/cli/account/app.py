"""`fedhh account`: gathers its commands."""

from __future__ import annotations

import typer

from fedhh.cli.account.ledger import ledger
from fedhh.cli.account.memo import memo
from fedhh.cli.account.plan import plan
from fedhh.cli.account.shuffle import anonymity, shuffle, user

account = typer.Typer(
    help="State privacy, without running anything.\n\n"
    "Example: fedhh account plan --local-epsilon 6 --central-epsilon 1 --layers 10",
    no_args_is_help=True,
)
for command in (shuffle, user, anonymity, plan, ledger, memo):
    account.command()(command)
