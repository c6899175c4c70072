"""What a user asks of figures."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fedhh.validation import InputError

LEAST_INCHES, MOST_INCHES = 1.0, 40.0
"""Bounds on either side of a figure whose size a user gives."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """What a user asks of figures.

    Attributes:
        title: Whether they have their titles; panels keep their names.
        size: ``(width, height)`` in inches; each figure's own if None.
    """

    title: bool = True
    size: tuple[float, float] | None = None


def parse_size(text: str) -> tuple[float, float]:
    """Return width and height in inches of a text such as "6.5x4"."""
    parts = text.lower().split("x")
    try:
        width, height = map(float, parts)
    except ValueError:
        width = height = math.nan
    if not all(LEAST_INCHES <= side <= MOST_INCHES for side in (width, height)):
        raise InputError(
            f"size: expected WIDTHxHEIGHT in inches, each from {LEAST_INCHES:g} to "
            f"{MOST_INCHES:g}, such as 6.5x4, got {text!r}."
        )
    return width, height
