"""What fails in a plug-in: one line with the file and line of its code, in any process."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from fedhh import plugins
from fedhh.validation import InputError, printable


class PluginError(RuntimeError):
    """A plug-in raised something else than `InputError`, or wanted to exit.

    Attributes:
        trace: The traceback, which survives the way between processes.
    """

    def __init__(self, message: str, trace: str) -> None:
        super().__init__(message, trace)
        self.trace = trace

    def __str__(self) -> str:
        message: str = self.args[0]
        return message


@contextmanager
def naming_plugins() -> Iterator[None]:
    """Turn what a plug-in raises, `SystemExit` too, into an error that says where.

    Raises:
        PluginError: The innermost call into a plug-in, and what it raised.
    """
    try:
        yield
    except (InputError, PluginError):
        raise
    except (Exception, SystemExit) as error:
        place = _place_of(error.__traceback__)
        if place is None:
            raise
        formatted = traceback.TracebackException.from_exception(error)
        what = f"{type(error).__name__}: {formatted}".rstrip(": ")
        raise PluginError(
            printable(f"The plug-in failed in {place}: {what}"), "".join(formatted.format())
        ) from error


def _place_of(trace: TracebackType | None) -> str | None:
    """Return the file, line and function of the innermost frame of a plug-in, if there is one."""
    for frame, line in reversed(list(traceback.walk_tb(trace))):
        file = frame.f_code.co_filename
        # What a dataclass generates has no file.
        if plugins.is_plugin(frame.f_globals.get("__name__", "")) and not file.startswith("<"):
            return f"{short(Path(file))}, line {line}, in {frame.f_code.co_name}"
    return None


def short(file: Path) -> Path:
    """Return a file's path as a person sees it who works in the current directory."""
    here = Path.cwd()
    return file.relative_to(here) if file.is_relative_to(here) else file
