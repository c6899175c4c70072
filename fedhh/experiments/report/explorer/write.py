"""Writes a page."""

from __future__ import annotations

from pathlib import Path

from fedhh.experiments.report.explorer.document import document
from fedhh.experiments.study.kinds import finished_kind
from fedhh.experiments.study.page import REPORT, PageData
from fedhh.system.files import write_text
from fedhh.validation import InputError


def write_report(directory: Path, other: Path | None = None, *, out: Path | None = None) -> Path:
    """Write a directory's page, and return the file.

    The pages of directories below it are written too where its page leads to them, as a sweep's
    leads to the runs in ``cells/CELL``.

    Args:
        directory: Of anything that is finished.
        other: A second run's, to be laid over the first one.
        out: The file; "report.html" in the directory if None, or "compared-with-OTHER.html".

    Raises:
        InputError: Nothing is finished in a directory, it is damaged, or its kind has no such page;
            or the file is a run's own page.
    """
    kind = finished_kind(directory)
    if other is not None:
        file = out or directory / f"compared-with-{other.resolve().name or 'root'}.html"
        for each in (directory, other):
            _check_compared(each, file)
        _write(kind.page_of_two(directory, other), file)
        return file
    file = out or directory / REPORT
    page = kind.page(directory)
    for below in kind.opened_from_page(directory):
        write_report(below)
    _write(page, file)
    return file


def _check_compared(directory: Path, file: Path) -> None:
    """Raise InputError unless a directory can be laid over another, and the file is not its own."""
    if not finished_kind(directory).is_laid_over:
        raise InputError(
            f"{directory} holds no single run; two runs are laid over each other. Give it alone."
        )
    if file.resolve() == (directory / REPORT).resolve():
        raise InputError(
            f"{file} is the page of one of the runs; give the comparison another --out."
        )


def _write(page: PageData, file: Path) -> None:
    write_text(file, document(page.title, page.manifest, page.chunks, connect="'none'"))
