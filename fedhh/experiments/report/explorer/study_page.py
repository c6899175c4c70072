"""Pages of results by settings: of a sweep, or with cards and charts of what happens over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fedhh.experiments.config.labels import axis_label, is_share, metric_label, short_label
from fedhh.experiments.report.explorer.chunks import columns_of, plain_table
from fedhh.experiments.report.style import protocol_color
from fedhh.experiments.report.tables import made_table, usual_table
from fedhh.experiments.run import directory as output
from fedhh.experiments.study.page import REPORT, PageData
from fedhh.experiments.study.stored_files import read_text
from fedhh.experiments.study.text_table import TextTable
from fedhh.experiments.sweep import directory as results
from fedhh.experiments.sweep.columns import (
    EXTRA,
    choose_layout,
    is_numeric,
    varied_settings,
    varying,
)
from fedhh.system.files import is_there

_NOT_SHOWN = {"cell", "status", "error", "beside_grid", EXTRA}

EMPTY_SWEEP: dict[str, Any] = {
    "kind": "sweep",
    "title": "",
    "clients": "",
    "failed": 0,
    "axes": [],
    "metrics": [],
    "best": "",
    "layout": {},
    "colors": {},
    "rows": {},
    "tables": [],
    "config": "",
    "opens": {},
    "live": False,
}
"""A page's results by settings, before there is one."""

EMPTY_STUDY: dict[str, Any] = {
    "kind": "study",
    "title": "",
    "cards": [],
    "notes": [],
    "tables": [],
    "charts": [],
    "config": "",
    "live": False,
}
"""A page with cards and charts, before there is one."""


def study_page(
    title: str,
    cards: Sequence[tuple[str, str, str]],
    tables: Sequence[TextTable],
    charts: Sequence[dict[str, Any]],
    *,
    notes: Sequence[str] = (),
    config: Path,
) -> PageData:
    """Return a page.

    Args:
        title: What it is of.
        cards: A label, a value, and a note on it.
        tables: Shown below the charts.
        charts: See `chart`.
        notes: Further lines.
        config: The file of its configuration, shown if it is there.
    """
    manifest = {
        **EMPTY_STUDY,
        "title": title,
        "cards": [dict(zip(("label", "value", "note"), card, strict=True)) for card in cards],
        "notes": list(notes),
        "tables": [plain_table(table) for table in tables],
        "charts": list(charts),
        "config": _text(config),
    }
    return PageData(title=title, manifest=manifest, chunks={})


def chart(
    heading: tuple[str, str],
    table: pd.DataFrame,
    axes: Sequence[str],
    metrics: Sequence[str],
    names: Mapping[str, str],
    *,
    shares: Sequence[str] = (),
) -> dict[str, Any]:
    """Return a chart of a table whose rows are distinguished by its axes.

    Args:
        heading: Its title, and what it shows.
        table: Its numbers.
        axes: Columns; the first two are always axes, others where they vary.
        metrics: Columns to choose from; those without a number are left out.
        names: What columns are called.
        shares: Columns that are shares, besides those known as such.
    """
    varied = [name for name in axes if name in axes[:2] or table[name].nunique() > 1]
    known = [name for name in metrics if table[name].notna().any()]
    return {
        **EMPTY_SWEEP,
        "title": heading[0],
        "lead": heading[1],
        "axes": [{"path": name, "label": _name(name, names)} for name in varied],
        "metrics": [
            {"path": name, "label": _name(name, names), "share": name in shares or is_share(name)}
            for name in known
        ],
        "best": metrics[0],
        "layout": {"x": varied[0], "color": varied[1], "facet": next(iter(varied[2:]), "")},
        "colors": _colors(table, varied),
        "rows": columns_of(table[[*varied, *known]]),
    }


def _name(path: str, names: Mapping[str, str]) -> str:
    return names.get(path) or (axis_label(path) if is_share(path) else short_label(path))


def sweep_page(directory: Path) -> PageData:
    """Return the page of a sweep's directory."""
    table, description = results.read_labeled_results(directory)
    usual, timed = usual_table(table, description), results.with_server_seconds(table, directory)
    names = [usual, *(["summary"] if usual.startswith("gboard") else [])]
    shown = [plain_table(made_table(name, timed, description)) for name in names]
    runs, known = [run.name for run in cell_runs(directory)], set(table["cell"].astype(str))
    manifest = {
        **sweep_data(table, description),
        "tables": shown,
        "config": _text(directory / results.SWEEP_FILE),
        "opens": {cell: f"{results.CELLS}/{cell}/{REPORT}" for cell in runs if cell in known},
    }
    title = description["title"] or "Sweep"
    return PageData(title=title, manifest=manifest, chunks={})


def sweep_data(table: pd.DataFrame, description: dict[str, Any]) -> dict[str, Any]:
    """Return what a page says of a sweep's results, one row per cell and seed."""
    axes = varied_settings(table)
    settings = [path for path in varying(table) if path not in _NOT_SHOWN]
    if table[EXTRA].astype(bool).any():
        settings.append(EXTRA)
    metrics = [
        str(name)
        for name in table.columns
        if name not in (*axes, *_NOT_SHOWN, "seed") and is_numeric(table, str(name))
    ]
    metrics = [name for name in metrics if table[name].nunique() > 1 or name == "coverage"]
    columns = ["cell", "seed", *settings, *metrics]
    return {
        **EMPTY_SWEEP,
        "title": description["title"] or "Sweep",
        "clients": description.get("clients") or "",
        "failed": description.get("failed", 0),
        "axes": [
            {"path": path, "label": "outside the grid" if path == EXTRA else short_label(path)}
            for path in settings
        ],
        "metrics": [
            {"path": name, "label": metric_label(name), "share": bool(is_share(name))}
            for name in metrics
        ],
        "best": description["best"],
        "layout": _layout(table, description),
        "colors": _colors(table, settings),
        "rows": columns_of(table[columns]),
    }


def _colors(table: pd.DataFrame, axes: Sequence[str]) -> dict[str, str]:
    """Return the color of each protocol that a value of an axis names, as in figures."""
    values = {value for axis in axes for value in table[axis].unique() if isinstance(value, str)}
    known = ((value, protocol_color(value)) for value in sorted(values))
    return {value: color for value, color in known if color is not None}


def _layout(table: pd.DataFrame, description: dict[str, Any]) -> dict[str, str]:
    """Return what is shown first: where each setting goes, as in the figures."""
    layout = choose_layout(table, description["axes"])
    places = {"x": layout.x, "color": next(iter(layout.by), "")}
    rest = [*layout.facet, *layout.by[1:]]
    if not layout.x:
        places = {"x": next(iter(layout.by), "seed"), "color": next(iter(layout.by[1:]), "")}
        rest = [*layout.facet, *layout.by[2:]]
    return {**places, "facet": next(iter(rest), "")}


def cell_runs(directory: Path) -> list[Path]:
    """Return the directories of a sweep's cells that hold a finished run."""
    cells = directory / results.CELLS
    if not cells.is_dir():
        return []
    return sorted(each for each in cells.iterdir() if each.is_dir() and output.is_finished(each))


def _text(path: Path) -> str:
    return read_text(path) if is_there(path) else ""
