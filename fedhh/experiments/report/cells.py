"""A mean over seeds as the cell of a table: as text, and as plain values for CSV."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from fedhh.experiments.config.labels import value_text
from fedhh.experiments.sweep.intervals import interval_text

_PARTS = ("mean", "low", "high")


def record_of(name: str, row: Any, *, scale: float = 1.0) -> dict[str, float | None]:
    """Return mean, low and high of a summarized number, by column; none where it is missing."""
    if row is None:
        return {f"{name}_{part}": None for part in _PARTS}
    return {
        f"{name}_{part}": None if pd.isna(row[part]) else float(row[part]) * scale
        for part in _PARTS
    }


def with_interval(row: Any, *, share: bool) -> str:
    """Return a mean and its interval, in percent if it is a share."""
    mean, low, high = (f"{row[p]:.1%}" if share else f"{row[p]:,.3g}" for p in _PARTS)
    return mean if pd.isna(row["low"]) else f"{mean} [{low}, {high}]"


def points(value: float) -> str:
    """Return a difference of shares in percentage points."""
    return f"{100 * value:+.1f}"


def points_with_interval(row: Any) -> str:
    """Return a mean difference and its interval in percentage points."""
    if pd.isna(row["low"]):
        return points(row["mean"])
    return f"{points(row['mean'])} [{points(row['low'])}, {points(row['high'])}]"


def note_of(counts: Iterable[int]) -> str:
    """Return a sentence about what the numbers are, given how many seeds each is a mean of."""
    text = interval_text(counts)
    return f"{text[0].upper()}{text[1:]}."


def setting_text(row: dict[Any, Any], path: str) -> str:
    """Return a setting as text; without a randomizer there is no epsilon."""
    return "-" if _has_none(row, path) else value_text(row[path])


def setting_value(row: dict[Any, Any], path: str) -> Any:
    """Return a setting as a plain value; without a randomizer there is no epsilon."""
    return None if _has_none(row, path) else row[path]


def _has_none(row: dict[Any, Any], path: str) -> bool:
    return path == "privacy.local_epsilon" and row.get("protocol.oracle") == "none"
