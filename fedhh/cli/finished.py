"""What a command has left: its directory, or a file of it, and a table of it."""

from __future__ import annotations

import os
from pathlib import Path

from fedhh.experiments.study.kinds import all_kinds, kind_of, nothing_finished
from fedhh.experiments.study.text_table import TextTable
from fedhh.system.files import is_there
from fedhh.validation import InputError


def directory_of(path: Path) -> Path:
    """Return a directory, given itself or a file of what is finished in it."""
    if os.path.isfile(path) and kind_of(path.parent) is not None:
        return path.parent
    return path


def finished_table(directory: Path, name: str | None) -> TextTable:
    """Return a table of what is finished in a directory.

    Args:
        directory: Of anything that is finished.
        name: Which, where there are several; None for the one that says most.

    Raises:
        InputError: Nothing is finished, a file is damaged, or there is no such table.
    """
    kind = kind_of(directory)
    if kind is not None:
        return kind.table(directory) if name is None else kind.named_table(directory, name)
    if not is_there(directory) and any(
        str(directory) in each.table_names() for each in all_kinds()
    ):
        raise InputError(
            f"Expected a directory, got the name of a table; give fedhh table DIR {directory}."
        )
    raise nothing_finished(directory)
