"""Live progress of a sweep."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from fedhh.cli.console import print_line
from fedhh.cli.minute_lines import MinuteLines
from fedhh.cli.sweep_tables import left_text, metric_text, settings_text
from fedhh.experiments.sweep.directory import FAILED, Record
from fedhh.experiments.sweep.plan import Cell

_MOST_RUNNING = 4


class LiveSweep:
    """Shows a sweep's cells: a table on a terminal, elsewhere a line a minute.

    A sweep's listener.
    """

    def __init__(self, console: Console, best: str, *, quiet: bool = False) -> None:
        """Draw on this console, or say nothing; rank finished cells by the metric ``best``."""
        self._best_metric = best
        self._console = console
        self._quiet = quiet
        self._running: dict[str, Cell] = {}
        self._total = self._done = self._done_before = self._failed = 0
        self._best: tuple[float, Cell] | None = None
        self._started = time.monotonic()
        self._shown: Live | MinuteLines | None = None
        if not quiet:
            self._shown = (
                Live(
                    console=console,
                    get_renderable=self._render,
                    refresh_per_second=4,
                    transient=True,
                )
                if console.is_terminal
                else MinuteLines(self.line, partial(print_line, console))
            )

    def __enter__(self) -> LiveSweep:
        if self._shown is not None:
            self._shown.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown is not None:
            self._shown.stop()

    def start(self, cells: Sequence[Cell], done: int) -> None:
        """Show how many cells there are, and say how many of them are left."""
        self._total, self._done, self._done_before = len(cells) + done, done, done
        self._started = time.monotonic()
        if done and not self._quiet:
            print_line(self._console, left_text(done, self._total))

    def line(self) -> str:
        """Return where the sweep is, in one line."""
        left = self._total - self._done
        return (
            f"{self._done} of {self._total} cells done{self._failures()}, "
            f"{len(self._running)} running, {self._time_left(left)} left"
        )

    def begin(self, cell: Cell) -> None:
        """Show that a cell runs."""
        self._running[cell.id] = cell

    def finish(self, cell: Cell, record: Record) -> None:
        """Show a cell's outcome."""
        self._running.pop(cell.id, None)
        self._done += 1
        self._failed += record["status"] == FAILED
        value = record["result"].get(self._best_metric)
        if isinstance(value, int | float) and (self._best is None or value > self._best[0]):
            self._best = value, cell

    def _render(self) -> RenderableType:
        left = self._total - self._done
        table = Table.grid(padding=(0, 2))
        table.add_row(
            "sweep", ProgressBar(total=max(self._total, 1), completed=self._done, width=40)
        )
        table.add_row("done", f"{self._done} of {self._total}" + self._failures())
        table.add_row("running", self._running_text())
        table.add_row("left", f"{left - len(self._running)} cells, {self._time_left(left)}")
        if self._best is not None:
            value, cell = self._best
            shown = metric_text(self._best_metric, value)
            table.add_row("best so far", f"{self._best_metric} {shown} at {_where(cell)}")
        return table

    def _failures(self) -> str:
        return f", {self._failed} failed" if self._failed else ""

    def _running_text(self) -> str:
        shown = [_where(cell) for cell in list(self._running.values())[:_MOST_RUNNING]]
        rest = len(self._running) - len(shown)
        return "\n".join([*shown, *([f"and {rest} more"] if rest else [])]) or "-"

    def _time_left(self, left: int) -> str:
        finished = self._done - self._done_before
        if not finished:
            return "time unknown"
        seconds = (time.monotonic() - self._started) / finished * left
        return f"about {seconds / 60:.0f} min" if seconds > 90 else f"about {seconds:.0f} s"


def _where(cell: Cell) -> str:
    settings = settings_text(cell)
    return f"{settings}, seed {cell.config.seed}" if settings else f"seed {cell.config.seed}"
