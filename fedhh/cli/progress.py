"""Live progress of a run."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from fedhh.cli.bar import Bar
from fedhh.cli.console import print_line
from fedhh.cli.minute_lines import MinuteLines, duration
from fedhh.cli.safe_text import safe_text
from fedhh.cli.time_left import TimeLeft
from fedhh.clients.populations.population import Population
from fedhh.experiments.run.heard_round import HeardRound
from fedhh.experiments.run.layers import LayerRow
from fedhh.experiments.run.workers import Workers
from fedhh.kernels.cache import hearing_of_compilations
from fedhh.protocol import AnyProtocol

_COMPILING = "  compiling, which only the first run after an installation does"


class _TwoLines(Bar):
    """A bar, and below it a line of text."""

    text = ""
    compiling = False

    def get_renderables(self) -> Iterator[RenderableType]:
        """Yield the bar and the text."""
        yield self.make_tasks_table(self.tasks)
        text = _COMPILING if self.compiling else self.text
        yield Text(text, style="dim", no_wrap=True, overflow="ellipsis")


class _LeftColumn(ProgressColumn):
    """The seconds left, as the run's own estimate has them."""

    def __init__(self, seconds: Callable[[], float | None]) -> None:
        self._seconds = seconds
        super().__init__()

    def render(self, task: Task) -> Text:
        """Return the time left as text; a dash as long as nobody can know."""
        return Text(duration(self._seconds()), style="progress.remaining")


class LiveProgress:
    """Shows a run by pass and layer: a bar on a terminal, elsewhere a line a minute.

    A run's listener. The time left is that of the protocol named beside it: a baseline that follows
    is not in it.
    """

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        """Draw on this console, or say nothing."""
        self.console = console
        self._progress = _TwoLines(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f} %", markup=False),
            TimeElapsedColumn(),
            TextColumn("left", markup=False),
            _LeftColumn(self._seconds_left),
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
        )
        self._lines: MinuteLines | None = None
        if not quiet and not console.is_terminal:
            self._lines = MinuteLines(self.line, partial(print_line, console))
        self._hearing = ExitStack()
        self._task = TaskID(0)
        self._title = ""
        self._shape = (0, 0)
        self._left: Callable[[], float | None] = lambda: None
        self._layers = TimeLeft()
        self._counting_since = 0.0

    def __enter__(self) -> LiveProgress:
        self._hearing.enter_context(hearing_of_compilations(self.compile))
        self._progress.start()
        self._task = self._progress.add_task("drawing clients", total=None)
        if self._lines is not None:
            self._lines.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._hearing.close()
        if self._lines is not None:
            self._lines.stop()
        self._progress.stop()

    def line(self) -> str:
        """Return where the run is, in one line."""
        task = self._progress.tasks[self._task]
        parts = [task.description]
        if task.total is not None:
            parts.append(f"{task.percentage:.0f} %")
        parts.append(f"{duration(task.elapsed)} so far")
        if (seconds := self._seconds_left()) is not None:
            parts.append(f"{duration(seconds)} left")
        text = _COMPILING if self._progress.compiling else self._progress.text
        return ", ".join([*parts, *([text.strip()] if text else [])])

    def compile(self, name: str) -> None:
        """Show that a kernel is being compiled, until the name is empty."""
        self._progress.compiling = bool(name)

    def place(self, workers: Workers) -> None:
        """Show where clients are asked, until the first layer is done."""
        self._progress.text = f"  {workers.why}"

    def count(self, counted: int, of: int) -> None:
        """Show how far the count of the true words is, and what is left of it alone."""
        now = time.monotonic()
        if not counted:
            self._counting_since = now
        else:
            pace = (now - self._counting_since) / counted
            self._left = lambda: max(pace * of - (time.monotonic() - self._counting_since), 0.0)
        self._progress.update(
            self._task, description="counting true words", completed=counted, total=of
        )

    def start(self, protocol: AnyProtocol, population: Population, clients_done: int) -> None:
        """Show that clients are about to be asked."""
        self._title = safe_text(protocol.title)
        mechanism = protocol.mechanism
        self._shape = mechanism.num_passes, mechanism.layers[-1].layer
        self._layers.start(protocol, population, clients_done)
        self._left = self._layers.seconds
        self._progress.update(
            self._task,
            total=mechanism.most_answers,
            completed=clients_done,
            description=f"{self._title}: asking {population.num_clients:,} clients",
        )

    def advance(self, num_clients: int) -> None:
        """Move the bar by some clients."""
        self._layers.advance(num_clients)
        self._progress.advance(self._task, num_clients)

    def hear(self, heard: HeardRound) -> None:
        """Ignore: a console shows rows."""

    def finish_round(self, layer: LayerRow) -> None:
        """Show what the layer decided."""
        self._layers.finish_round(layer)
        passes, layers = self._shape
        self._progress.update(
            self._task,
            description=f"{self._title}: pass {layer.pass_index + 1}/{passes} "
            f"layer {layer.layer}/{layers}",
        )
        self._progress.text = (
            f"  {layer.num_reports:,} reports, {layer.num_candidates:,} prefixes, "
            f"{layer.num_kept:,} "
        )
        # Only the paper's rule goes by one number of votes.
        by_votes = layer.kept_by == "votes"
        self._progress.text += f"with {layer.threshold:,} votes or more" if by_votes else "kept"
        # It comes at the end where the true words are counted while clients answer.
        if not math.isnan(layer.coverage):
            self._progress.text += f", coverage {layer.coverage:.1%}"

    def _seconds_left(self) -> float | None:
        return self._left()
