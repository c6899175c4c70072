"""A page of cards, tables and charts, of what happens over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fedhh.experiments.config.labels import axis_label, is_share, short_label
from fedhh.experiments.report.explorer.chunks import columns_of, plain_table
from fedhh.experiments.study.page import PageData
from fedhh.experiments.study.stored_files import read_text
from fedhh.experiments.study.text_table import TextTable
from fedhh.system.files import is_there

EMPTY_SWEEP: dict[str, Any] = {
    "kind": "sweep",
    "title": "",
    "clients": "",
    "failed": 0,
    "axes": [],
    "metrics": [],
    "best": "",
    "layout": {},
    "rows": {},
    "tables": [],
    "config": "",
    "opens": {},
    "live": False,
}
"""A page's results by settings, before there is one."""


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
        "kind": "study",
        "title": title,
        "cards": [dict(zip(("label", "value", "note"), card, strict=True)) for card in cards],
        "notes": list(notes),
        "tables": [plain_table(table) for table in tables],
        "charts": list(charts),
        "config": read_text(config) if is_there(config) else "",
        "live": False,
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
    """Return a chart of a table whose rows are told apart by its axes.

    Args:
        heading: Its title, and what it shows.
        table: Its numbers.
        axes: Columns; the first two are always axes, others where they vary.
        metrics: Columns to choose from; those without a number are left out.
        names: What columns are called.
        shares: Columns that are shares, beside those known as such.
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
        "rows": columns_of(table[[*varied, *known]]),
    }


def _name(path: str, names: Mapping[str, str]) -> str:
    return names.get(path) or (axis_label(path) if is_share(path) else short_label(path))
