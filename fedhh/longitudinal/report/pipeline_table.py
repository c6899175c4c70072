"""The table that a pipeline ends with, from its stored record."""

from __future__ import annotations

from typing import Any

from fedhh.experiments.config.labels import round_up
from fedhh.experiments.study.text_table import TextTable

_COLUMNS = (
    "use case",
    "by",
    "epsilon",
    "cap",
    "records",
    "error",
    "of a day",
    "published",
    "right",
    "found",
    "a day: allowed",
    "spent",
    "in all: allowed",
    "spent",
    "central",
)


def pipeline_table(record: dict[str, Any]) -> TextTable:
    """Return a row for each use case, and one for all together.

    Args:
        record: The content of ``result.json``.
    """
    days = record["days"]
    rows: list[tuple[str, ...]] = [
        (
            row["use_case"],
            row["by"],
            f"{row['epsilon']:g}",
            _cap(row),
            f"{row['sent']:,}",
            _percent(row["error"]),
            _percent(row["error_by_day"]),
            f"{row['published']:,}",
            _percent(row["precision"]),
            _percent(row["recall"]),
            f"{row['loss_per_day_allowed']:g}",
            f"{row['loss_of_life_mean'] / days:.1f}",
            f"{row['loss_of_life_allowed']:g}",
            f"{row['loss_of_life_mean']:.1f}",
            round_up(row["central_epsilon_day_largest"]),
        )
        for row in record["use_cases"]
    ]
    before, spent = record["ledger"]["before_run"], record["ledger"]["spent"]
    rows.append(
        (
            "all together",
            "",
            "",
            "",
            f"{sum(row['sent'] for row in record['use_cases']):,}",
            *[""] * 5,
            f"{_sum(before, 'day'):g}",
            f"{spent['day']['basic']['mean']:.1f}",
            f"{_sum(before, 'user'):g}",
            f"{spent['life']['basic']['mean']:.1f}",
            "",
        )
    )
    return TextTable(
        title=f"{record['devices']:,} devices over {days} days, "
        f"{record['devices_opted_in']:,} of them opted in",
        columns=_COLUMNS,
        rows=tuple(rows),
        note=_note(record),
        records=tuple(record["use_cases"]),
    )


def _note(record: dict[str, Any]) -> str:
    return (
        "records: sent by all devices. error: of the estimated numbers of records sent, mean over "
        f"the {record['top']} most frequent values, of all days together and of one day. "
        "published: values whose estimate exceeds the threshold; right: share of them of which "
        "more records than that were sent; found: share of such values that are published. "
        "a day, in all: loss of one device, local, the sum of its records' epsilons (basic "
        "composition): what the caps allow, and the mean of devices that opted in. central: "
        "epsilon of one record in the permuted batch of the worst day, at delta "
        f"{record['delta']:g} (Feldman, McMillan, Talwar 2021, Theorem 3.1)."
    )


def _cap(row: dict[str, Any]) -> str:
    days = row["session_days"]
    return (
        f"{row['records_per_day']} a day" if days == 1 else f"{row['records_per_day']} in {days} d"
    )


def _sum(report: dict[str, Any], unit: str) -> float:
    """Return the plain sum of epsilons of a unit, all use cases together."""
    found = [each for each in report["together"]["guarantees"] if each["unit"] == unit]
    plain = [each for each in found if each["method"] == "basic"] or found
    return float(plain[0]["epsilon"])


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
