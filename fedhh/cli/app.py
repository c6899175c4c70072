"""Command line: gathers the commands, turns errors into one line and an exit code.

Exit codes: 0 done, 1 failed, 2 wrong input, 130 interrupted (what is finished is kept). Commands
import what they need when they run, so that `fedhh --help` loads neither Ray nor numba nor pandas.
"""

from __future__ import annotations

import atexit
import errno
import gc
import logging
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from fedhh.cli.account.app import account
from fedhh.cli.attack import attack
from fedhh.cli.audit.app import audit
from fedhh.cli.data import data
from fedhh.cli.line_width import forget_wrong_sizes
from fedhh.cli.options import QuietOption, VerboseOption
from fedhh.cli.oracles import oracles
from fedhh.cli.plan import plan
from fedhh.cli.plot import plot
from fedhh.cli.presets import presets
from fedhh.cli.report import report
from fedhh.cli.run import compare, longitudinal, pipeline, run, sweep
from fedhh.cli.safe_text import LONGEST_LINE, safe_text
from fedhh.cli.show import show
from fedhh.cli.verbosity import log_from
from fedhh.plugins import without_exit
from fedhh.system.stopping import stop_at_signals
from fedhh.validation import InputError, RunFailedError
from fedhh.version import __version__

# Typer brings click under its own name or click's, depending on its version.
_UsageError: type[Exception] = typer.BadParameter.__mro__[2]

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_PLACE = (
    errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR, errno.ENOTDIR, errno.ELOOP,
    errno.ENAMETOOLONG, errno.EEXIST,
)  # fmt: skip
"""What says that nothing can be written where it was asked for."""

_RESUMED = ("run", "sweep", "compare", "longitudinal", "pipeline")
"""Commands that go on where they were stopped."""

_COLLECTED_AFTER = 50_000, 20, 100
"""New objects after which Python looks for cycles, and how often in older ones."""

_INTERRUPTED = "Interrupted; what is finished is kept."

app = typer.Typer(
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for command in (run, sweep, compare, plan, attack, show, plot, report):
    app.command()(command)
app.add_typer(pipeline, name="pipeline")
app.add_typer(longitudinal, name="longitudinal")
app.add_typer(account, name="account")
app.add_typer(audit, name="audit")
app.add_typer(oracles, name="oracles")
app.add_typer(data, name="data")
app.add_typer(presets, name="presets")


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"fedhh {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_print_version, help="Print it."),
    ] = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Simulate interactive federated heavy-hitter discovery under local differential privacy.

    Example: fedhh run --preset small
    """


def main(commands: typer.Typer = app) -> None:
    """Run commands, fedhh's own unless others are given, and exit."""
    # Packages are made of objects that stay: to look through them again and again finds nothing.
    gc.set_threshold(*_COLLECTED_AFTER)
    # What is there at the end goes with the process; to look for cycles first takes half a second.
    atexit.register(gc.freeze)
    stop_at_signals(_INTERRUPTED)
    forget_wrong_sizes()
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a character is shown its escape.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    log_from(logging.WARNING)
    try:
        with without_exit():
            status = commands(standalone_mode=False)
    except InputError as error:
        status = _complain(str(error))
    except RunFailedError as error:
        status = _complain(str(error), status=1)
    except _UsageError as error:
        status = _explain_usage(error)
    except Exception as error:
        if _is_reader_gone(error):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(0)
        if os.environ.get("FEDHH_TRACEBACK"):
            raise
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            cure = _cure_of_a_full_disk(sys.argv[1:])
            sys.exit(_complain(f"{error.strerror}: {error.filename}; {cure}", status=1))
        if isinstance(error, OSError) and is_no_place(error):
            sys.exit(_complain(f"{error.strerror}: {error.filename}; give another --out."))
        _say(f"fedhh failed: {type(error).__name__}: {error}")
        _say("Set FEDHH_TRACEBACK=1 to see where.")
        status = 1
    sys.exit(status)


def _is_reader_gone(error: Exception) -> bool:
    """Return whether the reader went away, as `fedhh ... | head` does: no failure of ours.

    Typer wants to exit then.
    """
    wanted = error.__cause__
    return isinstance(wanted.__context__ if wanted else error, BrokenPipeError)


def _cure_of_a_full_disk(words: Sequence[str]) -> str:
    """Return what helps a command, whose name follows options without values."""
    if next((word for word in words if not word.startswith("-")), "") in _RESUMED:
        return "what is finished is kept; make room and go on with --resume."
    return "make room and give the command again."


def is_no_place(error: OSError) -> bool:
    """Return whether an error says that a place cannot be written, which the user can mend."""
    return error.errno in _NO_PLACE


def _explain_usage(error: Any) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":  # the help has been shown
        error.show()
        return 2
    return _complain(f"{error.format_message()} See --help.")


def _complain(message: str, *, status: int = 2) -> int:
    _say(f"Error: {message}")
    return status


def _say(line: str) -> None:
    typer.echo(safe_text(line, longest=LONGEST_LINE), err=True)
