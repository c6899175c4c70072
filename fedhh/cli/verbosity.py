"""How much is said: what `-q` and `-v` mean, after `fedhh` or after a command."""

from __future__ import annotations

import logging
import sys

import typer

from fedhh.cli.safe_text import LONGEST_LINE, safe_text
from fedhh.validation import InputError

_QUIET, _VERBOSE = "fedhh.quiet", "fedhh.verbose"
_LOGGER = "fedhh"


class _StandardError(logging.Handler):
    """Writes one line to what is standard error at that time: a live display puts its own there."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        line = safe_text(record.getMessage(), longest=LONGEST_LINE)
        sys.stderr.write(f"{record.levelname.lower()}: {line}\n")


def log_from(level: int) -> None:
    """Show what fedhh logs from a level on, on standard error; of others, warnings with `-v`."""
    logger = logging.getLogger(_LOGGER)
    logger.setLevel(level)
    if not any(isinstance(handler, _StandardError) for handler in logger.handlers):
        logger.addHandler(_StandardError())
    # Figures come out the same where its directory cannot be written, which it says in two lines.
    others = logging.getLogger("matplotlib")
    others.setLevel(logging.ERROR if level > logging.INFO else logging.WARNING)


def hear_quiet(context: typer.Context, value: bool) -> bool:
    """Return whether quiet is asked for, here or of a command above."""
    return _hear(context, _QUIET, value, _VERBOSE, logging.ERROR)


def hear_verbose(context: typer.Context, value: bool) -> bool:
    """Return whether more is asked for, here or of a command above."""
    return _hear(context, _VERBOSE, value, _QUIET, logging.INFO)


def _hear(context: typer.Context, key: str, value: bool, other: str, level: int) -> bool:
    # A context's meta is shared with those of the commands above it.
    asked: bool = value or context.meta.get(key, False)
    if asked and context.meta.get(other):
        raise InputError("Expected --quiet or --verbose, got both; choose one.")
    context.meta[key] = asked
    if asked:
        log_from(level)
    return asked
