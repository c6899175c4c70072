"""Live progress of a discovery over months: a bar, or a line a minute without a terminal."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

from fedhh.cli.bar import Bar
from fedhh.cli.console import print_line
from fedhh.cli.minute_lines import MinuteLines
from fedhh.longitudinal.repeated.config import Plan
from fedhh.longitudinal.repeated.directory import PeriodRecord


class LivePeriods:
    """Shows how many periods are done, and what the last one published."""

    def __init__(self, console: Console, *, quiet: bool) -> None:
        """Prepare; nothing is shown before the first period."""
        self._console, self._quiet = console, quiet
        self._done = self._periods = 0
        self._last = ""
        self._bar = Bar(
            TextColumn("period"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[last]}", markup=False),
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
        )
        self._task = self._bar.add_task("periods", total=None, last="")
        self._lines = MinuteLines(self._line, lambda line: print_line(console, line))

    def __enter__(self) -> Self:
        self._bar.start()
        if not self._quiet and not self._console.is_terminal:
            self._lines.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.stop()
        if not self._quiet and not self._console.is_terminal:
            self._lines.stop()

    def start(self, plan: Plan, periods: int, done: int) -> None:
        """Hear how many periods there are, and how many were done before."""
        self._periods, self._done = periods, done
        self._bar.update(self._task, total=periods, completed=done)

    def finish_period(self, record: PeriodRecord) -> None:
        """Hear a finished period."""
        self._done += 1
        words = sum(len(arm["words"]) for arm in record.arms)
        self._last = f"{words} words published by {len(record.arms)} protocols"
        self._bar.update(self._task, completed=self._done, last=self._last)

    def _line(self) -> str:
        return f"{self._done} of {self._periods} periods; {self._last or 'the first is under way'}"
