"""Results as figures and tables that a notebook shows; the same that the commands make."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from fedhh.experiments.report import run_figures
from fedhh.experiments.report.sweep_figures import figures_of
from fedhh.experiments.report.tables import made_table
from fedhh.experiments.run.result import RunResult
from fedhh.experiments.study.kinds import Drawing
from fedhh.experiments.study.text_table import TextTable
from fedhh.experiments.sweep.axes import PROTOCOL
from fedhh.experiments.sweep.columns import varied_settings
from fedhh.experiments.sweep.directory import DESCRIPTION, label_results
from fedhh.validation import InputError
from fedhh.words.readable import readable

_ORIGIN = "results"
_NEEDED = ("cell", "beside_grid", "seed", "status")


class NotebookTable(TextTable):
    """A table that notebooks show as the value of a cell, and that prints as Markdown."""

    def _repr_html_(self) -> str:
        return _table_tag(self)

    def __str__(self) -> str:
        return self.render("markdown")


def plot(
    result: RunResult | pd.DataFrame,
    *,
    metric: str = "coverage",
    x: str | None = None,
    by: str | None = None,
    facet: Sequence[str] = (),
    where: Sequence[str] = (),
) -> Figure:
    """Return a run's figure, or a metric of a sweep's results with its intervals over seeds.

    Args:
        result: A run: coverage by layer, where there is a trie, and estimates against truth. Or
            what `fedhh.sweep` or `fedhh.sweep_over` returned.
        metric: Of a sweep: a column of numbers, or "tradeoff": coverage against central epsilon.
        x: Of a sweep, as for all that follows: the setting along the horizontal axis; the number
            with the most values if None.
        by: Setting with a line for each value; all others together if None.
        facet: Settings with a panel for each value.
        where: ``KEY=VALUE`` of the cells to draw.

    Raises:
        InputError: There is no such column of numbers or setting, or nothing to draw.
    """
    if isinstance(result, RunResult):
        return run_figures.plot(result)
    table, description = label_results(*_described(result), _ORIGIN)
    metrics = ("coverage",) if metric == "tradeoff" else (metric,)
    drawing = Drawing(x=x, by=by, facet=facet, where=where, metrics=metrics)
    drawn = figures_of(table, description, _ORIGIN, drawing)
    # Too many lines become a map.
    figure = drawn.get(metric, drawn.get(f"{metric}_map", "Nothing to draw."))
    if isinstance(figure, str):
        raise InputError(figure)
    return figure


def table(results: pd.DataFrame, name: str | None = None) -> NotebookTable:
    """Return a table of a sweep's results: means over seeds with their intervals.

    Args:
        results: What `fedhh.sweep` or `fedhh.sweep_over` returned.
        name: "summary", a row for each setting; "comparison", a column for each protocol; or
            another of those of ``fedhh show --table``. Of several protocols, "comparison" if None,
            else "summary".

    Raises:
        InputError: The name is unknown, or the results lack what the table shows.
    """
    found = label_results(*_described(results), _ORIGIN)
    usual = "comparison" if PROTOCOL in found[1]["axes"] else "summary"
    return NotebookTable(**vars(made_table(name or usual, *found)))


def _described(results: Any) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return results, and what their sweep says of itself, or else their columns do."""
    if not isinstance(results, pd.DataFrame) or not set(_NEEDED) <= set(results.columns):
        raise InputError(
            "Expected what fedhh.simulate, fedhh.sweep or fedhh.sweep_over returned, with all its "
            "columns."
        )
    derived = {"title": "", "axes": varied_settings(results), "clients": "", "sweep": ""}
    return results, {**derived, **results.attrs.get(DESCRIPTION, {})}


def _table_tag(table: TextTable) -> str:
    """Return a table and its note as markup; what users typed is text in it."""

    def cell(tag: str, number: int, text: str) -> str:
        kind = ' class="label"' if number < table.labels else ""
        return f"<{tag}{kind}>{html.escape(readable(text))}</{tag}>"

    def row(tag: str, texts: Iterable[str]) -> str:
        return "<tr>" + "".join(cell(tag, i, text) for i, text in enumerate(texts)) + "</tr>"

    body = "\n".join(row("td", cells) for cells in table.rows)
    return (
        f"<table>\n{row('th', table.columns)}\n{body}\n</table>\n"
        f'<p class="note">{html.escape(readable(table.note))}</p>'
    )
