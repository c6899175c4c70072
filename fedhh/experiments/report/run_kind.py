"""Runs, as their finished directories show them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fedhh.experiments.config.built_in import DEFAULT_PRESET
from fedhh.experiments.config.load import apply_settings, use_data
from fedhh.experiments.report.calendar import calendar_table
from fedhh.experiments.report.comparison import METRIC, comparison_table, results_of_runs
from fedhh.experiments.report.run_tables import BRIEF, brief_of, run_parts
from fedhh.experiments.report.tables import chosen_table
from fedhh.experiments.run.directory import BASELINES, CALENDAR, NAME, runs_in
from fedhh.experiments.run.result import RunResult
from fedhh.experiments.run.stored_result import StoredResult, read_record, read_result
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
from fedhh.experiments.study.parts import Part
from fedhh.experiments.study.request import Request, Source
from fedhh.experiments.study.study import Study
from fedhh.experiments.study.text_table import TextTable
from fedhh.settings import AUTO
from fedhh.validation import InputError

if TYPE_CHECKING:
    from fedhh.experiments.run.study import RunStudy


class RunKind(Kind):
    """A run, with its baselines."""

    noun = "run"
    command = "run"
    default_source = DEFAULT_PRESET
    has_more = True
    is_laid_over = True

    def takes(self, table: dict[str, Any]) -> bool:
        return kind_of_table(table) == NAME

    def changed(self, table: dict[str, Any], request: Request, origin: str) -> dict[str, Any]:
        """Return a configuration; a preset's cohorts were chosen for its own clients."""
        if request.data is not None:
            use_data(table, request.data)
            if request.file is None:
                table.setdefault("protocol", {})["clients_per_layer"] = AUTO
        apply_settings(table, request.settings)
        return table

    def study(self, source: Source, request: Request) -> RunStudy:
        from fedhh.experiments.run.study import RunStudy

        return RunStudy(source, request, _draw)

    def live(self, study: Study) -> LivePage:
        from fedhh.experiments.report.explorer.live import LiveRun, live_run
        from fedhh.experiments.run.study import RunStudy

        assert isinstance(study, RunStudy)
        server = live_run(study.title)
        return LivePage(server=server, callbacks=LiveRun(server))

    def brief(self, directory: Path) -> Iterator[Part]:
        """Yield the run in a sentence, its top words, its protocols and its privacy."""
        stored = _stored(directory)
        compared = comparison_table(*_results(stored), metrics=list(BRIEF), columns=METRIC)
        yield from brief_of(stored[0].result, compared)
        yield from places(directory)

    def table(self, directory: Path) -> TextTable:
        return self.chosen_table(directory, Chosen())

    def chosen_table(self, directory: Path, chosen: Chosen) -> TextTable:
        return chosen_table(*_results(_stored(directory)), chosen)

    def named_table(self, directory: Path, name: str) -> TextTable:
        """Return the calendar of a run and its baselines, the one table besides the main one."""
        if name != CALENDAR:
            return super().named_table(directory, name)
        results = [each.result for each in _stored(directory)]
        if any(result.calendar is None for result in results):
            raise InputError(
                f"Expected the directory of a run with the table [devices], got {directory}: "
                "without it all devices always answer, and there is no calendar."
            )
        return calendar_table(results)

    def parts(self, directory: Path, asked: Asked) -> Iterator[Part]:
        """Yield all of each run, then all next to each other."""
        stored = _stored(directory)
        for each in stored:
            yield from run_parts(each.result, num_words=asked.words)
        if len(stored) > 1:
            yield comparison_table(*_results(stored))

    def record(self, directory: Path, asked: Asked) -> dict[str, Any]:
        record, *others = (read_record(folder) for folder in runs_in(directory))
        if others:
            record[BASELINES] = others
        return {**record, "directory": str(directory)}

    def plot(self, directory: Path, drawing: Drawing) -> Drawn:
        from fedhh.experiments.report.run_figures import plot_run

        return Drawn(paths=plot_run(directory, out=drawing.out, look=drawing.look))

    def page(self, directory: Path) -> PageData:
        from fedhh.experiments.report.explorer.run_page import run_page

        return run_page([directory])

    def page_of_two(self, directory: Path, other: Path) -> PageData:
        from fedhh.experiments.report.explorer.run_page import run_page

        return run_page([directory, other])


def _draw(directory: Path, result: RunResult) -> None:
    # Figures load matplotlib, which a run that is refused does without.
    from fedhh.experiments.report.run_figures import write_figures

    write_figures(directory, result)


def _stored(directory: Path) -> list[StoredResult]:
    return [read_result(folder) for folder in runs_in(directory)]


def _results(stored: list[StoredResult]) -> tuple[pd.DataFrame, dict[str, Any]]:
    return results_of_runs([(each.config, each.result) for each in stored])
