"""`--live`: a page on the loopback address that follows an experiment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fedhh.cli.console import open_console, print_line
from fedhh.cli.safe_text import LONGEST_LINE, safe_text
from fedhh.experiments.study.kinds import LivePage
from fedhh.validation import InputError, RunFailedError


@contextmanager
def followed(page: LivePage) -> Iterator[LivePage]:
    """Serve a page, which says what ended its experiment as the terminal does."""
    with page.server as server:
        print_line(open_console(stderr=True), f"Live: {server.address}")
        try:
            yield page
        except Exception as error:
            server.fail_with(failure_line(error))
            raise


def failure_line(error: BaseException) -> str:
    """Return what a page says of what ended its run: one line with the cause and the cure."""
    said = str(error)
    if isinstance(error, OSError) and error.strerror:
        said = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    elif not isinstance(error, InputError | RunFailedError):
        said = f"{type(error).__name__}: {said}; the terminal says more."
    return safe_text(said, longest=LONGEST_LINE)
