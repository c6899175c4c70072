"""Finished work of all kinds, small, and the command line in this process."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from fedhh.cli.app import app, is_no_place
from fedhh.experiments.report import style
from fedhh.longitudinal.pipeline.run import Run
from fedhh.validation import InputError

COMMAND = get_command(app)
"""Made once: that takes longer than most cases."""

RUN = """
[population]
source = "zipf"
clients = 300
known = "none"
alphabet = "lower"
model = { vocabulary = 100, word_length = 3 }
[protocol]
name = "ldp-triehh"
depth = 3
passes = 1
eta_max = 20
max_items = 2
[execution]
workers = 0
[output]
keep_log = true
"""
SWEEP = '[sweep.axes]\n"privacy.local_epsilon" = [4.0, 8.0]\n'
MONTHS = "[longitudinal]\ndays = 14\nevery_days = 7\nmin_devices = 10\n"
PIPELINE = """
[pipeline]
days = 2
devices = 200
[pipeline.use_cases.emoji]
oracle = "oue"
epsilon = 4.0
records_per_day = 1
domain = { values = 20 }
[execution]
workers = 0
[output]
keep_log = true
"""
TEXTS = {"run": RUN, "sweep": RUN + SWEEP, "months": RUN + MONTHS}
RESUME = {
    "run": ("run", "--resume", "--out"),
    "sweep": ("sweep", "--resume", "--out"),
    "months": ("longitudinal", "run", "--resume", "--out"),
    "pipeline": ("pipeline", "run", "--resume", "--out"),
}


@contextlib.contextmanager
def undrawn() -> Iterator[None]:
    """Figures are made and their files are there, empty: to draw them takes longest of all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(style, "save", lambda figure, target, kind: Path(target).touch())
        yield


def call(*arguments: object) -> None:
    try:
        COMMAND.main([str(each) for each in arguments], standalone_mode=False)
    except OSError as error:
        # As `main` does, with exit code 2: another file stands where a result should go.
        if not is_no_place(error):
            raise
        raise InputError(f"{error.strerror}: {error.filename}") from error


def make(home: Path, kind: str) -> None:
    """Make the finished directory of a kind below a folder, without its figures."""
    file, out = home / f"{kind}.toml", ("--out", home / kind, "-q")
    file.write_text(TEXTS.get(kind, ""))
    with contextlib.redirect_stdout(io.StringIO()), undrawn():
        match kind:
            case "run":
                call("run", "--config", file, *out)
            case "sweep":
                call("sweep", file, *out)
            case "months":
                call("longitudinal", "run", "--config", file, *out)
            case _:
                small = ("--days", "2", "--devices", "200", "--workers", "0")
                keep = ("--set", "output.keep_log=true")
                with pytest.MonkeyPatch.context() as patch:
                    # After each day, not each minute.
                    patch.setitem(Run.__init__.__kwdefaults__, "seconds_between", 0)
                    call("pipeline", "run", "--preset", "pipeline-small", *small, *keep, *out)
    for drawn in (path for path in home.rglob("*") if path.suffix in {".png", ".pdf", ".svg"}):
        drawn.unlink()
