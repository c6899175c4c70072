"""Protocols in one table, a column for each protocol, means over seeds."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from fedhh.experiments.config.labels import listed, short_label, value_text
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
)
from fedhh.experiments.run.flat_result import flat_result
from fedhh.experiments.run.result import RunResult
from fedhh.experiments.study.text_table import TextTable
from fedhh.experiments.sweep.axes import PROTOCOL
from fedhh.experiments.sweep.central_target import TARGETS
from fedhh.experiments.sweep.columns import follows
from fedhh.experiments.sweep.intervals import interval_text, summarize
from fedhh.validation import InputError

_HALF = "Mean ± half the"
_NOT_ZERO = re.compile(r"[1-9]")


def comparison_table(
    table: pd.DataFrame, description: dict[str, Any], *, short: bool = False
) -> TextTable:
    """Return a column for each protocol, and a row for each measure.

    Args:
        table: Results, one row per cell and seed, with a column "protocol" of labels and, if the
            times are known, `SERVER_SECONDS`.
        description: ``title`` and ``axes`` of the sweep; if other settings vary than the protocol,
            rows are repeated for each combination of them; those that follow from others have no
            column, but are in the records.
        short: Whether only what a run's summary compares gets a row.
    """
    if PROTOCOL not in table:
        raise InputError(
            "These results do not list protocols; make them with fedhh compare, or with "
            "[sweep.protocols] in a sweep's file."
        )
    others = [path for path in description["axes"] if path != PROTOCOL and path in table]
    # What goes with another setting, as clients with a population, says nothing in a column.
    named = [path for i, path in enumerate(others) if not follows(table, others[:i], path)]
    labels = list(dict.fromkeys(table[PROTOCOL]))
    measures = measures_of(table, short=short)
    groups = table.groupby(others, sort=False, dropna=False) if others else [((), table)]
    parts: list[tuple[Any, pd.DataFrame]] = list(groups)
    runs = {
        (number, label): own
        for number, (_, part) in enumerate(parts)
        for label in labels
        if not (own := part[part[PROTOCOL] == label]).empty
    }
    means = _means(list(runs.values()), measures)
    texts = {
        key: [_cell(*each) for each in zip(row, measures, strict=True)]
        for key, row in zip(runs, means, strict=True)
    }
    nothing = ["-"] * len(measures)
    rows = [
        (
            *(value_text(x) for path, x in zip(others, values, strict=True) if path in named),
            measure.label,
            *(texts.get((number, label), nothing)[line] for label in labels),
        )
        for number, (values, _) in enumerate(parts)
        for line, measure in enumerate(measures)
    ]
    records = [
        {
            **dict(zip(others, parts[number][0], strict=True)),
            PROTOCOL: label,
            "seeds": own["seed"].nunique(),
            **_record(row, measures),
        }
        for ((number, label), own), row in zip(runs.items(), means, strict=True)
    ]
    counts = [record["seeds"] for record in records]
    over = "One seed." if max(counts) == 1 else f"{interval_text(counts, mean=_HALF)}."
    return TextTable(
        title=description["title"],
        columns=(*(short_label(path) for path in named), "", *labels),
        rows=tuple(rows),
        note=" ".join(
            filter(None, [over, description.get("clients", ""), *_meanings(table, measures)])
        ),
        labels=len(named) + 1,
        records=tuple(records),
    )


def _meanings(table: pd.DataFrame, measures: Sequence[Measure]) -> list[str]:
    """Return sentences that say what the rows' words mean, see `metrics.measure`."""
    shown = {measure.column for measure in measures}
    notes = []
    if CEILING in shown:
        notes.append(
            "Ceiling: coverage of one round of Subset Selection that asks all clients about the "
            "held words alone, with the same epsilon and B, after Benjamini-Hochberg at 5 %."
        )
    if "recall" in shown and "min_clients" in table:
        fewest = _each(table["min_clients"], "{:,.0f}", " or ")
        notes.append(f"Recall is over the words held by at least {fewest} clients.")
    if any(column.startswith("f1") for column in shown):
        notes.append("F1 is the harmonic mean of precision and recall.")
    if any(map(TOP.fullmatch, shown)):
        notes.append(
            "Of the top K: the K largest estimates against the K words held by most clients."
        )
    if "precision" in shown:
        notes.append("Words cut to the longest length that a protocol spells count as false.")
    if COUNT_ERROR in shown:
        notes.append(
            "Count error: mean of |estimated - true| / true clients over significant discoveries "
            "that somebody holds."
        )
    if DAYS in shown:
        notes.append(
            "Days: from the first round's beginning to the last one's end, with the devices that "
            "[devices] describes; clients that served answered in at least one round."
        )
    if INTERVALS in shown:
        notes.append(
            "Interval coverage: share of words whose stated interval holds the number of clients "
            "that contribute them, which estimates are about."
        )
    if "population_clients" in table and (
        "clients_asked" in shown and (table["clients_asked"] > table["population_clients"]).any()
    ):
        notes.append("Clients asked in several rounds count in each.")
    deltas = _each(table["delta"])
    for axis, unit in TARGETS.items():
        if axis in table:
            equal = " or ".join(value_text(each) for each in dict.fromkeys(table[axis]))
            notes.append(
                "Equal privacy: every protocol's epsilons are chosen so that the central epsilon "
                f"before the run, of one {unit} (neighbors swap one {unit}), is at most {equal} at "
                f"delta {deltas}, and as near to it as the accounting comes."
            )
    unrandomized = np.isinf(table["local_epsilon"]) & np.isfinite(table[CENTRAL])
    notes.append(
        f"Central epsilons are at delta {deltas}, against readers of the results, for neighbors "
        "that swap one item or one user; before the run for any domains that its votes may decide, "
        "after it for those that they did"
        + ("; without a randomizer, at the theorem's delta." if unrandomized.any() else ".")
    )
    if CLAIMED_K in shown and "alpha" in table and (alphas := _each(table["alpha"])):
        notes.append(
            f"k-anonymity at alpha {alphas}: a word that at most k clients hold returns with "
            "probability at most 1 - alpha."
        )
    return notes


def _each(column: pd.Series[Any], shown: str = "{:g}", between: str = ", ") -> str:
    return between.join(map(shown.format, sorted(column.dropna().unique())))


def comparison_of_runs(runs: Sequence[tuple[Config, RunResult]]) -> TextTable:
    """Return a short table of some runs, each with its configuration, on the same clients."""
    rows = [
        {
            PROTOCOL: run.protocol.title,
            "seed": run.seed,
            **numbers_of(flat_result(run, delta=config.privacy.delta)),
            SERVER_SECONDS: run.timings["server"],
        }
        for config, run in runs
    ]
    title = f"{listed([row[PROTOCOL] for row in rows])} on the same clients"
    return comparison_table(pd.DataFrame(rows), {"title": title, "axes": [PROTOCOL]}, short=True)


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
