"""Live progress of a pipeline: a bar over its days on a terminal, elsewhere a line a minute."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

from rich.console import Console
from rich.progress import (
    BarColumn,
    SpinnerColumn,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from fedhh.cli.bar import Bar
from fedhh.cli.console import print_line
from fedhh.cli.minute_lines import MinuteLines, duration
from fedhh.cli.safe_text import safe_text
from fedhh.kernels.cache import hearing_of_compilations


class DaysProgress:
    """Shows how many days have happened."""

    def __init__(self, console: Console, *, days: int, steps_per_day: int, quiet: bool) -> None:
        """Draw on this console, or say nothing.

        Args:
            console: Where.
            days: Of the pipeline.
            steps_per_day: What `advance` adds up to in a day.
            quiet: Whether to say nothing.
        """
        self._progress = Bar(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TaskProgressColumn("{task.percentage:>3.0f} %", markup=False),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}", markup=False),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
        )
        self._days, self._steps = days, steps_per_day
        self._task = TaskID(0)
        self._pulse: TaskID | None = None
        self._compiling = False
        self._text = "preparing"
        self._lines: MinuteLines | None = None
        if not quiet and not console.is_terminal:
            self._lines = MinuteLines(self.line, partial(print_line, console))
        self._hearing = ExitStack()

    def __enter__(self) -> DaysProgress:
        self._hearing.enter_context(hearing_of_compilations(self._compile))
        self._progress.start()
        self._task = self._progress.add_task(
            self._text, total=self._days * self._steps, left="left"
        )
        if self._lines is not None:
            self._lines.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._hearing.close()
        if self._lines is not None:
            self._lines.stop()
        self._progress.stop()

    def start(self, days_done: int) -> None:
        """Show that days are about to happen."""
        self._progress.update(self._task, completed=days_done * self._steps)
        self.finish_day(days_done)

    def advance(self, devices: int) -> None:
        """Move the bar by some devices that have lived a day in one use case."""
        self._end_phase()
        self._progress.advance(self._task, devices)

    def finish_day(self, days_done: int) -> None:
        """Show which day comes next, if there is one."""
        if days_done < self._days:
            self._end_phase()
            self._text = f"day {days_done + 1} of {self._days}"
            self._progress.update(self._task, description=self._text)

    def phase(self, text: str) -> None:
        """Show in place of the bar what is done without devices, of unknown length."""
        self._text = safe_text(text)
        if self._pulse is None:
            self._progress.update(self._task, visible=False)
            self._pulse = self._progress.add_task(self._text, total=None, left="")
        self._progress.update(self._pulse, description=self._text)

    def _end_phase(self) -> None:
        if self._pulse is not None:
            self._progress.remove_task(self._pulse)
            self._pulse = None
            self._progress.update(self._task, visible=True)

    def line(self) -> str:
        """Return where the pipeline is, in one line."""
        task = self._progress.tasks[self._task]
        what = "" if self._pulse is None else " of the days"
        parts = [self._text, f"{task.percentage:.0f} %{what}", f"{duration(task.elapsed)} so far"]
        if self._compiling:
            parts.append("compiling, which only the first run after an installation does")
        return ", ".join(parts)

    def _compile(self, name: str) -> None:
        self._compiling = bool(name)
        if self._progress.tasks:
            text = f"{self._text}, compiling" if name else self._text
            shown = self._task if self._pulse is None else self._pulse
            self._progress.update(shown, description=text)
