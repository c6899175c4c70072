"""What a person sees when a sweep or a comparison ends: the summary, and what failed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from fedhh.experiments.config.labels import short_label
from fedhh.experiments.report.comparison import comparison_table
from fedhh.experiments.report.measures import setting_text
from fedhh.experiments.study.parts import Line
from fedhh.experiments.study.text_table import TextTable
from fedhh.experiments.sweep.axes import PROTOCOL
from fedhh.experiments.sweep.directory import (
    FAILED,
    base_config,
    read_results,
    with_server_seconds,
)
from fedhh.experiments.sweep.execution import metric_text
from fedhh.experiments.sweep.intervals import interval_text, summarize

_MOST_ROWS = 30
_EPSILON = "privacy.local_epsilon"


def failure_lines(frame: pd.DataFrame) -> Iterator[Line]:
    """Yield the cells that have no result, and why."""
    for row in frame[frame["status"] == FAILED].to_dict("records"):
        where = f"{row[PROTOCOL]}, " if PROTOCOL in row else ""
        yield Line(f"failed: {where}cell {row['cell']}, seed {row['seed']}: {row['error']}")


def summary_table(done: pd.DataFrame, description: dict[str, Any]) -> TextTable:
    """Return a row for each setting, in the order of the axes; of too many, the best ones."""
    best = description["best"]
    # What varies stands between a cell's name and its place.
    columns = list(done.columns)
    axes = columns[columns.index("cell") + 1 : columns.index("beside_grid")]
    rows = summarize(done, axes, best) if axes else None
    lines: list[tuple[str, ...]] = []
    caption = ""
    if rows is not None:
        caption = interval_text(rows["seeds"])
        if len(rows) > _MOST_ROWS:
            caption = f"the best {_MOST_ROWS} of {len(rows)}; {caption}"
        ranked = rows["mean"].sort_values(ascending=False, kind="stable").index[:_MOST_ROWS]
        for row in rows.loc[sorted(ranked)].to_dict("records"):
            ends = "-"
            if not pd.isna(row["low"]):
                ends = " to ".join(metric_text(best, row[end]) for end in ("low", "high"))
            settings = (setting_text(row, path) for path in axes)
            lines.append((*settings, metric_text(best, row["mean"]), ends, str(row["seeds"])))
    return TextTable(
        title=description["title"] or "sweep",
        columns=(*map(short_label, axes), best, "interval", "seeds"),
        rows=tuple(lines),
        note="",
        labels=len(axes),
        caption=caption,
    )


def at_one_epsilon(directory: Path) -> TextTable:
    """Return the comparison at the configuration's own epsilon, or else the largest one."""
    frame, description = read_results(directory)
    frame = with_server_seconds(frame, directory)
    if _EPSILON not in description["axes"] or frame[_EPSILON].nunique() == 1:
        return comparison_table(frame, description)
    base = base_config(description)
    own = None if base is None else base.privacy.local_epsilon
    epsilon = own if (frame[_EPSILON] == own).any() else frame[_EPSILON].max()
    table = comparison_table(
        frame[frame[_EPSILON] == epsilon],
        {**description, "axes": [path for path in description["axes"] if path != _EPSILON]},
    )
    note = f"Local epsilon {epsilon:g} per contribution; comparison.md has the others. {table.note}"
    return replace(table, note=note)
