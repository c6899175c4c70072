"""How wide a line is, as far as the environment says it."""

from __future__ import annotations

import os
import re

_VARIABLES = ("COLUMNS", "LINES")
_NARROWEST = 20
"""Cells; below that, texts are unreadable."""


def says_width() -> bool:
    """Return whether COLUMNS says how wide a line is: 20 to 9999 cells."""
    return _is_size(os.environ.get(_VARIABLES[0], ""), least=_NARROWEST)


def forget_wrong_sizes() -> None:
    """Remove COLUMNS and LINES where they are no sizes, since consoles take any digits for one."""
    for name, least in zip(_VARIABLES, (_NARROWEST, 1), strict=True):
        if not _is_size(os.environ.get(name, ""), least=least):
            os.environ.pop(name, None)


def _is_size(said: str, *, least: int) -> bool:
    return re.fullmatch("[0-9]{1,4}", said) is not None and int(said) >= least
