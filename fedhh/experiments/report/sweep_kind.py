"""Sweeps and comparisons, as their directories show them once a cell has finished."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fedhh.experiments.config.built_in import DEFAULT_PRESET, RUNS
from fedhh.experiments.config.load import apply_settings, use_data
from fedhh.experiments.report.tables import (
    TABLES,
    at_one_epsilon,
    brief_table,
    chosen_table,
    made_table,
    make_table,
    named_choice,
    usual_table,
)
from fedhh.experiments.study.kinds import (
    Asked,
    Chosen,
    Drawing,
    Drawn,
    Kind,
    LivePage,
    kind_of_table,
    places,
)
from fedhh.experiments.study.page import PageData
from fedhh.experiments.study.parts import Line, Part
from fedhh.experiments.study.request import Request, Source
from fedhh.experiments.study.study import Study
from fedhh.experiments.study.text_table import TextTable
from fedhh.experiments.sweep.axes import PROTOCOL, SWEEP
from fedhh.experiments.sweep.comparison import (
    axes_of,
    comparison_at,
    comparison_of,
    with_chosen,
)
from fedhh.experiments.sweep.directory import (
    DONE,
    FAILED,
    RESULTS,
    SWEEP_FILE,
    label_results,
    read_all_results,
    read_labeled_results,
    read_results,
    read_timed_results,
    with_server_seconds,
)
from fedhh.experiments.sweep.plan import drop_populations, fix_axes
from fedhh.system.files import is_there, write_text
from fedhh.validation import InputError

if TYPE_CHECKING:
    from fedhh.experiments.sweep.study import SweepStudy


class SweepKind(Kind):
    """A sweep; a comparison is one over protocols."""

    noun = "sweep"
    command = "sweep"
    begun = SWEEP_FILE
    has_more = True
    has_settings = True

    def takes(self, table: dict[str, Any]) -> bool:
        """Return whether it says what varies; a comparison is a sweep, too."""
        return SWEEP in table or kind_of_table(table) == "run"

    def changed(self, table: dict[str, Any], request: Request, origin: str) -> dict[str, Any]:
        """Return a sweep's file with some changes; what is set varies no more."""
        if request.data is not None:
            use_data(table, request.data)
            drop_populations(table)
        fix_axes(table, apply_settings(table, request.settings))
        return table

    def study(self, source: Source, request: Request) -> SweepStudy:
        from fedhh.experiments.sweep.study import SweepStudy

        return SweepStudy(source, request, self._write)

    def live(self, study: Study) -> LivePage:
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
            yield from self._best(*_timed(frame, description, directory))
        yield from _failure_lines(frame)
        yield from places(directory, has_settings=True)

    def _best(self, table: pd.DataFrame, description: dict[str, Any]) -> Iterator[Part]:
        if description["best"] in table:
            yield brief_table(table, description)
            if (name := usual_table(table, description)).startswith("gboard"):
                yield made_table(name, table, description)

    def _write(self, directory: Path) -> str:
        """Write what is made of the results; return why there is no figure, if there is none."""
        from fedhh.experiments.report.sweep_figures import plot_sweep

        try:
            plot_sweep(directory)
        except InputError as error:
            return str(error)
        return ""

    def is_finished(self, directory: Path) -> bool:
        return is_there(directory / RESULTS)

    def table(self, directory: Path) -> TextTable:
        """Return the table that fits what varies."""
        results = read_timed_results(directory)
        usual = usual_table(*results)
        return made_table(usual if usual.startswith("gboard") else "summary", *results)

    def chosen_table(self, directory: Path, chosen: Chosen) -> TextTable:
        return chosen_table(*read_timed_results(directory), chosen)

    def named_table(self, directory: Path, name: str) -> TextTable:
        return make_table(name, directory)

    def parts(self, directory: Path, asked: Asked) -> Iterator[TextTable]:
        """Yield every table that the results are enough for."""
        results = read_timed_results(directory)
        for name in TABLES:
            with suppress(InputError):
                yield made_table(name, *results)

    def record(self, directory: Path, asked: Asked) -> Any:
        return json.loads(read_results(directory)[0].to_json(orient="records"))

    def plot(self, directory: Path, drawing: Drawing) -> Drawn:
        from fedhh.experiments.report.sweep_figures import figures_of, write_figures

        drawn = figures_of(*read_labeled_results(directory), str(directory), drawing)
        paths = write_figures(drawn, directory, drawing)
        missing = {name: reason for name, reason in drawn.items() if isinstance(reason, str)}
        return Drawn(paths=paths, missing=missing)

    def page(self, directory: Path) -> PageData:
        from fedhh.experiments.report.explorer.study_page import sweep_page

        return sweep_page(directory)

    def opened_from_page(self, directory: Path) -> list[Path]:
        """Return the runs of its cells that stand in directories."""
        from fedhh.experiments.report.explorer.study_page import cell_runs

        return cell_runs(directory)


class ComparisonKind(SweepKind):
    """A sweep over protocols, at each epsilon; any run's file can be made one."""

    noun = "comparison"
    command = "compare"
    default_source = DEFAULT_PRESET
    also_presets = RUNS
    brief_width = 132

    def takes(self, table: dict[str, Any]) -> bool:
        """Return whether it is of a run or of a sweep."""
        return kind_of_table(table) in {"run", "sweep", "comparison"}

    def changed(self, table: dict[str, Any], request: Request, origin: str) -> dict[str, Any]:
        """Return a sweep over protocols; options choose some, and one central epsilon for all."""
        table = super().changed(table, request, origin)
        table = comparison_of(
            table,
            origin,
            settings=request.settings,
            as_published=request.options.get("as_published", False),
        )
        if protocols := request.options.get("protocols"):
            table = with_chosen(table, protocols)
        if (at := request.options.get("at")) is not None:
            table = comparison_at(table, at)
        named_choice(request.options.get("chosen", Chosen()), axes_of(table))
        return table

    def brief(self, directory: Path) -> Iterator[Part]:
        """Yield what failed, the table of one epsilon, and where the files are."""
        frame, description = read_all_results(directory)
        yield from _failure_lines(frame)
        if (frame["status"] == DONE).any():
            yield at_one_epsilon(*_timed(frame, description, directory))
        yield from places(directory, has_settings=True)

    def _write(self, directory: Path) -> str:
        """Write the table of all settings next to the results, and the figures."""
        whole = make_table("comparison", directory)
        for kind, ending in (("markdown", "md"), ("csv", "csv")):
            write_text(directory / f"comparison.{ending}", whole.render(kind))
        return super()._write(directory)


def _timed(
    frame: pd.DataFrame, description: dict[str, Any], directory: Path
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return what `read_timed_results` does, of all rows that were read."""
    table, description = label_results(frame, description, str(directory / RESULTS))
    return with_server_seconds(table, directory), description


def _failure_lines(frame: pd.DataFrame) -> Iterator[Line]:
    """Yield the cells that have no result, and why."""
    for row in frame[frame["status"] == FAILED].to_dict("records"):
        where = f"{row[PROTOCOL]}, " if PROTOCOL in row else ""
        yield Line(f"failed: {where}cell {row['cell']}, seed {row['seed']}: {row['error']}")
