"""Tables of a sweep, from its results file alone, as Markdown, CSV or LaTeX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from fedhh.experiments.config.labels import short_label, value_text
from fedhh.experiments.report import gboard
from fedhh.experiments.report.comparison import METRIC, comparison_table
from fedhh.experiments.report.measures import (
    DAYS,
    TOP,
    metric_names,
    note_of,
    points_with_interval,
    record_of,
    setting_text,
)
from fedhh.experiments.study.kinds import Chosen
from fedhh.experiments.study.text_table import TextTable
from fedhh.experiments.sweep.axes import PROTOCOL
from fedhh.experiments.sweep.columns import EXTRA, has_numbers, is_numeric, varied_settings
from fedhh.experiments.sweep.directory import base_config, read_timed_results
from fedhh.experiments.sweep.execution import metric_text
from fedhh.experiments.sweep.intervals import (
    GAIN,
    failed_text,
    interval_text,
    sampling_gains,
    summarize,
)
from fedhh.validation import InputError, did_you_mean, require_choice
from fedhh.validation import shown as shown_name

MAIN_METRICS = ("coverage", "precision", "discovered", "central_epsilon_user_before_run")
_ON_REQUEST = ("share_of_ceiling", DAYS)
"""What results have only where somebody asked for it."""
_USUAL = Chosen()

_EPSILON = "privacy.local_epsilon"
_MOST_ROWS = 30


def make_table(name: str, directory: Path) -> TextTable:
    """Return a named table of a sweep's directory, see `made_table`."""
    return made_table(name, *read_timed_results(directory))


def made_table(name: str, table: pd.DataFrame, description: dict[str, Any]) -> TextTable:
    """Return one of `TABLES`; its note says how many cells failed."""
    require_choice(TABLES, table=name)
    made = TABLES[name](table, description)
    failed = failed_text(description["failed"])
    return replace(made, note=f"{made.note} {failed}.") if failed else made


def usual_table(table: pd.DataFrame, description: dict[str, Any]) -> str:
    """Return the name of the table that says most of a sweep's results."""
    if PROTOCOL in description["axes"]:
        return "comparison"
    return gboard.fitting_table(table, description) or "summary"


def chosen_table(
    table: pd.DataFrame, description: dict[str, Any], chosen: Chosen = _USUAL
) -> TextTable:
    """Return settings with metrics; cells outside the grid are rows of their own."""
    axes = [path for path in description["axes"] if path in table]
    numbers = [name for name in map(str, table) if name not in axes and is_numeric(table, name)]
    chosen = named_choice(chosen, axes, numbers)
    keyed, shown = _labeled(table, axes) if EXTRA in table else (table, axes)
    return comparison_table(
        keyed,
        {**description, "axes": [*shown, *axes, EXTRA]},
        metrics=chosen.metrics
        or (*MAIN_METRICS, *(each for each in _ON_REQUEST if has_numbers(table, each))),
        rows=chosen.rows or [path for path in shown if path != chosen.columns],
        columns=chosen.columns or METRIC,
    )


def named_choice(
    chosen: Chosen, axes: Sequence[str], metrics: Sequence[str] | None = None
) -> Chosen:
    """Return a choice with the columns of results in place of what a user calls them.

    Args:
        chosen: Names are columns, the last parts of their paths, or what tables call them.
        axes: Columns of the settings, and "protocol".
        metrics: Columns of numbers; None before a run: any column of numbers that it may leave.

    Raises:
        InputError: A name is none of them, or stands in two places.
    """
    known = {METRIC: METRIC}
    for path in axes:
        known |= dict.fromkeys((short_label(path), path.rpartition(".")[2], path), path)
    names = metric_names(metrics)
    labels = {label: column for column, label in names.items()}
    places = [
        _known(name, known, "row or column")
        for name in (*chosen.rows, chosen.columns or "")
        if name
    ]
    if len(set(places)) < len(places):
        raise InputError(f"Expected each of --rows and --columns once, got {', '.join(places)}.")
    columns = places.pop() if chosen.columns else None
    if METRIC in places:
        # Measures are the last label, where they are no columns.
        places.remove(METRIC)
        columns = columns or PROTOCOL
    return Chosen(
        metrics=[
            name
            if metrics is None and TOP.fullmatch(name)
            else _known(name, labels | {each: each for each in names}, "metric")
            for name in chosen.metrics
        ],
        rows=places,
        columns=columns,
    )


def _known(name: str, known: dict[str, str], what: str) -> str:
    """Return the column of a name; errors list columns alone."""
    if name not in known:
        columns = dict.fromkeys(known.values())
        raise InputError(f"Unknown {what} {shown_name(name)}{did_you_mean(name, columns)}")
    return known[name]


def _labeled(table: pd.DataFrame, axes: list[str]) -> tuple[pd.DataFrame, list[str]]:
    """Return the results, and the columns that say what a row of the summary is.

    A single extra stands in the columns of what it sets, several are named in one column.
    """
    is_extra = table[EXTRA] != ""
    extras = table[EXTRA][is_extra].unique()
    shown = list(axes)
    if len(extras) == 1 and PROTOCOL not in axes:
        shown += [
            path
            for path in varied_settings(table)
            if path not in axes and set(table[path][is_extra]) - set(table[path][~is_extra])
        ]
    elif len(extras):
        shown.append(EXTRA)
    return (table, shown) if shown else (table.assign(all="all"), ["all"])


def _sampling(table: pd.DataFrame, description: dict[str, Any]) -> TextTable:
    gains = sampling_gains(table, description["axes"])
    if gains.empty:
        raise InputError(
            "These results have no setting with both samplers; make them with "
            "fedhh sweep --preset sampling-quick."
        )
    by = [path for path in description["axes"] if path in gains]
    keyed, by = (gains, by) if by else (gains.assign(all="all"), ["all"])
    samplers = [summarize(keyed, by, name).to_dict("records") for name in ("greedy", "random")]
    summary = summarize(keyed, by, GAIN)
    rows, records = [], []
    for gain, greedy, random in zip(summary.to_dict("records"), *samplers, strict=True):
        rows.append(
            (
                *(value_text(gain[path]) for path in by),
                *(f"{row['mean']:.1%}" for row in (greedy, random)),
                points_with_interval({key: gain[key] / 100 for key in ("mean", "low", "high")}),
            )
        )
        records.append(
            {
                **{path: gain[path] for path in by},
                "seeds": gain["seeds"],
                **record_of("greedy", greedy),
                **record_of("random", random),
                **record_of("gain", gain, scale=0.01),
            }
        )
    return TextTable(
        title=description["title"],
        columns=(*(short_label(path) for path in by), "greedy", "random", "gain"),
        rows=tuple(rows),
        note=f"Coverage; the gain in points, seed by seed. {note_of(summary['seeds'])}",
        labels=len(by),
        records=tuple(records),
    )


def brief_table(done: pd.DataFrame, description: dict[str, Any]) -> TextTable:
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


def at_one_epsilon(table: pd.DataFrame, description: dict[str, Any]) -> TextTable:
    """Return the protocols at the configuration's own epsilon, or else the largest one."""
    if _EPSILON not in description["axes"]:
        return chosen_table(table, description)
    base = base_config(description)
    own = None if base is None else base.privacy.local_epsilon
    epsilon = own if (table[_EPSILON] == own).any() else table[_EPSILON].max()
    axes = [path for path in description["axes"] if path != _EPSILON]
    at_one = chosen_table(table[table[_EPSILON] == epsilon], {**description, "axes": axes})
    others = "; comparison.md has the others" if table[_EPSILON].nunique() > 1 else ""
    note = f"Local epsilon {epsilon:g} per contribution{others}. {at_one.note}"
    return replace(at_one, note=note)


TABLES: dict[str, Callable[[pd.DataFrame, dict[str, Any]], TextTable]] = {
    "summary": chosen_table,
    "gboard-table1": gboard.table_1,
    "gboard-figure1": gboard.figure_1,
    "sampling": _sampling,
    "comparison": comparison_table,
}
