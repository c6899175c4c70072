"""Repeated collection, as its finished directories show it: table, figures, page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedhh.accounting.sources import BASIC
from fedhh.experiments.config.labels import round_up
from fedhh.experiments.report.explorer.study_page import chart, study_page
from fedhh.experiments.study.directory import CONFIG
from fedhh.experiments.study.kinds import Asked, Drawing, Drawn, Kind, LivePage
from fedhh.experiments.study.page import PageData
from fedhh.experiments.study.parts import Line, Part
from fedhh.experiments.study.request import Request, Source
from fedhh.experiments.study.resume import IDENTITY
from fedhh.experiments.study.study import Study
from fedhh.experiments.study.text_table import TextTable
from fedhh.longitudinal.repeated.config import RepeatedPlan, changed_plan
from fedhh.longitudinal.repeated.directory import (
    FIGURES,
    read_result,
    read_tables,
    stored_section,
    write_result,
    write_table,
)
from fedhh.longitudinal.repeated.run import Outcome
from fedhh.longitudinal.repeated.tables import (
    all_tables,
    classes_table,
    periods_table,
    rows_of,
    words_table,
)
from fedhh.system.files import is_there
from fedhh.validation import InputError

_NAMES = {
    "yearly_loss": "loss allowed in a year",
    "coverage": "coverage of what was typed in the period",
    "first_day": "first day of the period",
    "with_budget": "devices with budget left",
    "asked": "devices asked",
    "answers": "devices that answered",
    "published": "words published",
    "false": "false words published",
    "published_so_far": "words published so far",
    "false_so_far": "false words published so far",
    "per_1000_at_least": "people in 1,000 who use the word, at least",
    "median_days": "days until found, median",
    "found_share": "share of the new words found",
}


class RepeatedKind(Kind):
    """A repeated collection."""

    noun = "repeated collection"
    command = "longitudinal run"
    default_source = "weekly"
    begun = IDENTITY
    width = brief_width = 160

    def changed(self, table: dict[str, Any], request: Request, origin: str) -> dict[str, Any]:
        """Return a file with some changes; an option names the protocols to compare."""
        return changed_plan(
            table,
            settings=request.settings,
            data=request.data,
            protocols=request.options.get("protocols", ()),
        )

    def study(self, source: Source, request: Request) -> Study:
        """Return its periods and protocols."""
        from fedhh.longitudinal.repeated.study import RepeatedStudy

        return RepeatedStudy(source, request, _finish)

    def live(self, study: Study) -> LivePage:
        from fedhh.experiments.report.explorer.live import live_study
        from fedhh.longitudinal.repeated.study import RepeatedStudy

        assert isinstance(study, RepeatedStudy)
        title = f"Repeated collection, a run every {study.collection.section.every_days} days"

        def charts(outcome: Outcome) -> list[dict[str, Any]]:
            words = words_table(outcome)
            return _charts(periods_table(outcome), classes_table(outcome, words))

        return live_study(title, charts)

    def table(self, directory: Path) -> TextTable:
        return stated_table(read_result(directory), directory)[0]

    def parts(self, directory: Path, asked: Asked) -> Iterator[Part]:
        table, skipped = stated_table(read_result(directory), directory)
        yield table
        for line in skipped:
            yield Line(line, is_whole=True)

    def closing_lines(self, directory: Path) -> Iterator[str]:
        """Yield where the figure is that says most."""
        if is_there(figure := directory / FIGURES / "days-until-found.png"):
            yield f"Days until found: {figure}"

    def plot(self, directory: Path, drawing: Drawing) -> Drawn:
        from fedhh.longitudinal.report.repeated_figures import Collected, plot_repeated

        collected = Collected(section=stored_section(directory), tables=read_tables(directory))
        folder = drawing.out or directory / FIGURES
        return Drawn(paths=plot_repeated(collected, folder, look=drawing.look))

    def page(self, directory: Path) -> PageData:
        record = read_result(directory)
        table, skipped = stated_table(record, directory)
        tables = read_tables(directory)
        periods, classes, losses = (tables[name] for name in ("periods", "classes", "losses"))
        charts = _charts(periods, classes)
        least, most = losses["year_basic"].min(), losses["year_basic"].max()
        spent = f"{least:g}" if least == most else f"{least:g} to {most:g}"
        cards = [
            ("local epsilon in a year", spent, "at most, of all that one device sends (sum)"),
            ("days", f"{record['days']:,}", f"{periods['first_day'].nunique():,} periods"),
            ("devices", f"{periods['devices'].max():,}", "in the largest period"),
            ("protocols", f"{losses['protocol'].nunique():,}", ""),
        ]
        return study_page(
            table.title, cards, [table, _loss_table(losses)], charts,
            notes=skipped, config=directory / CONFIG,
        )  # fmt: skip


def _charts(periods: pd.DataFrame, classes: pd.DataFrame) -> list[dict[str, Any]]:
    """Return charts of the periods, and of how fast new words were found, where there are any."""
    new = classes[classes["is_new"] & (classes["words"] > 0)]
    new = new.assign(found_share=new["found"] / new["words"])
    loss = ["yearly_loss"] if periods["yearly_loss"].notna().any() else []
    timed = int(np.isfinite(new["median_days"]).sum()) > 1
    ways = ["median_days", "found_share"] if timed else ["found_share", "median_days"]
    charts = [
        chart(
            ("Period by period",
             "Which devices were asked, and what the dictionary knows after each period."),
            periods, ["first_day", "protocol", *loss],
            ["coverage", "published_so_far", "false_so_far", "devices", "with_budget", "asked"],
            _NAMES,
        ),
        chart(
            ("New words, found and not found",
            "By how many people use a word at its best. Classes of which fewer than half were "
            "found have no median; the share found says how many were."),
            new, ["per_1000_at_least", "protocol", *loss], [*ways, "words"],
            _NAMES, shares=("found_share",),
        ),
    ]  # fmt: skip
    return charts if len(new) else charts[:1]


def _loss_table(losses: pd.DataFrame) -> TextTable:
    rows = losses.to_dict("records")
    deltas = ", ".join(f"{delta:g}" for delta in sorted(losses["delta"].unique()))
    return TextTable(
        title="Privacy loss of a device",
        columns=(
            "protocol", "epsilon of a run", "runs in the first year", "first year, sum",
            "first year, optimal composition", "any 365 days, sum",
        ),
        rows=tuple(
            (
                row["protocol"], f"{row['run_epsilon']:g}", f"{row['year_runs']:,}",
                _epsilon(row["year_basic"]), _epsilon(row["year_pld"]),
                _epsilon(row["any_year_basic"]),
            )
            for row in rows
        ),
        note=(
            "Local epsilon of one device, all that it sends, whatever the server does; neighbors "
            f"differ in all words of one device. Optimal composition at delta {deltas}."
        ),
    )  # fmt: skip


def _epsilon(value: float) -> str:
    return "-" if np.isnan(value) else round_up(float(value))


def longitudinal_table(outcome: Outcome, tables: dict[str, pd.DataFrame]) -> TextTable:
    """Return one row for each protocol and yearly loss: what it costs and what it finds."""
    bounds = outcome.plan.section.classes
    rows, records = [], []
    for arm in outcome.plan.arms:
        losses, periods, classes = (
            rows_of(tables[name], arm.label, arm.asked_loss)
            for name in ("losses", "periods", "classes")
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
        "protocol", "loss in a year", "answers in a year", "most answers so far", "devices asked",
        "runs", "words", "false", "coverage",
        *(
            f"days until found: used by {class_label(bounds, place)} in 1,000"
            for place in range(len(bounds))
        ),
    )  # fmt: skip
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
            f"period in which {bounds[0]:g} in 1,000 do, with a 95% interval (Kaplan and Meier "
            "1958; from: it has no upper end), and how many of the words were never found; no "
            "median: fewer than half were found."
        ),
        records=tuple(records),
    )


def skipped_lines(plan: RepeatedPlan, periods: pd.DataFrame) -> list[str]:
    """Return a line for each protocol that made fewer runs than there were periods."""
    lines = []
    for arm in plan.arms:
        own = rows_of(periods[periods["status"] != "run"], arm.label, arm.asked_loss)
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
        InputError: The record is damaged.
    """
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


def class_label(bounds: Sequence[float], place: int) -> str:
    """Return what a class is called, by the lower bounds of all.

    >>> [class_label((1, 2.5, 20), place) for place in range(3)]
    ['1 to 2.5', '2.5 to 20', '20 or more']
    """
    if place + 1 == len(bounds):
        return f"{bounds[place]:g} or more"
    return f"{bounds[place]:g} to {bounds[place + 1]:g}"


def _finish(directory: Path, outcome: Outcome) -> None:
    """Write tables and figures, and then what says that all is done."""
    from fedhh.longitudinal.report.repeated_figures import Collected, plot_repeated

    tables = all_tables(outcome)
    for name, table in tables.items():
        write_table(directory, name, table)
    summary = longitudinal_table(outcome, tables)
    plot_repeated(Collected(section=outcome.plan.section, tables=tables), directory / FIGURES)
    write_result(
        directory,
        {
            "days": outcome.days,
            "protocols": list(summary.records),
            "table": table_statement(summary, skipped_lines(outcome.plan, tables["periods"])),
        },
    )
