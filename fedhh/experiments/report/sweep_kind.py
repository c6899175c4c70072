"""Sweeps and comparisons, as their directories show them once a cell has finished."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from fedhh.experiments.report.explorer.sweep_page import cell_runs, sweep_page
from fedhh.experiments.report.tables import TABLES, make_table, usual_table
from fedhh.experiments.study.kinds import Asked, Drawing, Drawn, Kind
from fedhh.experiments.study.page import PageData
from fedhh.experiments.study.text_table import TextTable
from fedhh.experiments.sweep.directory import RESULTS, SWEEP_FILE, read_results
from fedhh.system.files import is_there
from fedhh.validation import InputError


class SweepKind(Kind):
    """A sweep; a comparison is one over protocols."""

    noun = "sweep"
    command = "sweep"
    begun = SWEEP_FILE
    has_settings = True

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
        from fedhh.experiments.report.sweep_figures import METRICS, sweep_figures, write_figures

        drawn = sweep_figures(
            directory,
            x=drawing.x,
            by=drawing.by,
            facet=drawing.facet,
            where=drawing.where,
            metrics=drawing.metrics or METRICS,
        )
        paths = write_figures(drawn, drawing.out or directory, look=drawing.look)
        missing = {name: reason for name, reason in drawn.items() if isinstance(reason, str)}
        return Drawn(paths=paths, missing=missing)

    def page(self, directory: Path) -> PageData:
        """Return the sweep's page."""
        return sweep_page(directory)

    def opened_from_page(self, directory: Path) -> list[Path]:
        """Return the runs of its cells that stand in directories."""
        return cell_runs(directory)


def frame_rows(frame: pd.DataFrame) -> Any:
    """Return results as JSON values, one object per cell and seed."""
    return json.loads(frame.to_json(orient="records"))
