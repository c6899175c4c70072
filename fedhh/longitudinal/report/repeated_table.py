"""The table that ends a discovery over months."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fedhh.accounting.sources import BASIC
from fedhh.experiments.study.text_table import TextTable
from fedhh.longitudinal.repeated.config import Arm, Plan
from fedhh.longitudinal.repeated.run import Outcome
from fedhh.longitudinal.report.repeated_figures import class_label
from fedhh.validation import InputError


def longitudinal_table(outcome: Outcome, tables: dict[str, pd.DataFrame]) -> TextTable:
    """Return one row for each protocol and yearly loss: what it costs and what it finds."""
    bounds = outcome.plan.section.classes
    rows, records = [], []
    for arm in outcome.plan.arms:
        losses, periods, classes = (
            _of(tables[name], arm) for name in ("losses", "periods", "classes")
        )
        loss, last = losses.iloc[0], periods.iloc[-1]
        new = classes[classes["is_new"]].set_index("per_1000_at_least")
        skipped = int((periods["status"] != "run").sum())
        cells = [_cell(row) for _, row in new.loc[list(bounds)].iterrows()]
        rows.append(
            (
                arm.label,
                f"{loss['year_basic']:g}",
                f"{loss['year_runs']}",
                f"{loss['most_runs']}",
                f"{periods['asked'].mean():,.0f}",
                f"{len(periods) - skipped} of {len(periods)}",
                f"{last['published_so_far']}",
                f"{last['false_so_far']}",
                f"{last['coverage']:.1%}",
                *cells,
            )
        )
        records.append(_record(loss, last, periods, new))
    columns = (
        "protocol",
        "loss in a year",
        "answers in a year",
        "most answers so far",
        "devices asked",
        "runs",
        "words",
        "false",
        "coverage",
        *(
            f"days until found: used by {class_label(bounds, place)} in 1,000"
            for place in range(len(bounds))
        ),
    )
    return TextTable(
        title=f"Days until a new word is found, {outcome.days} days, a run every "
        f"{outcome.every_days}",
        columns=columns,
        rows=tuple(rows),
        note=(
            "Loss: the most that a device's first year can take, local epsilon of all that it "
            f"sends, delta 0, by {BASIC}; neighbors differ in all words of one device; losses.csv "
            "has the optimal composition, and any 365 days in a row. False: words that no device "
            "typed when they were published. Coverage: of what was typed in the last period. The "
            "rest, by how many people in 1,000 use a word at its best: median days from the first "
            f"period in which {bounds[0]:g} in 1,000 do, with a 95 % interval (Kaplan and Meier "
            "1958; from: it has no upper end), and how many of the words were never found; no "
            "median: fewer than half were found."
        ),
        records=tuple(records),
    )


def skipped_lines(plan: Plan, periods: pd.DataFrame) -> list[str]:
    """Return a line for each protocol that made fewer runs than there were periods."""
    lines = []
    for arm in plan.arms:
        own = periods[(periods["protocol"] == arm.label) & (periods["status"] != "run")]
        if arm.asked_loss is not None:
            own = own[own["yearly_loss"] == arm.asked_loss]
        if len(own):
            first = own.iloc[0]
            lines.append(
                f"{arm.name}: no run in {len(own)} periods, first in period {first['period']}: "
                f"{first['reason']}"
            )
    return lines


def table_statement(table: TextTable, skipped: Sequence[str]) -> dict[str, Any]:
    """Return the table, and lines on periods without a run, as ``result.json`` has them."""
    return {
        "title": table.title,
        "columns": list(table.columns),
        "rows": [list(row) for row in table.rows],
        "note": table.note,
        "skipped": list(skipped),
    }


def stated_table(record: dict[str, Any], directory: Path) -> tuple[TextTable, list[str]]:
    """Return the table of a finished ``result.json``, and its lines on periods without a run.

    Raises:
        InputError: The record is damaged, or of an older fedhh, which did not keep the table.
    """
    if "table" not in record:
        raise InputError(
            f"{directory} was written by an older fedhh, which did not keep its table; print it "
            "with fedhh longitudinal run --resume --out DIR, or its numbers with --format json."
        )
    try:
        stated = record["table"]
        columns, rows = _texts(stated["columns"]), tuple(map(_texts, stated["rows"]))
        title, note = _texts([stated["title"], stated["note"]])
        skipped = _texts(stated["skipped"])
        if any(len(row) != len(columns) for row in rows):
            raise ValueError("rows differ in length")
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{directory}: the table is damaged ({error!r}).") from None
    return TextTable(title=title, columns=columns, rows=rows, note=note), list(skipped)


def _texts(values: Any) -> tuple[str, ...]:
    """Return a list of texts as a tuple; TypeError if it is anything else."""
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TypeError("expected texts")
    return tuple(values)


def _cell(row: pd.Series[Any]) -> str:
    """Return a median with its interval, and how many words were never found."""
    if not row["words"]:
        return ""
    never = f"{row['words'] - row['found']} of {row['words']} never"
    if math.isinf(row["median_days"]):
        return f"no median; {never}"
    low, high = row["median_days_low"], row["median_days_high"]
    interval = f"from {low:.0f}" if math.isinf(high) else f"{low:.0f} to {high:.0f}"
    return f"{row['median_days']:.0f} ({interval}); {never}"


def _record(
    loss: pd.Series[Any], last: pd.Series[Any], periods: pd.DataFrame, new: pd.DataFrame
) -> dict[str, Any]:
    record = {
        "protocol": loss["protocol"],
        "year_basic": loss["year_basic"],
        "year_runs": int(loss["year_runs"]),
        "most_runs": int(loss["most_runs"]),
        "mean_asked": float(periods["asked"].mean()),
        "skipped": int((periods["status"] != "run").sum()),
        "published": int(last["published_so_far"]),
        "false": int(last["false_so_far"]),
        "coverage": float(last["coverage"]),
    }
    for bound, row in new.iterrows():
        record[f"median_days_{bound:g}"] = float(row["median_days"])
        record[f"found_{bound:g}"] = int(row["found"])
        record[f"words_{bound:g}"] = int(row["words"])
    return record


def _of(table: pd.DataFrame, arm: Arm) -> pd.DataFrame:
    own = table[table["protocol"] == arm.label]
    return own if arm.asked_loss is None else own[own["yearly_loss"] == arm.asked_loss]
