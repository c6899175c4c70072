"""One self-contained HTML file of a run's or a sweep's directory, from its tables alone.

Figures are drawn for the page; no image that stands in the directory gets into it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fedhh.experiments.config.labels import round_up
from fedhh.experiments.report.comparison import (
    SERVER_SECONDS,
    comparison_table,
    numbers_of,
)
from fedhh.experiments.report.page import config_tags, escaped, figure_tags, page, table_tag
from fedhh.experiments.report.run_figures import figures, runs_in
from fedhh.experiments.report.sweep_figures import sweep_figures
from fedhh.experiments.report.tables import make_table, usual_table
from fedhh.experiments.report.text_table import TextTable
from fedhh.experiments.run import directory as output
from fedhh.experiments.run.result import RunResult
from fedhh.experiments.run.stored_result import read_record, read_result
from fedhh.experiments.sweep import directory as results
from fedhh.experiments.sweep.axes import PROTOCOL
from fedhh.system.files import is_there, write_text
from fedhh.validation import InputError

REPORT = "report.html"

_WORDS = 100


def write_report(directory: Path, out: Path | None = None) -> Path:
    """Write a directory's report, figures and all, and return the file.

    A figure that cannot be drawn is a sentence in the page.

    Args:
        directory: A finished run's, or a sweep's.
        out: The file; "report.html" in the directory if None.

    Raises:
        InputError: The directory holds neither, or is damaged.
    """
    if output.is_finished(directory):
        title, body = _run(directory)
    elif is_there(directory / results.RESULTS):
        title, body = _sweep(directory)
    else:
        raise InputError(
            f"{directory} holds no finished run and no sweep: {output.RESULT} and "
            f"{results.RESULTS} are missing."
        )
    file = out or directory / REPORT
    write_text(file, page(title, body))
    return file


def _run(directory: Path) -> tuple[str, list[str]]:
    runs = runs_in(directory)
    records = [read_record(run) for run in runs]
    names = [record["protocol"]["name"] for record in records]
    title = f"{' and '.join(names)} on {records[0]['population']['name']}"
    stored = [read_result(run).result for run in runs]
    body = [table_tag(_measures(names, records, stored))]
    for name, result, record in zip(names, stored, records, strict=True):
        body += [
            f"<h2>{escaped(name)}</h2>",
            *figure_tags(dict(figures(result))),
            *_words(result.discoveries),
            "<h3>What the run can claim</h3>",
            table_tag(_claims(record)),
            *(f'<p class="note">{escaped(note)}</p>' for note in record["privacy"]["notes"]),
        ]
    return title, [*body, *config_tags(directory / output.CONFIG)]


def _sweep(directory: Path) -> tuple[str, list[str]]:
    _, description = results.read_results(directory)
    usual = usual_table(directory)
    tables = [usual, *(["summary"] if usual.startswith("gboard") else [])]
    try:
        drawn = figure_tags(sweep_figures(directory))
    except InputError as error:
        drawn = [f'<p class="note">{escaped(str(error))}</p>']
    body = [*drawn, *(table_tag(make_table(name, directory)) for name in tables)]
    return description["title"] or "Sweep", [*body, *config_tags(directory / results.SWEEP_FILE)]


def _measures(
    names: Sequence[str], records: Sequence[dict[str, Any]], runs: Sequence[RunResult]
) -> TextTable:
    """Return every measure of a run, and of its baseline, beside each other."""
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


def _claims(record: dict[str, Any]) -> TextTable:
    """Return every guarantee with its unit, reader, delta, theorem and assumptions."""
    rows = []
    for each in record["privacy"]["guarantees"]:
        known = each["epsilon"] is not None
        rows.append(
            (
                each["unit"],
                "server" if each["trust"] == "local" else "readers of results",
                each["method"]
                + (", best" if each["best"] else "")
                + (", R" if each.get("realised") else ""),
                round_up(float(each["epsilon"])) if known else "none",
                f"{each['delta']:g}",
                each["theorem"],
                each["assumptions"] if known else each["reason"],
            )
        )
    for each in record["privacy"]["anonymity"]:
        if each["layer"] is None:
            k = "none" if each["k"] is None else f"k = {each['k']:,}"
            method = f"approximate k-anonymity, {each['variant']}, alpha {each['alpha']:g}"
            rows.append(
                ("item", "readers of results", method, k, "", each["theorem"], each["assumptions"])
            )
    return TextTable(
        title="Guarantees",
        columns=("unit", "against", "bound", "epsilon or k", "delta", "theorem", "assumptions"),
        rows=tuple(rows),
        note=(
            "Neighbors are swaps. Best: the smallest valid bound of its unit and reader. R: for "
            "the domains that this run had; all others hold before it."
        ),
        labels=7,
    )


def _words(table: pd.DataFrame) -> list[str]:
    """Return the discovered words with the largest estimates."""
    shown = table.head(_WORDS)
    rows = tuple(
        (
            row["word"],
            f"{row['estimated_clients']:,.0f} ± {2 * row['std_error']:,.0f}",
            "yes" if row["is_significant"] else "no",
            f"{row['true_clients']:,}",
            f"{row['true_count']:,}",
        )
        for row in shown.to_dict("records")
    )
    words = TextTable(
        title="Discovered words",
        columns=(
            "word", "estimated clients, ± 2 std. errors", "significant", "true clients",
            "true count",
        ),
        rows=rows,
        note=f"The first {len(shown):,} of {len(table):,}.",
    )  # fmt: skip
    return ["<h3>Discovered words</h3>", table_tag(words)]
