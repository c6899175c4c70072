"""Writes a page."""

from __future__ import annotations

from pathlib import Path

from fedhh.experiments.report.explorer.document import document
from fedhh.experiments.report.explorer.run_page import PageData, is_run, run_page
from fedhh.experiments.report.explorer.sweep_page import REPORT, cell_runs, sweep_page
from fedhh.experiments.run import directory as output
from fedhh.experiments.sweep import directory as results
from fedhh.system.files import is_there, write_text
from fedhh.validation import InputError


def write_report(directory: Path, other: Path | None = None, *, out: Path | None = None) -> Path:
    """Write a directory's page, and return the file.

    Of a sweep, the pages of those cells are written too whose run stands in ``cells/CELL``: the
    sweep's page leads there.

    Args:
        directory: A finished run's, or a sweep's.
        other: A second run's, to be laid over the first one.
        out: The file; "report.html" in the directory if None.

    Raises:
        InputError: A directory holds neither, or is damaged.
    """
    file = out or directory / REPORT
    if other is not None:
        for each in (directory, other):
            if not is_run(each):
                raise InputError(f"{each} holds no finished run: {output.RESULT} is missing.")
        _write(run_page([directory, other]), file)
    elif is_run(directory):
        _write(run_page([directory]), file)
    elif is_there(directory / results.RESULTS):
        page = sweep_page(directory)
        for run in cell_runs(directory):
            write_report(run)
        _write(page, file)
    else:
        raise InputError(
            f"{directory} holds no finished run and no sweep: {output.RESULT} and "
            f"{results.RESULTS} are missing."
        )
    return file


def _write(page: PageData, file: Path) -> None:
    write_text(file, document(page.title, page.manifest, page.chunks, connect="'none'"))
