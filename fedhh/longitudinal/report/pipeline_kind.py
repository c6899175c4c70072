"""Pipelines, as their finished directories show them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fedhh.experiments.study.kinds import Drawing, Drawn, Kind
from fedhh.experiments.study.page import PageData
from fedhh.experiments.study.request import Request, Source
from fedhh.experiments.study.study import Study
from fedhh.experiments.study.text_table import TextTable
from fedhh.longitudinal.pipeline.config import changed_pipeline
from fedhh.longitudinal.pipeline.directory import CHECKPOINT, read_record, result_record, state_line
from fedhh.longitudinal.pipeline.result import PipelineResult
from fedhh.longitudinal.report.pipeline_page import pipeline_page
from fedhh.longitudinal.report.pipeline_table import pipeline_table


class PipelineKind(Kind):
    """Devices over days, an ingestor and an aggregator."""

    noun = "pipeline"
    command = "pipeline run"
    begun = CHECKPOINT
    width = brief_width = 165

    def changed(self, table: dict[str, Any], request: Request, origin: str) -> dict[str, Any]:
        """Return a pipeline's file with some changes; an option names the use cases to keep."""
        if request.data is not None:
            return super().changed(table, request, origin)
        return changed_pipeline(
            table, request.settings, request.options.get("use_cases", ()), origin
        )

    def study(self, source: Source, request: Request) -> Study:
        """Return its days and devices."""
        from fedhh.longitudinal.pipeline.study import PipelineStudy

        return PipelineStudy(source, request, _draw)

    def table(self, directory: Path) -> TextTable:
        """Return a row for each use case."""
        return pipeline_table(read_record(directory))

    def closing_lines(self, directory: Path) -> Iterator[str]:
        """Yield where a kept checkpoint is, and what prints the table again."""
        if state := state_line(directory / CHECKPOINT):
            yield f"Kept by output.keep_checkpoint: {state}"
        yield f"This table again: fedhh show {shlex.quote(str(directory))}"

    def plot(self, directory: Path, drawing: Drawing) -> Drawn:
        """Write the figures of its days."""
        from fedhh.longitudinal.report.pipeline_figures import plot_pipeline

        return Drawn(paths=plot_pipeline(directory, out=drawing.out, look=drawing.look))

    def page(self, directory: Path) -> PageData:
        """Return its table, and a chart of its days."""
        return pipeline_page(directory)


def _draw(directory: Path, result: PipelineResult) -> None:
    # Figures load matplotlib and pandas, which what is refused does without.
    import pandas as pd

    from fedhh.longitudinal.report.pipeline_figures import FOLDER, write_pipeline_figures

    days = pd.DataFrame(result.tables.days)
    write_pipeline_figures(days, result_record(result), directory / FOLDER)
