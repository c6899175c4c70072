"""Live progress of an experiment of any kind: a bar on a terminal, elsewhere a line a minute."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

from rich.console import RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from fedhh.cli.console import SafeConsole, print_line
from fedhh.cli.minute_lines import MinuteLines, duration
from fedhh.cli.safe_text import safe_text
from fedhh.experiments.study.callbacks import Callbacks, Work
from fedhh.experiments.study.parts import Part
from fedhh.kernels.cache import hearing_of_compilations

_COMPILING = "compiling, which only the first run after an installation does"
_MOST_RUNNING = 4


class LiveProgress(Callbacks):
    """Shows the share that is done, the time left, what goes on, and how it stands."""

    def __init__(self, console: SafeConsole, *, quiet: bool = False) -> None:
        """Draw on this console, or say nothing."""
        self.console, self._quiet = console, quiet
        self._work = Work(noun="", total=0)
        self._units = self._steps = 0
        self._text = "preparing"
        self._note = ""
        self._running: dict[str, None] = {}
        self._compiles = self._is_of_units = False
        self._since = time.monotonic()
        self._bar = _Bar(self, disable=quiet or not console.is_terminal)
        self._task = self._bar.add_task(self._text, total=None)
        self._lines: MinuteLines | None = None
        if not (quiet or console.is_terminal):
            self._lines = MinuteLines(self.line, partial(print_line, console))
        self._hearing = ExitStack()

    def __enter__(self) -> LiveProgress:
        self._hearing.enter_context(hearing_of_compilations(self.compile))
        self._bar.start()
        if self._lines is not None:
            self._lines.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._hearing.close()
        if self._lines is not None:
            self._lines.stop()
        self._bar.stop()

    def compile(self, name: str) -> None:
        """Show that a kernel is being compiled, until the name is empty."""
        self._compiles = bool(name)

    def say(self, parts: Iterable[Part]) -> None:
        """Print it."""
        if not self._quiet:
            # Loads pandas, which what is refused does without.
            from fedhh.cli.text_tables import print_parts

            print_parts(self.console, parts)

    def phase(self, text: str, done: int = 0, of: int = 0) -> None:
        """Show it in place of the units, with its own share where that is known."""
        if of and not done:
            self._since = time.monotonic()
        self._text = safe_text(text)
        self._show(done, of)

    def start(self, work: Work) -> None:
        """Show how much there is to do, and say what was done before."""
        self._work, self._units, self._steps = work, work.done, work.steps_done
        self._running, self._since = {}, time.monotonic()
        self._show_units()
        if work.done and not self._quiet:
            left = work.total - work.done
            print_line(
                self.console, f"{work.done} of {work.total} {work.noun} are done, {left} left"
            )

    def begin(self, unit: str) -> None:
        """Show that a unit goes on."""
        self._running[safe_text(unit)] = None

    def advance(self, steps: int) -> None:
        """Move the bar."""
        self._steps += steps
        self._show_units()

    def finish(self, unit: str, result: Any) -> None:
        """Show the next unit."""
        self._running.pop(safe_text(unit), None)
        self._units += 1
        self._show_units()

    def note(self, text: str) -> None:
        """Show it below the bar."""
        self._note = safe_text(text, longest=None)

    @property
    def lines(self) -> list[str]:
        """What stands below the bar."""
        if self._compiles:
            return [_COMPILING]
        shown = list(self._running)[:_MOST_RUNNING]
        more = len(self._running) - len(shown)
        return [*shown, *([f"and {more} more"] if more else []), *([self._note] * bool(self._note))]

    @property
    def seconds_left(self) -> float | None:
        """What is left of the units, or of what stands in their place; None if unknown."""
        task = self._bar.tasks[0]
        if task.total is not None and self._is_of_units and self._work.seconds_left is not None:
            return self._work.seconds_left()
        before = (self._work.steps_done or self._work.done) if self._is_of_units else 0
        if task.total is None or task.completed <= before:
            return None
        passed = time.monotonic() - self._since
        return passed / (task.completed - before) * (task.total - task.completed)

    def line(self) -> str:
        """Return where it is, in one line."""
        task = self._bar.tasks[0]
        parts = [self._text]
        if task.total is not None:
            parts.append(f"{task.percentage:.0f}%")
        if self._is_of_units and self._running:
            parts.append(f"{len(self._running)} running")
        parts.append(f"{duration(task.elapsed)} so far")
        if (seconds := self.seconds_left) is not None:
            parts.append(f"{duration(seconds)} left")
        note = _COMPILING if self._compiles else self._note
        return ", ".join([*parts, *([note] if note else [])])

    def _show_units(self) -> None:
        work = self._work
        title = f"{safe_text(work.title)}: " if work.title else ""
        self._text = f"{title}{self._units} of {work.total} {work.noun}"
        if work.steps:
            self._show(self._steps, work.steps, is_of_units=True)
        else:
            self._show(self._units, work.total, is_of_units=True)

    def _show(self, done: int, of: int, *, is_of_units: bool = False) -> None:
        self._is_of_units = is_of_units
        task = self._bar.tasks[0]
        task.total = of or None
        self._bar.update(self._task, completed=done, description=self._text)


class _Bar(Progress):
    """A bar with lines of text below it; disabled, it is silent."""

    def __init__(self, shown: LiveProgress, *, disable: bool) -> None:
        self._shown = shown
        super().__init__(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f}%", markup=False),
            TimeElapsedColumn(),
            _LeftColumn(shown),
            console=shown.console,
            transient=True,
            disable=disable,
        )

    def stop(self) -> None:
        """Stop, if it was ever shown: rich before 14 ends a line that was never begun."""
        if not self.disable:
            super().stop()

    def get_renderables(self) -> Iterator[RenderableType]:
        """Yield the bar and the lines."""
        yield self.make_tasks_table(self.tasks)
        for line in self._shown.lines:
            yield Text(f"  {line}", style="dim", no_wrap=True, overflow="ellipsis")


class _LeftColumn(ProgressColumn):
    """The time left; a dash as long as nobody can know."""

    def __init__(self, shown: LiveProgress) -> None:
        self._shown = shown
        super().__init__()

    def render(self, task: Task) -> Text:
        """Return it as text."""
        return Text(f"left {duration(self._shown.seconds_left)}", style="progress.remaining")
