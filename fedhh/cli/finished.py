"""What a command has left: its directory, or a file of it."""

from __future__ import annotations

import os
from pathlib import Path

from fedhh.experiments.study.kinds import kind_of


def directory_of(path: Path) -> Path:
    """Return a directory, given itself or a file of what is finished in it."""
    if os.path.isfile(path) and kind_of(path.parent) is not None:
        return path.parent
    return path
