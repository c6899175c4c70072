"""Repeated collection, as its finished directories show it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fedhh.experiments.study.directory import RESULT
from fedhh.experiments.study.kinds import Asked, Drawing, Drawn, Kind
from fedhh.experiments.study.page import PageData
from fedhh.experiments.study.parts import Line, Part
from fedhh.experiments.study.resume import IDENTITY
from fedhh.experiments.study.text_table import TextTable
from fedhh.longitudinal.repeated.directory import (
    FIGURES,
    read_result,
    read_tables,
    stored_section,
)
from fedhh.longitudinal.report.repeated_page import months_page
from fedhh.longitudinal.report.repeated_table import stated_table
from fedhh.system.files import is_there


class RepeatedKind(Kind):
    """A discovery that is repeated over months."""

    noun = "repeated collection"
    command = "longitudinal run"
    begun = IDENTITY
    width = 160

    def is_finished(self, directory: Path) -> bool:
        return is_there(directory / RESULT) and is_there(directory / IDENTITY)

    def table(self, directory: Path) -> TextTable:
        return stated_table(read_result(directory), directory)[0]

    def parts(self, directory: Path, asked: Asked) -> Iterator[Part]:
        table, skipped = stated_table(read_result(directory), directory)
        yield table
        for line in skipped:
            yield Line(line, is_whole=True)

    def plot(self, directory: Path, drawing: Drawing) -> Drawn:
        from fedhh.longitudinal.report.repeated_figures import Collected, plot_repeated

        collected = Collected(section=stored_section(directory), tables=read_tables(directory))
        folder = drawing.out or directory / FIGURES
        return Drawn(paths=plot_repeated(collected, folder, look=drawing.look))

    def page(self, directory: Path) -> PageData:
        return months_page(directory)
