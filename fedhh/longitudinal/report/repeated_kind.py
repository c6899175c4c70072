"""Repeated collection, as its finished directories show it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fedhh.experiments.study.directory import RESULT
from fedhh.experiments.study.kinds import Asked, Drawing, Drawn, Kind
from fedhh.experiments.study.page import PageData
from fedhh.experiments.study.parts import Line, Part
from fedhh.experiments.study.request import Request, Source
from fedhh.experiments.study.resume import IDENTITY
from fedhh.experiments.study.study import Study
from fedhh.experiments.study.text_table import TextTable
from fedhh.longitudinal.repeated.config import changed_plan
from fedhh.longitudinal.repeated.directory import (
    FIGURES,
    read_result,
    read_tables,
    stored_section,
    write_result,
    write_table,
)
from fedhh.longitudinal.repeated.run import Outcome
from fedhh.longitudinal.repeated.tables import all_tables
from fedhh.longitudinal.report.repeated_page import months_page
from fedhh.longitudinal.report.repeated_table import (
    longitudinal_table,
    skipped_lines,
    stated_table,
    table_statement,
)
from fedhh.system.files import is_there


class RepeatedKind(Kind):
    """A discovery that is repeated over months."""

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

    def is_finished(self, directory: Path) -> bool:
        """Return whether an older fedhh has finished one there."""
        return is_there(directory / RESULT) and is_there(directory / IDENTITY)

    def table(self, directory: Path) -> TextTable:
        """Return a row for each protocol and yearly loss."""
        return stated_table(read_result(directory), directory)[0]

    def parts(self, directory: Path, asked: Asked) -> Iterator[Part]:
        """Yield the table, and lines on periods without a run."""
        table, skipped = stated_table(read_result(directory), directory)
        yield table
        for line in skipped:
            yield Line(line, is_whole=True)

    def closing_lines(self, directory: Path) -> Iterator[str]:
        """Yield where the figure is that says most."""
        if is_there(figure := directory / FIGURES / "days-until-found.png"):
            yield f"Days until found: {figure}"

    def plot(self, directory: Path, drawing: Drawing) -> Drawn:
        """Write the figures of its tables."""
        from fedhh.longitudinal.report.repeated_figures import Collected, plot_repeated

        collected = Collected(section=stored_section(directory), tables=read_tables(directory))
        folder = drawing.out or directory / FIGURES
        return Drawn(paths=plot_repeated(collected, folder, look=drawing.look))

    def page(self, directory: Path) -> PageData:
        """Return its tables, and charts of its periods and words."""
        return months_page(directory)


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
