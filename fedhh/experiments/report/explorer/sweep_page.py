"""What a page holds of a sweep or a comparison: one row per cell and seed, and the usual tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from fedhh.experiments.config.labels import is_share, metric_label, short_label
from fedhh.experiments.report.explorer.chunks import columns_of
from fedhh.experiments.report.explorer.tables import plain_table
from fedhh.experiments.report.tables import make_table, usual_table
from fedhh.experiments.run import directory as output
from fedhh.experiments.study.page import REPORT, PageData
from fedhh.experiments.study.stored_files import read_text
from fedhh.experiments.sweep import directory as results
from fedhh.experiments.sweep.columns import (
    EXTRA,
    choose_layout,
    is_numeric,
    varied_settings,
    varying,
)

_NOT_SHOWN = {"cell", "status", "error", "beside_grid", EXTRA}


def sweep_page(directory: Path) -> PageData:
    """Return the page of a sweep's directory.

    Raises:
        InputError: The directory is damaged, or no cell has finished.
    """
    table, description = results.read_labeled_results(directory)
    usual = usual_table(directory)
    names = [usual, *(["summary"] if usual.startswith("gboard") else [])]
    shown = [plain_table(make_table(name, directory)) for name in names]
    manifest = {
        **sweep_data(table, description),
        "tables": shown,
        "config": _text(directory / results.SWEEP_FILE),
        "opens": {cell: f"{results.CELLS}/{cell}/{REPORT}" for cell in _opened(directory, table)},
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
        "kind": "sweep",
        "title": description["title"] or "Sweep",
        "clients": description.get("clients") or "",
        "failed": description.get("failed", 0),
        "axes": [{"path": path, "label": _label(path)} for path in settings],
        "metrics": [
            {"path": name, "label": metric_label(name), "share": bool(is_share(name))}
            for name in metrics
        ],
        "best": description["best"],
        "layout": _layout(table, description),
        "rows": columns_of(table[columns]),
        "tables": [],
        "config": "",
        "opens": {},
        "live": False,
    }


def _layout(table: pd.DataFrame, description: dict[str, Any]) -> dict[str, str]:
    """Return what is shown first: where each setting goes, as in the figures."""
    layout = choose_layout(table, description["axes"])
    places = {"x": layout.x, "color": next(iter(layout.by), "")}
    rest = [*layout.facet, *layout.by[1:]]
    if not layout.x:
        places = {"x": next(iter(layout.by), "seed"), "color": next(iter(layout.by[1:]), "")}
        rest = [*layout.facet, *layout.by[2:]]
    return {**places, "facet": next(iter(rest), "")}


def _label(path: str) -> str:
    return "beside the grid" if path == EXTRA else short_label(path)


def cell_runs(directory: Path) -> list[Path]:
    """Return the directories of a sweep's cells that hold a finished run."""
    cells = directory / results.CELLS
    if not cells.is_dir():
        return []
    return sorted(each for each in cells.iterdir() if each.is_dir() and output.is_finished(each))


def _opened(directory: Path, table: pd.DataFrame) -> list[str]:
    known = set(table["cell"].astype(str))
    return [run.name for run in cell_runs(directory) if run.name in known]


def _text(path: Path) -> str:
    return read_text(path) if path.exists() else ""
