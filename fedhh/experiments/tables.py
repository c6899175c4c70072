"""Tables of a sweep, from its results file alone, as Markdown, CSV or LaTeX."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from fedhh.experiments.comparison import comparison_table
from fedhh.experiments.intervals import (
    GAIN,
    STATEMENT,
    Mask,
    failed_text,
    paired_gain,
    sampling_gains,
    seeds_text,
    summarize,
)
from fedhh.experiments.labels import is_share, short_label, value_text
from fedhh.experiments.results import read_labeled_results, with_server_seconds
from fedhh.experiments.sweep_axes import PROTOCOL
from fedhh.experiments.sweep_settings import EXTRA, varied_settings, varying
from fedhh.experiments.text_table import TextTable
from fedhh.validation import InputError, require_choice

_METRICS = ("coverage", "precision", "recall", "f1")

_HEADS = {EXTRA: "beside the grid"}

# Sun et al. (2024), Table 1: T = 60 days, epsilon = 10, 15 million clients in all.
_PAPER_TABLE_1 = {("greedy", 1): 0.771, ("random", 1): 0.831, ("random", 2): 0.921}
_TABLE_1_SETTINGS = {"protocol.sampler", "protocol.passes", "protocol.clients_per_layer"}


def make_table(name: str, directory: Path) -> TextTable:
    """Return a named table of a sweep's results; its note says how many cells failed.

    Args:
        name: One of `TABLES`.
        directory: The sweep's directory.

    Raises:
        InputError: The name is unknown, or the results lack what the table shows.
    """
    require_choice(TABLES, table=name)
    table, description = read_labeled_results(directory)
    made = TABLES[name](with_server_seconds(table, directory), description)
    failed = failed_text(description["failed"])
    return replace(made, note=f"{made.note} {failed}.") if failed else made


def _summary(table: pd.DataFrame, description: dict[str, Any]) -> TextTable:
    """Return every setting with its metrics; cells beside the grid are rows of their own."""
    axes = [path for path in description["axes"] if path in table]
    keyed, shown = _labeled(table, axes)
    keys = [*axes, *(path for path in shown if path not in axes), EXTRA]
    metrics = [name for name in _METRICS if name in table]
    rows: list[tuple[str, ...]] = []
    seeds: list[int] = []
    for _, part in keyed.groupby(list(dict.fromkeys(keys)), sort=False, dropna=False):
        settings = part.iloc[0].to_dict()
        cells = []
        for metric in metrics:
            summary = summarize(part, ["beside_grid"], metric).to_dict("records")
            seeds.extend(row["seeds"] for row in summary)
            cells.append(_with_interval(summary[0], share=is_share(metric)) if summary else "-")
        rows.append((*(_setting(settings, path) for path in shown), *cells))
    return TextTable(
        title=description["title"],
        columns=(*(_HEADS.get(path) or short_label(path) for path in shown), *metrics),
        rows=tuple(rows),
        note=_note(seeds),
    )


def _labeled(table: pd.DataFrame, axes: list[str]) -> tuple[pd.DataFrame, list[str]]:
    """Return the results, and the columns that say what a row of the summary is.

    A single extra stands in the columns of what it sets, several are named in one column.
    """
    beside = table[EXTRA] != ""
    extras = table[EXTRA][beside].unique()
    shown = list(axes)
    if len(extras) == 1 and PROTOCOL not in axes:
        shown += [
            path
            for path in varied_settings(table)
            if path not in axes and set(table[path][beside]) - set(table[path][~beside])
        ]
    elif len(extras):
        shown.append(EXTRA)
    return (table, shown) if shown else (table.assign(all="all"), ["all"])


def _gboard_table_1(table: pd.DataFrame, description: dict[str, Any]) -> TextTable:
    """Return the Gboard paper's Table 1 beside ours; cells beside the grid are none of its rows."""
    if missing := sorted(_TABLE_1_SETTINGS - set(table)):
        raise InputError(
            f"These results do not vary {', '.join(missing)}; make them with "
            "fedhh sweep --preset gboard-table1-quick."
        )
    table = table[~table["beside_grid"]]
    _require_table_1_settings(table)
    rows = []
    seeds = []
    earlier = None
    for (sampler, passes), paper in _PAPER_TABLE_1.items():
        mask = _is_row(table, sampler, passes)
        if not mask.any():
            raise InputError(f"These results lack sampler={sampler!r} with passes={passes}.")
        chosen = table[mask]
        ours = summarize(chosen.assign(all="all"), ["all"], "coverage").iloc[0].to_dict()
        seeds.append(ours["seeds"])
        gains = ("", "")
        if earlier is not None:
            before_mask, before_paper = earlier
            gain = paired_gain(table, mask, before_mask, "coverage")
            gains = (_points(paper - before_paper), _points_with_interval(gain))
        earlier = mask, paper
        rows.append(
            (
                sampler,
                str(passes),
                value_text(chosen["protocol.clients_per_layer"].iloc[0]),
                f"{paper:.1%}",
                _with_interval(ours, share=True),
                *gains,
            )
        )
    population = table["population"].iloc[0].rsplit(", seed", maxsplit=1)[0]
    return TextTable(
        title="Coverage as in Table 1 of Sun et al. (2024)",
        columns=(
            "sampling", "passes", "clients per layer", "paper", "fedhh", "paper's gain",
            "fedhh's gain",
        ),
        rows=tuple(rows),
        note=(
            f"fedhh: {population}. The paper's population is not public; order and gains are what "
            f"can be compared. {_note(seeds)} Gains are over the row above, seed by seed."
        ),
    )  # fmt: skip


def _require_table_1_settings(grid: pd.DataFrame) -> None:
    """Raise InputError unless sampler and passes decide the cell, and nothing else varies."""
    others = [path for path in varying(grid) if path not in _TABLE_1_SETTINGS]
    for sampler, passes in _PAPER_TABLE_1:
        if len(grid["protocol.clients_per_layer"][_is_row(grid, sampler, passes)].unique()) > 1:
            others.append("protocol.clients_per_layer")
            break
    if others:
        raise InputError(
            f"Table 1 has one setting per sampler and passes, and these results also vary "
            f"{', '.join(others)}; use fedhh table summary, or run a sweep without them."
        )


def _is_row(table: pd.DataFrame, sampler: str, passes: int) -> Mask:
    return (
        (table["protocol.sampler"] == sampler) & (table["protocol.passes"] == passes)
    ).to_numpy()


def _sampling(table: pd.DataFrame, description: dict[str, Any]) -> TextTable:
    """Return greedy and random sampling beside each other."""
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
    rows = [
        (
            *(value_text(gain[path]) for path in by),
            *(f"{row['mean']:.1%}" for row in both),
            _points_with_interval({key: gain[key] / 100 for key in ("mean", "low", "high")}),
        )
        for gain, *both in zip(summary.to_dict("records"), *samplers, strict=True)
    ]
    return TextTable(
        title=description["title"],
        columns=(*(short_label(path) for path in by), "greedy", "random", "gain"),
        rows=tuple(rows),
        note=f"Coverage; the gain in points, seed by seed. {_note(summary['seeds'])}",
        labels=len(by),
    )


TABLES: dict[str, Callable[[pd.DataFrame, dict[str, Any]], TextTable]] = {
    "summary": _summary,
    "gboard-table1": _gboard_table_1,
    "sampling": _sampling,
    "comparison": comparison_table,
}


def _setting(row: dict[Any, Any], path: str) -> str:
    """Return a setting as text; without a randomizer there is no epsilon."""
    if path == "privacy.local_epsilon" and row.get("protocol.oracle") == "none":
        return "-"
    return value_text(row[path])


def _note(counts: Iterable[int]) -> str:
    """Return what the numbers are, given how many seeds each is a mean of."""
    seeds = seeds_text(counts)
    return "One seed." if seeds == "1" else f"Mean and {STATEMENT} ({seeds})."


def _with_interval(row: dict[Any, Any], *, share: bool) -> str:
    mean, low, high = (
        f"{row[key]:.1%}" if share else f"{row[key]:,.3g}" for key in ("mean", "low", "high")
    )
    return mean if pd.isna(row["low"]) else f"{mean} [{low}, {high}]"


def _points(value: float) -> str:
    return f"{100 * value:+.1f}"


def _points_with_interval(row: Any) -> str:
    if pd.isna(row["low"]):
        return _points(row["mean"])
    return f"{_points(row['mean'])} [{_points(row['low'])}, {_points(row['high'])}]"
