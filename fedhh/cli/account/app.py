"""`fedhh account`: gathers its commands."""

from __future__ import annotations

import typer

from fedhh.cli.account.anonymity import anonymity
from fedhh.cli.account.audit import audit
from fedhh.cli.account.cms_variance import cms_variance
from fedhh.cli.account.ledger import ledger
from fedhh.cli.account.life_audit import audit_life
from fedhh.cli.account.memo import memo
from fedhh.cli.account.oracles import oracles
from fedhh.cli.account.plan import plan
from fedhh.cli.account.shuffle import shuffle
from fedhh.cli.account.user import user

account = typer.Typer(
    help="State privacy, without running anything.\n\n"
    "Example: fedhh account plan --local-epsilon 6 --central-epsilon 1 --layers 10",
    no_args_is_help=True,
)
COMMANDS = (
    shuffle,
    user,
    anonymity,
    plan,
    oracles,
    cms_variance,
    memo,
    ledger,
    audit,
    audit_life,
)
for command in COMMANDS:
    account.command()(command)
