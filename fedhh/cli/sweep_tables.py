"""What a person sees of a sweep: its plan, and the summary. No number is computed here."""

from __future__ import annotations

from collections.abc import Container, Iterable
from pathlib import Path
from typing import Any

import pandas as pd
from rich.table import Table

from fedhh.cli.console import SafeConsole, open_console, print_line, print_places
from fedhh.cli.safe_text import LONGEST_LINE, safe_text
from fedhh.cli.text_tables import print_table
from fedhh.experiments.config.labels import is_share, short_label, value_text
from fedhh.experiments.report.measures import setting_text
from fedhh.experiments.report.tables import make_table, usual_table
from fedhh.experiments.run.workers import Workers
from fedhh.experiments.sweep.axes import PROTOCOL
from fedhh.experiments.sweep.directory import DONE, FAILED
from fedhh.experiments.sweep.intervals import interval_text, summarize
from fedhh.experiments.sweep.plan import SKIP_RULES, Cell, Sweep
from fedhh.validation import InputError

_MOST_ROWS = 30


def print_plan(console: SafeConsole, sweep: Sweep, workers: Workers | None) -> None:
    """Print how many cells there are, where they run, and which are skipped by which rule.

    Args:
        console: Where to.
        sweep: The plan.
        workers: Who runs the cells that are left, if there are any and it is known.
    """
    skipped = [cell for cell in sweep.cells if cell.skipped]
    console.print(f"{len(sweep.to_run)} cells to run, {len(skipped)} skipped")
    if sweep.clients_line:
        print_line(console, safe_text(sweep.clients_line, longest=LONGEST_LINE))
    if workers is not None:
        print_line(console, safe_text(f"cells run {workers.why}", longest=LONGEST_LINE))
    for rule in dict.fromkeys(cell.skipped for cell in skipped):
        places = dict.fromkeys(settings_text(cell) for cell in skipped if cell.skipped == rule)
        console.print(f"skipped by {rule} ({SKIP_RULES[rule]}):")
        for place in places:
            print_line(console, f"  {place}")


def print_cells(console: SafeConsole, sweep: Sweep, missing: Container[str]) -> None:
    """Print every cell that runs, a line for all seeds of a setting, and which have a result."""
    for settings, cells in _by_settings(sweep.to_run).items():
        seeds = [cell.config.seed for cell in cells]
        done = sum(cell.id not in missing for cell in cells)
        words = [settings] if settings else []
        words.append(f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}")
        words += [f"{done} of {len(cells)} done"] if done else []
        print_line(console, f"  {', '.join(words)}")
    done = sum(cell.id not in missing for cell in sweep.to_run)
    if done:
        console.print(left_text(done, len(sweep.to_run)))


def left_text(done: int, total: int) -> str:
    """Return how many cells of a sweep are left."""
    return f"{done} of {total} cells are done, {total - done} left"


def cell_rows(sweep: Sweep, missing: Container[str]) -> list[dict[str, Any]]:
    """Return every cell as JSON values, skipped ones with their reason."""
    return [
        {
            "cell": cell.id,
            **cell.varied,
            "seed": cell.config.seed,
            "clients_in_all": None if cell.asked is None else cell.asked.clients,
            "done": not cell.skipped and cell.id not in missing,
            "skipped_by": cell.skipped or None,
        }
        for cell in sweep.cells
    ]


def _by_settings(cells: Iterable[Cell]) -> dict[str, list[Cell]]:
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(settings_text(cell), []).append(cell)
    return groups


def print_sweep(console: SafeConsole, sweep: Sweep, table: pd.DataFrame, directory: Path) -> None:
    """Print the best settings, what failed, and where the files are."""
    done = table[table["status"] == DONE]
    if not done.empty and sweep.best in done:
        console.print(_summary(sweep, done))
        if (name := usual_table(directory)).startswith("gboard"):
            print_table(console, make_table(name, directory))
    print_failures(console, table)
    print_places(console, directory, has_settings=True)


def draw_sweep(directory: Path, *, quiet: bool) -> None:
    """Write a sweep's figures into its directory; say why on stderr if there is none to draw."""
    # Loads matplotlib, which a dry run does without.
    from fedhh.experiments.report.sweep_figures import plot_sweep

    try:
        plot_sweep(directory)
    except InputError as error:
        if not quiet:
            line = f"No figure: {safe_text(error, longest=LONGEST_LINE)}"
            print_line(open_console(stderr=True), line)


def print_failures(console: SafeConsole, table: pd.DataFrame) -> None:
    """Print the cells that have no result, and why."""
    for row in table[table["status"] == FAILED].to_dict("records"):
        where = f"{row[PROTOCOL]}, " if PROTOCOL in row else ""
        error = safe_text(row["error"], longest=LONGEST_LINE)
        console.print(f"failed: {safe_text(where)}cell {row['cell']}, seed {row['seed']}: {error}")


def _summary(sweep: Sweep, done: pd.DataFrame) -> Table:
    """Return a row for each setting, in the order of the axes; of too many, the best ones."""
    axes = [path for path in sweep.to_run[0].varied if path in done]
    rows = summarize(done, axes, sweep.best) if axes else None
    table = Table(
        title=safe_text(sweep.title) or "sweep", title_justify="left", caption_justify="left"
    )
    for path in axes:
        table.add_column(short_label(path), justify="right")
    for name in (sweep.best, "interval", "seeds"):
        table.add_column(name, justify="right")
    if rows is None:
        return table
    table.caption = interval_text(rows["seeds"])
    if len(rows) > _MOST_ROWS:
        table.caption = f"the best {_MOST_ROWS} of {len(rows)}; {table.caption}"
    best = rows["mean"].sort_values(ascending=False, kind="stable").index[:_MOST_ROWS]
    for row in rows.loc[sorted(best)].to_dict("records"):
        table.add_row(
            *(safe_text(setting_text(row, path)) for path in axes),
            metric_text(sweep.best, row["mean"]),
            "-"
            if pd.isna(row["low"])
            else " to ".join(metric_text(sweep.best, row[end]) for end in ("low", "high")),
            str(row["seeds"]),
        )
    return table


def settings_text(cell: Cell) -> str:
    """Return what varies of a cell, and its values."""
    return ", ".join(
        f"{short_label(path)} {safe_text(value_text(value))}" for path, value in cell.varied.items()
    )


def metric_text(metric: str, value: float) -> str:
    """Return a metric's value as text, a share in percent."""
    return f"{value:.1%}" if is_share(metric) else f"{value:,.4g}"
