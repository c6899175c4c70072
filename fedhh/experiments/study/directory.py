"""The directory of what runs: where it may be, and what stands in it from the beginning."""

from __future__ import annotations

import datetime
import tempfile
from collections.abc import Callable
from pathlib import Path

from fedhh import plugins
from fedhh.system.files import is_there, is_unfinished, write_text
from fedhh.validation import InputError

CONFIG = "config.toml"
RESULT = "result.json"


def check_directory(out: Path) -> None:
    """Raise InputError if a new run cannot have this directory; looks only.

    A directory that is missing or empty is fine, also where a process was killed in its beginning.
    """
    try:
        if not out.exists():
            return
        if not out.is_dir():
            raise InputError(f"{out} is a file; give another --out.")
        is_used = not all(map(is_unfinished, out.iterdir()))
    except OSError as error:
        # A name that is too long, or a directory that may not be read.
        raise InputError(f"{out}: {error.strerror}; give another --out.") from None
    if is_used:
        holds = "another run" if (out / CONFIG).exists() else "other files"
        raise InputError(
            f"{out} holds {holds}; give another --out, or --resume to go on with a run."
        )


def check_output(out: Path | None, default: str, *, resume: bool) -> None:
    """Raise InputError if what runs cannot have its directory, or cannot write there.

    Args:
        out: The directory; None for a new one below the next.
        default: Where directories are made that fedhh names.
        resume: Whether ``out`` holds what goes on.
    """
    if out is not None and not resume:
        check_directory(out)
    check_writable(out or Path(default))


def check_writable(directory: Path) -> None:
    """Raise InputError if files cannot be made in a directory, or where it would be made.

    What is made for the trial does not stay.
    """
    try:
        place = directory.absolute()
        while not is_there(place):
            place = place.parent
        tempfile.TemporaryDirectory(prefix=".", dir=place).cleanup()
    except OSError as error:
        raise InputError(
            f"Cannot write to {directory}: {error.strerror}; give another --out."
        ) from None


def new_directory(out: Path | None, parent: str, *, name: str, config: str) -> Path:
    """Make and return a directory, with its configuration inside, and the modules it names.

    Args:
        out: The directory that the user asks for; a new one below ``parent`` if None.
        parent: Where directories are made that fedhh names.
        name: Short name of what runs, for those.
        config: The content of `CONFIG`.
    """
    directory = out if out is not None else unused_directory(Path(parent), name)
    check_directory(directory)
    begin_directory(directory, config)
    return directory


def begin_directory(directory: Path, config: str) -> None:
    """Make a directory as `new_directory` does, also where it was stopped in its beginning."""
    fill_directory(directory, lambda: write_text(directory / CONFIG, config))


def fill_directory(directory: Path, write: Callable[[], None]) -> None:
    """Make a directory, with the modules that its configuration names."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for path, text in plugins.sources().items():
            write_text(directory / path, text)
        write()
    except OSError as error:
        raise InputError(f"Cannot write to {directory}: {error.strerror}.") from None


def unused_directory(parent: Path, name: str) -> Path:
    """Return a directory that is not there yet, named by the time and what ran."""
    stamp = datetime.datetime.now().strftime("%Y-%m-%d_%H%M%S")
    directory = parent / f"{stamp}_{name}"
    number = 2
    while directory.exists():
        directory = parent / f"{stamp}_{name}_{number}"
        number += 1
    return directory
