"""`--live`: a page on the loopback address that follows a run, a sweep or a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fedhh.cli.console import open_console, print_line, quoted_path
from fedhh.cli.safe_text import LONGEST_LINE, safe_text
from fedhh.clients.populations.population import Population
from fedhh.experiments.report.explorer.live import LiveRun, LiveSweepPage, live_run, live_sweep
from fedhh.experiments.report.explorer.server import LiveServer
from fedhh.experiments.run.heard_round import HeardRound
from fedhh.experiments.run.layers import LayerRow
from fedhh.experiments.run.listener import Listener
from fedhh.experiments.sweep.directory import Record
from fedhh.experiments.sweep.execution import Listener as SweepListener
from fedhh.experiments.sweep.plan import Cell, Sweep
from fedhh.protocol import AnyProtocol
from fedhh.validation import InputError, RunFailedError


class BothListeners:
    """A run's listener that tells two others."""

    def __init__(self, first: Listener, second: Listener) -> None:
        """Tell these."""
        self._both = (first, second)

    def count(self, counted: int, of: int) -> None:
        """Pass it on."""
        for each in self._both:
            each.count(counted, of)

    def start(self, protocol: AnyProtocol, population: Population, clients_done: int) -> None:
        """Pass it on."""
        for each in self._both:
            each.start(protocol, population, clients_done)

    def advance(self, num_clients: int) -> None:
        """Pass it on."""
        for each in self._both:
            each.advance(num_clients)

    def hear(self, heard: HeardRound) -> None:
        """Pass it on."""
        for each in self._both:
            each.hear(heard)

    def finish_round(self, layer: LayerRow) -> None:
        """Pass it on."""
        for each in self._both:
            each.finish_round(layer)


class BothSweepListeners:
    """A sweep's listener that tells two others."""

    def __init__(self, first: SweepListener[Cell], second: SweepListener[Cell]) -> None:
        """Tell these."""
        self._both = (first, second)

    def start(self, cells: Sequence[Cell], done: int) -> None:
        """Pass it on."""
        for each in self._both:
            each.start(cells, done)

    def begin(self, cell: Cell) -> None:
        """Pass it on."""
        for each in self._both:
            each.begin(cell)

    def finish(self, cell: Cell, record: Record) -> None:
        """Pass it on."""
        for each in self._both:
            each.finish(cell, record)


@contextmanager
def followed_run(listener: Listener, title: str) -> Iterator[tuple[Listener, LiveServer]]:
    """Serve a run's live page, and yield a listener that tells both; and the server."""
    with live_run(title) as server:
        _print_address(server)
        with _telling_failures(server):
            yield BothListeners(listener, LiveRun(server)), server


@contextmanager
def followed_sweep(
    listener: SweepListener[Cell], plan: Sweep, directory: Path
) -> Iterator[SweepListener[Cell]]:
    """Serve a sweep's live page, and yield a listener that tells both."""
    with live_sweep(plan) as server:
        _print_address(server)
        page = LiveSweepPage(server, plan)
        with _telling_failures(server):
            yield BothSweepListeners(listener, page)
        told = f"{page.failed:,} of its runs failed. " if page.failed else ""
        server.end_with(f"{told}fedhh report {quoted_path(directory)} writes this page.")


@contextmanager
def _telling_failures(server: LiveServer) -> Iterator[None]:
    """Have the page say what ended its run, as the terminal does."""
    try:
        yield
    except Exception as error:
        server.fail_with(failure_line(error))
        raise


def _print_address(server: LiveServer) -> None:
    print_line(open_console(stderr=True), f"Live: {server.address}")


def failure_line(error: BaseException) -> str:
    """Return what a page says of what ended its run: one line with the cause and the cure."""
    said = str(error)
    if isinstance(error, OSError) and error.strerror:
        said = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    elif not isinstance(error, InputError | RunFailedError):
        said = f"{type(error).__name__}: {said}; the terminal says more."
    return safe_text(said, longest=LONGEST_LINE)
