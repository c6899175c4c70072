"""Sweeps and comparisons, as their directories show them once a cell has finished."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fedhh.experiments.config.load import apply_settings, use_data
from fedhh.experiments.report.explorer.study_page import cell_runs, sweep_page
from fedhh.experiments.report.sweep_brief import at_one_epsilon, failure_lines, summary_table
from fedhh.experiments.report.tables import TABLES, make_table, usual_table
from fedhh.experiments.study.kinds import (
    Asked,
    Drawing,
    Drawn,
    Kind,
    LivePage,
    kind_of_table,
    places,
)
from fedhh.experiments.study.page import PageData
from fedhh.experiments.study.parts import Part
from fedhh.experiments.study.request import Request, Source
from fedhh.experiments.study.study import Study
from fedhh.experiments.study.text_table import TextTable
from fedhh.experiments.sweep.axes import SWEEP
from fedhh.experiments.sweep.comparison import (
    DEFAULT_COMPARISON,
    comparison_at,
    comparison_of,
    with_chosen,
)
from fedhh.experiments.sweep.directory import (
    DONE,
    RESULTS,
    SWEEP_FILE,
    read_all_results,
    read_labeled_results,
    read_results,
)
from fedhh.experiments.sweep.plan import drop_populations
from fedhh.system.files import is_there, write_text
from fedhh.validation import InputError

if TYPE_CHECKING:
    from fedhh.experiments.sweep.study import SweepStudy


class SweepKind(Kind):
    """A sweep; a comparison is one over protocols."""

    noun = "sweep"
    command = "sweep"
    begun = SWEEP_FILE
    has_settings = True

    def takes(self, table: dict[str, Any]) -> bool:
        """Return whether it says what varies; a comparison is a sweep, too."""
        return SWEEP in table or kind_of_table(table) == "run"

    def changed(self, table: dict[str, Any], request: Request, origin: str) -> dict[str, Any]:
        """Return a sweep's file with some changes."""
        if request.data is not None:
            use_data(table, request.data)
            drop_populations(table)
        apply_settings(table, request.settings)
        return table

    def study(self, source: Source, request: Request) -> SweepStudy:
        """Return its cells, all of them checked."""
        from fedhh.experiments.sweep.study import SweepStudy

        return SweepStudy(source, request, self._write)

    def live(self, study: Study) -> LivePage:
        """Return the page that follows its cells."""
        from fedhh.experiments.report.explorer.live import LiveSweepPage, live_sweep
        from fedhh.experiments.sweep.study import SweepStudy

        assert isinstance(study, SweepStudy)
        server = live_sweep(study.sweep)
        page = LiveSweepPage(server, study.sweep)
        return LivePage(server=server, callbacks=page, failed=lambda: page.failed)

    def brief(self, directory: Path) -> Iterator[Part]:
        """Yield the best settings, what failed, and where the files are."""
        frame, description = read_all_results(directory)
        if (frame["status"] == DONE).any():
            yield from self._best(directory, description)
        yield from failure_lines(frame)
        yield from places(directory, has_settings=True)

    def _best(self, directory: Path, description: dict[str, Any]) -> Iterator[Part]:
        done = read_results(directory)[0]
        if description["best"] in done:
            yield summary_table(done, description)
            if (name := usual_table(directory)).startswith("gboard"):
                yield make_table(name, directory)

    def _write(self, directory: Path) -> str:
        """Write what is made of the results; return why there is no figure, if there is none."""
        from fedhh.experiments.report.sweep_figures import plot_sweep

        try:
            plot_sweep(directory)
        except InputError as error:
            return str(error)
        return ""

    def is_finished(self, directory: Path) -> bool:
        """Return whether a sweep's results stand there."""
        return is_there(directory / RESULTS)

    def table(self, directory: Path) -> TextTable:
        """Return the table that fits what varies."""
        return make_table(usual_table(directory), directory)

    def named_table(self, directory: Path, name: str) -> TextTable:
        """Return the table of a name."""
        return make_table(name, directory)

    def parts(self, directory: Path, asked: Asked) -> Iterator[TextTable]:
        """Yield every table that the results are enough for."""
        read_results(directory)  # What is damaged is an error; what a table lacks is none.
        for name in TABLES:
            try:
                table = make_table(name, directory)
            except InputError:
                continue
            yield table

    def record(self, directory: Path, asked: Asked) -> Any:
        """Return the results, an object for each cell and seed."""
        return frame_rows(read_results(directory)[0])

    def plot(self, directory: Path, drawing: Drawing) -> Drawn:
        """Write those figures that can be drawn."""
        from fedhh.experiments.report.sweep_figures import figures_of, write_figures

        drawn = figures_of(*read_labeled_results(directory), str(directory), drawing)
        paths = write_figures(drawn, directory, drawing)
        missing = {name: reason for name, reason in drawn.items() if isinstance(reason, str)}
        return Drawn(paths=paths, missing=missing)

    def page(self, directory: Path) -> PageData:
        """Return the sweep's page."""
        return sweep_page(directory)

    def opened_from_page(self, directory: Path) -> list[Path]:
        """Return the runs of its cells that stand in directories."""
        return cell_runs(directory)


class ComparisonKind(SweepKind):
    """A sweep over protocols, at each epsilon; any run's file can be made one."""

    noun = "comparison"
    command = "compare"
    default_source = DEFAULT_COMPARISON
    brief_width = 132

    def takes(self, table: dict[str, Any]) -> bool:
        """Return whether it is of a run or of a sweep."""
        return kind_of_table(table) in {"run", "sweep", "comparison"}

    def changed(self, table: dict[str, Any], request: Request, origin: str) -> dict[str, Any]:
        """Return a sweep over protocols; options choose some, and one central epsilon for all."""
        table = super().changed(table, request, origin)
        table = comparison_of(table, origin, settings=request.settings)
        if protocols := request.options.get("protocols"):
            table = with_chosen(table, protocols)
        at = request.options.get("at")
        return table if at is None else comparison_at(table, at)

    def brief(self, directory: Path) -> Iterator[Part]:
        """Yield what failed, the table of one epsilon, and where the files are."""
        frame = read_all_results(directory)[0]
        yield from failure_lines(frame)
        if (frame["status"] == DONE).any():
            yield at_one_epsilon(directory)
        yield from places(directory, has_settings=True)

    def _write(self, directory: Path) -> str:
        """Write the table of all settings beside the results, and the figures."""
        whole = make_table("comparison", directory)
        for kind, ending in (("markdown", "md"), ("csv", "csv")):
            write_text(directory / f"comparison.{ending}", whole.render(kind))
        return super()._write(directory)


def frame_rows(frame: pd.DataFrame) -> Any:
    """Return results as JSON values, one object per cell and seed."""
    return json.loads(frame.to_json(orient="records"))
