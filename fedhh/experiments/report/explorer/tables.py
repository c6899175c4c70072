"""Tables of text that a page shows: what runs measured, and what they can claim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from fedhh.experiments.config.labels import round_up
from fedhh.experiments.report.comparison import SERVER_SECONDS, comparison_table, numbers_of
from fedhh.experiments.run.result import RunResult
from fedhh.experiments.study.text_table import TextTable
from fedhh.experiments.sweep import directory as results
from fedhh.experiments.sweep.axes import PROTOCOL


def plain_table(table: TextTable) -> dict[str, Any]:
    """Return a table for a page."""
    return {
        "title": table.title,
        "columns": list(table.columns),
        "rows": [list(row) for row in table.rows],
        "note": table.note,
        "labels": table.labels,
    }


def measures(
    names: Sequence[str], records: Sequence[dict[str, Any]], runs: Sequence[RunResult]
) -> TextTable:
    """Return every measure of some runs beside each other."""
    rows = []
    for name, record, run in zip(names, records, runs, strict=True):
        guarantees = record["privacy"]["guarantees"]
        delta = max(g["delta"] for g in guarantees if g["trust"] == "central")
        rows.append(
            {
                PROTOCOL: name,
                "seed": record["seed"],
                **numbers_of(results.flat_result(run, delta=delta)),
                SERVER_SECONDS: record["timings_seconds"]["server"],
            }
        )
    return comparison_table(pd.DataFrame(rows), {"title": "Measures", "axes": [PROTOCOL]})


def claims(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return every guarantee with its unit, reader, delta, theorem and assumptions, as text."""
    rows = []
    for each in record["privacy"]["guarantees"]:
        known = each["epsilon"] is not None
        rows.append(
            {
                "unit": each["unit"],
                "against": "server" if each["trust"] == "local" else "readers of results",
                "bound": each["method"],
                "value": round_up(float(each["epsilon"])) if known else "none",
                "delta": f"{each['delta']:g}",
                "theorem": each["theorem"],
                "assumptions": each["assumptions"] if known else each["reason"],
                "best": each["best"],
                "realised": bool(each.get("realised")),
            }
        )
    for each in record["privacy"]["anonymity"]:
        if each["layer"] is None:
            rows.append(
                {
                    "unit": "item",
                    "against": "readers of results",
                    "bound": f"approximate k-anonymity, {each['variant']}, alpha {each['alpha']:g}",
                    "value": "none" if each["k"] is None else f"k = {each['k']:,}",
                    "delta": "",
                    "theorem": each["theorem"],
                    "assumptions": each["assumptions"]
                    if each["k"] is not None
                    else each["reason"] or each["assumptions"],
                    "best": False,
                    "realised": False,
                }
            )
    return rows
