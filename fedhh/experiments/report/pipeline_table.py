"""The table that a pipeline ends with, from its stored record."""

from __future__ import annotations

from typing import Any

from fedhh.experiments.config.labels import round_up
from fedhh.experiments.report.text_table import TextTable

_COLUMNS = (
    "use case",
    "by",
    "epsilon",
    "a day",
    "records",
    "error",
    "error, one day",
    "published",
    "right",
    "found",
    "loss a day: most, mean",
    "loss of life: most, mean",
)


def pipeline_table(record: dict[str, Any]) -> TextTable:
    """Return a row for each use case, and one for all together.

    Args:
        record: The content of ``result.json``.
    """
    days = record["days"]
    rows = [
        (
            row["use_case"],
            row["by"],
            f"{row['epsilon']:g}",
            str(row["records_per_day"]),
            f"{row['sent']:,}",
            _percent(row["error"]),
            _percent(row["error_by_day"]),
            f"{row['published']:,}",
            _percent(row["precision"]),
            _percent(row["recall"]),
            f"{row['loss_per_day_allowed']:g}, {row['loss_of_life_mean'] / days:.1f}",
            f"{row['loss_of_life_allowed']:g}, {row['loss_of_life_mean']:.1f}",
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
            f"{_sum(before, 'day'):g}, {spent['day']['basic']['mean']:.1f}",
            f"{_sum(before, 'user'):g}, {spent['life']['basic']['mean']:.1f}",
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
    central = max(row["central_epsilon_day_largest"] for row in record["use_cases"])
    return (
        "a day: the cap, records in a session. error: of the estimated numbers of records sent, "
        f"mean over the {record['top']} most frequent values, of all days and of one. published: "
        "values whose estimate exceeds the threshold; right: share of them of which more records "
        "than that were sent; found: share of such values that are published. loss: local, sum of "
        "the records' epsilons, what the caps allow and the mean of devices that opted in. "
        "Central, of one record in a day's permuted batch: epsilon at most "
        f"{round_up(central)} at delta {record['delta']:g} (Feldman, McMillan, Talwar 2021, "
        "Theorem 3.1)."
    )


def _sum(report: dict[str, Any], unit: str) -> float:
    """Return the plain sum of epsilons of a unit, all use cases together."""
    found = [each for each in report["together"]["guarantees"] if each["unit"] == unit]
    plain = [each for each in found if each["method"] == "basic"] or found
    return float(plain[0]["epsilon"])


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
