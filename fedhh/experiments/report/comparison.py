"""Protocols in one table, a column for each protocol, means over seeds."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from fedhh.experiments.config.labels import listed, protocol_labels, short_label, value_text
from fedhh.experiments.config.schema import Config
from fedhh.experiments.report.measures import (
    CEILING,
    CENTRAL,
    CLAIMED_K,
    COUNT_ERROR,
    DAYS,
    INTERVALS,
    SERVER_SECONDS,
    TOP,
    Measure,
    measures_of,
    record_of,
    setting_text,
    setting_value,
)
from fedhh.experiments.run.flat_result import flat_result
from fedhh.experiments.run.result import RunResult
from fedhh.experiments.study.text_table import TextTable
from fedhh.experiments.sweep.axes import PROTOCOL
from fedhh.experiments.sweep.central_target import TARGETS
from fedhh.experiments.sweep.columns import EXTRA, follows
from fedhh.experiments.sweep.intervals import interval_text, summarize
from fedhh.validation import InputError

METRIC = "metric"
"""The axis of measures, of which a table may have a column each."""

_HALF = "Mean ± half the"
_HEADS = {EXTRA: "outside the grid"}
_MEANINGS = {
    CEILING: "Ceiling: coverage of one round of Subset Selection that asks all clients about the "
    "held words alone, with the same epsilon and B, after Benjamini-Hochberg at 5 %.",
    "precision": "Words cut to the longest length that a protocol spells count as false.",
    COUNT_ERROR: "Count error: mean of |estimated - true| / true clients over significant "
    "discoveries that somebody holds.",
    DAYS: "Days: from the first round's beginning to the last one's end, with the devices that "
    "[devices] describes; clients that served answered in at least one round.",
    INTERVALS: "Interval coverage: share of words whose stated interval holds the number of "
    "clients that contribute them, which estimates are about.",
}
"""What a table's note says of some columns."""
_LOCAL = ("local_epsilon", "local_epsilon_user")
_NOT_ZERO = re.compile(r"[1-9]")


def comparison_table(
    table: pd.DataFrame,
    description: dict[str, Any],
    *,
    metrics: Sequence[str] = (),
    rows: Sequence[str] = (),
    columns: str = PROTOCOL,
) -> TextTable:
    """Return measures by settings and protocols: means over seeds.

    Args:
        table: Results, one row per cell and seed, with a column "protocol" of labels where
            protocols are compared, and, if the times are known, `SERVER_SECONDS`.
        description: ``title`` and ``axes`` of the sweep.
        metrics: Columns to show; all that the results have if empty.
        rows: Axes whose values name the rows, the first one outermost. The axes that are left
            follow; those that follow from others have no column, but are in the records.
        columns: The axis with a column for each value, or `METRIC`; else measures have rows, too.
    """
    if columns == PROTOCOL and PROTOCOL not in table:
        raise InputError(
            "These results do not list protocols; make them with fedhh compare, or with "
            "[sweep.protocols] in a sweep's file."
        )
    measures = measures_of(table, metrics)
    across = [] if columns == METRIC else [columns]
    axes = [path for path in description["axes"] if path in table]
    down = [*rows, *(path for path in axes if path not in (*rows, *across))]
    # What goes with another setting, as clients with a population, says nothing in a column.
    before = [] if columns == PROTOCOL else across
    named = [
        path
        for i, path in enumerate(down)
        if path in rows or not follows(table, [*before, *down[:i]], path)
    ]
    codes = [pd.factorize(table[path], use_na_sentinel=False)[0] for path in (*down, *across)]
    places: dict[tuple[int, ...], list[int]] = {}
    for place, key in enumerate(zip(*codes, strict=True) if codes else [()] * len(table)):
        places.setdefault(key, []).append(place)
    groups = {key: table.iloc[own] for key, own in places.items()}
    settings = {key: own.iloc[0].to_dict() for key, own in groups.items()}
    means = dict(zip(groups, _means(list(groups.values()), measures), strict=True))
    cells = {
        key: [_cell(*each) for each in zip(row, measures, strict=True)]
        for key, row in means.items()
    }
    lines: dict[tuple[int, ...], tuple[str, ...]] = {}
    heads: dict[tuple[int, ...], str] = {}
    text_of = setting_text if columns == METRIC else lambda row, path: value_text(row[path])
    for key, row in settings.items():
        lines.setdefault(key[: len(down)], tuple(text_of(row, path) for path in named))
        for path in across:
            name = "" if path == PROTOCOL else f"{short_label(path)} "
            heads.setdefault(key[len(down) :], name + value_text(row[path]))
    ordered = sorted(lines, key=lambda line: line[: len(rows)])
    nothing = ["-"] * len(measures)
    # One measure is named by the title.
    has_label = bool(across) and (len(measures) > 1 or not named)
    shown = (
        [(*lines[line], *cells[line]) for line in ordered]
        if columns == METRIC
        else [
            (
                *lines[line],
                *([measure.label] if has_label else []),
                *(cells.get((*line, *head), nothing)[i] for head in sorted(heads)),
            )
            for line in ordered
            for i, measure in enumerate(measures)
        ]
    )
    records = [
        {
            **{
                path: setting_value(settings[key], path)
                for path in (*down, *across)
                if path != EXTRA or path in named
            },
            "seeds": own["seed"].nunique(),
            **_record(means[key], measures),
        }
        for line in ordered
        for head in (sorted(heads) or [()])
        if (own := groups.get(key := (*line, *head))) is not None
    ]
    counts = [record["seeds"] for record in records]
    over = "One seed." if max(counts) == 1 else f"{interval_text(counts, mean=_HALF)}."
    title = description["title"]
    return TextTable(
        title=f"{title}: {measures[0].label}" if across and not has_label else title,
        columns=(
            *(_HEADS.get(path) or short_label(path) for path in named),
            *([""] if has_label else []),
            *([heads[key] for key in sorted(heads)] or [each.label for each in measures]),
        ),
        rows=tuple(shown),
        note=" ".join(
            filter(None, [over, description.get("clients", ""), *_meanings(table, measures)])
        ),
        labels=len(named) + has_label,
        records=tuple(records),
    )


def _meanings(table: pd.DataFrame, measures: Sequence[Measure]) -> list[str]:
    """Return sentences that say what the rows' words mean, see `metrics.measure`."""
    shown = {measure.column for measure in measures}
    notes = [text for column, text in _MEANINGS.items() if column in shown]
    if "recall" in shown and "min_clients" in table:
        fewest = _each(table["min_clients"], "{:,.0f}", " or ")
        notes.append(f"Recall is over the words held by at least {fewest} clients.")
    if any(column.startswith("f1") for column in shown):
        notes.append("F1 is the harmonic mean of precision and recall.")
    if any(map(TOP.fullmatch, shown)):
        notes.append(
            "Of the top K: the K largest estimates against the K words held by most clients."
        )
    if "population_clients" in table and (
        "clients_asked" in shown and (table["clients_asked"] > table["population_clients"]).any()
    ):
        notes.append("Clients asked in several rounds count in each.")
    deltas = _each(table["delta"]) if "delta" in table else ""
    for axis, unit in TARGETS.items():
        if axis in table:
            equal = " or ".join(value_text(each) for each in dict.fromkeys(table[axis]))
            notes.append(
                "Equal privacy: every protocol's epsilons are chosen so that the central epsilon "
                f"before the run, of one {unit} (neighbors replace one {unit}), is at most {equal} "
                f"at delta {deltas}, and as near to it as the accounting comes."
            )
    if any(column.startswith(CENTRAL) for column in shown):
        unrandomized = np.isinf(table["local_epsilon"]) & np.isfinite(table[CENTRAL])
        notes.append(
            f"Central epsilons are at delta {deltas}, against readers of the results, for "
            "neighbors that replace one item or one user; before the run for any domains that its "
            "votes may decide, after it for those that they did"
            + ("; without a randomizer, at the theorem's delta." if unrandomized.any() else ".")
        )
    if any(name in shown and np.isinf(table[name]).any() for name in _LOCAL):
        notes.append(
            "Local epsilon none: the aggregator reads words, or sums of them, or reports are not "
            "randomized."
        )
    if CLAIMED_K in shown and "alpha" in table and (alphas := _each(table["alpha"])):
        notes.append(
            f"k-anonymity at alpha {alphas}: a word that at most k clients hold returns with "
            "probability at most 1 - alpha."
        )
    return notes


def _each(column: pd.Series[Any], shown: str = "{:g}", between: str = ", ") -> str:
    return between.join(map(shown.format, sorted(column.dropna().unique())))


def results_of_runs(
    runs: Sequence[tuple[Config, RunResult]],
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return what `comparison_table` takes, of runs on the same clients."""
    labels = protocol_labels(
        [run.protocol.title for _, run in runs],
        [run.protocol.plan.participation for _, run in runs],
    )
    rows = [
        {
            PROTOCOL: label,
            "seed": run.seed,
            **numbers_of(flat_result(run, delta=config.privacy.delta)),
            SERVER_SECONDS: run.timings["server"],
        }
        for label, (config, run) in zip(labels, runs, strict=True)
    ]
    first = runs[0][1]
    title = (
        f"{listed([row[PROTOCOL] for row in rows])} on the same clients"
        if len(rows) > 1
        else f"{first.protocol.title} on {first.population['name']}"
    )
    return pd.DataFrame(rows), {"title": title, "axes": [PROTOCOL]}


def numbers_of(record: dict[str, Any]) -> dict[str, Any]:
    """Return a flat result with infinities as numbers again."""
    return {name: math.inf if value == "inf" else value for name, value in record.items()}


def _means(
    runs: Sequence[pd.DataFrame], measures: Sequence[Measure]
) -> list[list[dict[str, Any] | None]]:
    """Return, for the runs of each protocol in each setting, every measure's mean over seeds.

    A mean is a row of `summarize`, with half its interval as it is before a share's is cut; None
    if no run has the number. Of infinite numbers it is infinite, without an interval. All means of
    a measure are made at once: one by one takes long.
    """
    number = np.repeat(np.arange(len(runs)), [len(each) for each in runs])
    together = pd.concat(runs, ignore_index=True)
    means: list[list[dict[str, Any] | None]] = [[] for _ in runs]
    for measure in measures:
        numbers = pd.to_numeric(together[measure.column])
        infinite = set(number[np.isinf(numbers)])
        table = pd.DataFrame({"of": number, measure.column: numbers, "uncut": numbers})
        finite = table[~table["of"].isin(infinite)]
        uncut = summarize(finite, ["of"], "uncut")
        summary = summarize(finite, ["of"], measure.column).assign(
            half=uncut["high"] - uncut["mean"]
        )
        found: dict[int, Any] = {row["of"]: row for row in summary.to_dict("records")}
        for which, row in enumerate(means):
            row.append({"mean": math.inf} if which in infinite else found.get(which))
    return means


def _record(
    means: Sequence[dict[str, Any] | None], measures: Sequence[Measure]
) -> dict[str, float | None]:
    record: dict[str, float | None] = {}
    for measure, mean in zip(measures, means, strict=True):
        if mean is not None and math.isinf(mean["mean"]):
            record |= {f"{measure.column}_mean": math.inf}
        else:
            record |= record_of(measure.column, mean)
    return record


def _cell(mean: dict[str, Any] | None, measure: Measure) -> str:
    if mean is None:
        return "-"
    text_of, half_of = measure.formats
    text = text_of(float(mean["mean"]))
    if math.isinf(mean["mean"]):
        return text
    half = half_of(float(mean["half"]))
    # What rounds to nothing, and the missing interval of one seed, are left out.
    return f"{text} ± {half}" if _NOT_ZERO.search(half) else text
