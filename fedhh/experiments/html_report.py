"""One self-contained HTML file of a run's or a sweep's directory, from its files alone."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fedhh.experiments import output, results
from fedhh.experiments.comparison import SERVER_SECONDS, comparison_table
from fedhh.experiments.labels import round_up
from fedhh.experiments.sweep_axes import PROTOCOL
from fedhh.experiments.tables import make_table
from fedhh.experiments.text_table import TextTable
from fedhh.simulation.files import write_text
from fedhh.validation import InputError

REPORT = "report.html"

_WORDS = 100
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto; padding: 0 1rem;
  color: #1a1a1a; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 14px; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #ddd; text-align: right;
  vertical-align: top; white-space: nowrap; }
th { border-bottom: 2px solid #888; }
td.label, th.label { text-align: left; white-space: normal; }
img { max-width: 100%; margin: .5rem 0; }
pre { background: #f6f6f6; padding: 1rem; overflow-x: auto; }
.note { color: #555; font-size: 13px; }
"""


def write_report(directory: Path, out: Path | None = None) -> Path:
    """Write a directory's report, figures and all, and return the file.

    Args:
        directory: A finished run's, or a sweep's.
        out: The file; "report.html" in the directory if None.

    Raises:
        InputError: The directory holds neither, or is damaged.
    """
    if (directory / output.RESULT).exists():
        title, body = _run(directory)
    elif (directory / results.RESULTS).exists():
        title, body = _sweep(directory)
    else:
        raise InputError(
            f"{directory} holds no finished run and no sweep: {output.RESULT} and "
            f"{results.RESULTS} are missing."
        )
    file = out or directory / REPORT
    write_text(file, _page(title, body))
    return file


def _run(directory: Path) -> tuple[str, list[str]]:
    runs = [directory]
    if (directory / output.BASELINE_FOLDER / output.RESULT).exists():
        runs.append(directory / output.BASELINE_FOLDER)
    records = [_read_record(run) for run in runs]
    names = [record["protocol"]["name"] for record in records]
    title = f"{' and '.join(names)} on {records[0]['population']['name']}"
    body = [_table(_measures(names, records))]
    for name, run, record in zip(names, runs, records, strict=True):
        body += [
            f"<h2>{html.escape(name)}</h2>",
            *_figures(run),
            *_words(run),
            "<h3>What the run can claim</h3>",
            _table(_claims(record)),
            *(f'<p class="note">{html.escape(note)}</p>' for note in record["privacy"]["notes"]),
        ]
    return title, [*body, *_config(directory / output.CONFIG)]


def _sweep(directory: Path) -> tuple[str, list[str]]:
    _, description = results.read_results(directory)
    name = "comparison" if PROTOCOL in description["axes"] else "summary"
    figures = _figures(directory)
    if not figures:
        from fedhh.experiments.sweep_plots import plot_sweep

        plot_sweep(directory)
        figures = _figures(directory)
    body = [*figures, _table(make_table(name, directory))]
    return description["title"] or "Sweep", [*body, *_config(directory / results.SWEEP_FILE)]


def _read_record(run: Path) -> dict[str, Any]:
    path = run / output.RESULT
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"{path} is damaged ({error}).") from None
    return record


def _measures(names: Sequence[str], records: Sequence[dict[str, Any]]) -> TextTable:
    """Return every measure of a run, and of its baseline, beside each other."""
    rows = []
    for name, record in zip(names, records, strict=True):
        best = {
            (each["trust"], each["unit"]): float(each["epsilon"])
            for each in record["privacy"]["guarantees"]
            if each["best"]
        }
        central = [g for g in record["privacy"]["guarantees"] if g["trust"] == "central"]
        rows.append(
            {
                PROTOCOL: name,
                "seed": record["seed"],
                **record["metrics"],
                **record["cost"],
                "local_epsilon": best["local", "item"],
                "local_epsilon_user": best["local", "user"],
                "central_epsilon": best["central", "item"],
                "central_epsilon_user": best["central", "user"],
                "delta": max(each["delta"] for each in central),
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
                each["method"] + (", best" if each["best"] else ""),
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
        note="Neighbors are swaps. Best: the smallest valid bound of its unit and reader.",
        labels=7,
    )


def _words(run: Path) -> list[str]:
    """Return the discovered words with the largest estimates."""
    table = pd.read_parquet(run / "discoveries.parquet")
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
    return ["<h3>Discovered words</h3>", _table(words)]


def _figures(directory: Path) -> list[str]:
    """Return a directory's figures as images inside the page."""
    return [
        f'<img alt="{html.escape(path.stem)}" src="data:image/png;base64,'
        f'{base64.b64encode(path.read_bytes()).decode("ascii")}">'
        for path in sorted(directory.glob("*.png"))
    ]


def _config(path: Path) -> list[str]:
    if not path.exists():
        return []
    text = html.escape(path.read_text(encoding="utf-8"))
    return [f"<h2>Configuration</h2><pre>{text}</pre>"]


def _table(table: TextTable) -> str:
    def cell(tag: str, number: int, text: str) -> str:
        kind = ' class="label"' if number < table.labels else ""
        return f"<{tag}{kind}>{html.escape(text)}</{tag}>"

    def row(tag: str, texts: Iterable[str]) -> str:
        return "<tr>" + "".join(cell(tag, i, text) for i, text in enumerate(texts)) + "</tr>"

    body = "\n".join(row("td", cells) for cells in table.rows)
    return (
        f"<table>\n{row('th', table.columns)}\n{body}\n</table>\n"
        f'<p class="note">{html.escape(table.note)}</p>'
    )


def _page(title: str, body: Sequence[str]) -> str:
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f"<title>{html.escape(title)}</title>",
            f"<style>{_STYLE}</style>\n</head>\n<body>",
            f"<h1>{html.escape(title)}</h1>",
            *body,
            "</body>\n</html>\n",
        ]
    )
