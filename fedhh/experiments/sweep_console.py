"""What a person sees of a sweep: a live table, and the summary. No number is computed here."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from fedhh.experiments.intervals import STATEMENT, summarize
from fedhh.experiments.labels import short_label, value_text
from fedhh.experiments.results import DONE, FAILED, Record
from fedhh.experiments.sweep_config import SKIP_RULES, Cell, Sweep

_MOST_ROWS = 30
_MOST_RUNNING = 4


class LiveSweep:
    """Shows a sweep's cells on a terminal; says nothing elsewhere. A sweep's listener."""

    def __init__(self, console: Console, best: str) -> None:
        """Draw on this console; rank finished cells by the metric ``best``."""
        self._best_metric = best
        self._shown = console.is_terminal
        self._running: dict[str, Cell] = {}
        self._total = self._done = self._done_before = self._failed = 0
        self._best: tuple[float, Cell] | None = None
        self._started = time.monotonic()
        self._live = Live(
            console=console, get_renderable=self._render, refresh_per_second=4, transient=True
        )

    def __enter__(self) -> LiveSweep:
        if self._shown:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._live.stop()

    def start(self, cells: Sequence[Cell], done: int) -> None:
        """Show how many cells there are."""
        self._total, self._done, self._done_before = len(cells) + done, done, done
        self._started = time.monotonic()

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
            table.add_row("best so far", f"{self._best_metric} {value:.1%} at {_where(cell)}")
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


def print_plan(console: Console, sweep: Sweep) -> None:
    """Print how many cells there are, and which are skipped by which rule."""
    skipped = [cell for cell in sweep.cells if cell.skipped]
    console.print(f"{len(sweep.to_run)} cells to run, {len(skipped)} skipped", highlight=False)
    for rule in dict.fromkeys(cell.skipped for cell in skipped):
        places = list(dict.fromkeys(_settings(cell) for cell in skipped if cell.skipped == rule))
        console.print(f"skipped by {rule} ({SKIP_RULES[rule]}):", highlight=False)
        for place in places:
            console.print(f"  {place}", highlight=False, soft_wrap=True)


def print_sweep(console: Console, sweep: Sweep, table: pd.DataFrame, directory: Path) -> None:
    """Print the best settings, what failed, and where the files are."""
    done = table[table["status"] == DONE]
    if not done.empty and sweep.best in done:
        console.print(_summary(sweep, done))
    for row in table[table["status"] == FAILED].to_dict("records"):
        console.print(f"failed: cell {row['cell']}, seed {row['seed']}: {row['error']}")
    console.print("Files: ", str(directory), sep="", soft_wrap=True, highlight=False)


def _summary(sweep: Sweep, done: pd.DataFrame) -> Table:
    axes = [path for path in sweep.to_run[0].varied if path in done]
    rows = summarize(done, axes, sweep.best) if axes else None
    table = Table(title=sweep.title or "sweep", caption=STATEMENT)
    for path in axes:
        table.add_column(short_label(path), justify="right")
    for name in (sweep.best, "95 % interval", "seeds"):
        table.add_column(name, justify="right")
    if rows is None:
        return table
    best_first = rows.sort_values("mean", ascending=False, kind="stable")
    for row in best_first.head(_MOST_ROWS).to_dict("records"):
        table.add_row(
            *(value_text(row[path]) for path in axes),
            f"{row['mean']:.1%}",
            "-" if pd.isna(row["low"]) else f"{row['low']:.1%} to {row['high']:.1%}",
            str(row["seeds"]),
        )
    if len(rows) > _MOST_ROWS:
        table.caption = f"the best {_MOST_ROWS} of {len(rows)}; {STATEMENT}"
    return table


def _settings(cell: Cell) -> str:
    return ", ".join(f"{short_label(path)} {value_text(v)}" for path, v in cell.varied.items())


def _where(cell: Cell) -> str:
    settings = _settings(cell)
    return f"{settings}, seed {cell.config.seed}" if settings else f"seed {cell.config.seed}"
