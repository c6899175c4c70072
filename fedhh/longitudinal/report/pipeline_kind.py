"""Pipelines, as their finished directories show them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from fedhh.experiments.study.kinds import Drawing, Drawn, Kind
from fedhh.experiments.study.page import PageData
from fedhh.experiments.study.text_table import TextTable
from fedhh.longitudinal.pipeline.directory import CHECKPOINT, read_record, state_line
from fedhh.longitudinal.report.pipeline_page import pipeline_page
from fedhh.longitudinal.report.pipeline_table import pipeline_table


class PipelineKind(Kind):
    """Devices over days, an ingestor and an aggregator."""

    noun = "pipeline"
    command = "pipeline run"
    begun = CHECKPOINT
    width = 165

    def table(self, directory: Path) -> TextTable:
        return pipeline_table(read_record(directory))

    def closing_lines(self, directory: Path) -> Iterator[str]:
        if state := state_line(directory / CHECKPOINT):
            yield f"Kept by output.keep_checkpoint: {state}"
        yield f"This table again: fedhh show {shlex.quote(str(directory))}"

    def plot(self, directory: Path, drawing: Drawing) -> Drawn:
        from fedhh.longitudinal.report.pipeline_figures import plot_pipeline

        return Drawn(paths=plot_pipeline(directory, out=drawing.out, look=drawing.look))

    def page(self, directory: Path) -> PageData:
        return pipeline_page(directory)
