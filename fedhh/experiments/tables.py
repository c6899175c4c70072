"""Tables of a sweep, from its results file alone, as Markdown, CSV or LaTeX."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from fedhh.experiments.comparison import comparison_table
from fedhh.experiments.intervals import (
    GAIN,
    STATEMENT,
    paired_gain,
    sampling_gains,
    summarize,
)
from fedhh.experiments.labels import is_share, short_label, value_text
from fedhh.experiments.results import read_results, with_server_seconds
from fedhh.experiments.text_table import TextTable
from fedhh.validation import InputError, require_choice

_METRICS = ("coverage", "precision", "recall", "f1")

# Sun et al. (2024), Table 1: T = 60 days, epsilon = 10, 15 million clients in all.
_PAPER_TABLE_1 = {("greedy", 1): 0.771, ("random", 1): 0.831, ("random", 2): 0.921}


def make_table(name: str, directory: Path) -> TextTable:
    """Return a named table of a sweep's results.

    Args:
        name: One of `TABLES`.
        directory: The sweep's directory.

    Raises:
        InputError: The name is unknown, or the results lack what the table shows.
    """
    require_choice(TABLES, table=name)
    table, description = read_results(directory)
    return TABLES[name](with_server_seconds(table, directory), description)


def _summary(table: pd.DataFrame, description: dict[str, Any]) -> TextTable:
    """Return every setting with its metrics."""
    axes = [path for path in description["axes"] if path in table]
    if table["beside_grid"].any() and "protocol.oracle" in table:
        axes = [*axes, *(["protocol.oracle"] if "protocol.oracle" not in axes else [])]
    keyed = table if axes else table.assign(all="all")
    by = axes or ["all"]
    metrics = [name for name in _METRICS if name in table]
    summaries = [summarize(keyed, by, metric).to_dict("records") for metric in metrics]
    rows = [
        (
            *(_setting(settings[0], path) for path in by),
            *(
                _with_interval(row, share=is_share(metric))
                for row, metric in zip(settings, metrics, strict=True)
            ),
        )
        for settings in zip(*summaries, strict=True)
    ]
    return TextTable(
        title=description["title"],
        columns=(*(short_label(path) for path in by), *metrics),
        rows=tuple(rows),
        note=_note(table),
    )


def _gboard_table_1(table: pd.DataFrame, description: dict[str, Any]) -> TextTable:
    """Return the Gboard paper's Table 1 beside ours."""
    needed = {"protocol.sampler", "protocol.passes", "protocol.clients_per_layer"}
    if missing := sorted(needed - set(table)):
        raise InputError(
            f"These results do not vary {', '.join(missing)}; make them with "
            "fedhh sweep --preset gboard-table1-quick."
        )
    rows = []
    earlier = None
    for (sampler, passes), paper in _PAPER_TABLE_1.items():
        mask = (
            (table["protocol.sampler"] == sampler) & (table["protocol.passes"] == passes)
        ).to_numpy()
        if not mask.any():
            raise InputError(f"These results lack sampler={sampler!r} with passes={passes}.")
        chosen = table[mask]
        ours = summarize(chosen.assign(all="all"), ["all"], "coverage").iloc[0].to_dict()
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
            f"can be compared. {_note(table)} Gains are over the row above, seed by seed."
        ),
    )  # fmt: skip


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
    rows = [
        (
            *(value_text(gain[path]) for path in by),
            *(f"{row['mean']:.1%}" for row in both),
            _points_with_interval({key: gain[key] / 100 for key in ("mean", "low", "high")}),
        )
        for gain, *both in zip(
            summarize(keyed, by, GAIN).to_dict("records"), *samplers, strict=True
        )
    ]
    return TextTable(
        title=description["title"],
        columns=(*(short_label(path) for path in by), "greedy", "random", "gain"),
        rows=tuple(rows),
        note=f"Coverage; the gain in points, seed by seed. {_note(gains)}",
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


def _note(table: pd.DataFrame) -> str:
    seeds = table["seed"].nunique()
    return "One seed." if seeds == 1 else f"Mean and {STATEMENT} ({seeds})."


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
