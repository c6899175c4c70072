"""What stands in the cells of tables: measures of protocols, and means over seeds.

Each is a text for people and plain values for CSV.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from fedhh.experiments.config.labels import round_up, value_text
from fedhh.experiments.sweep.central_target import LOCAL_EPSILON, TARGETS
from fedhh.experiments.sweep.intervals import interval_text

CENTRAL = "central_epsilon"
CLAIMED_K = "claimed_k"
CEILING = "ceiling_coverage"
COUNT_ERROR = "count_error_relative_significant"
DAYS = "days"
INTERVALS = "interval_coverage"
SERVER_SECONDS = "server"
"""Column of the server's processor time; of the timings, not of the results."""

TOP = re.compile(r"(?:precision|recall|f1)_top_(\d+)")
"""Columns of measures against the true top."""

_OF_CEILING = "share_of_ceiling"
_TRUNCATED = "discovered_truncated"
_PARTS = ("mean", "low", "high")

_Text = Callable[[float], str]


@dataclass(frozen=True)
class Measure:
    """A row of a comparison.

    Attributes:
        column: Column of the results.
        label: What the table calls it.
        formats: What makes a text of a mean, and one of half an interval's width.
        is_short: Whether the short table of a run and its baselines has it.
    """

    column: str
    label: str
    formats: tuple[_Text, _Text]
    is_short: bool = False


def whole_bytes(bits: float) -> int:
    """Return how many bytes hold at most so many bits, an expected length.

    >>> whole_bytes(379.5), whole_bytes(384)
    (48, 48)
    """
    # A mean of equal numbers may lie above them by its last digit.
    return math.ceil(bits / 8 * (1 - 1e-12))


_SHARE = ("{:.1%}".format, lambda half: f"{100 * half:.1f}")
_EPSILON = (round_up, "{:.3f}".format)
_COUNT = ("{:,.0f}".format, "{:,.0f}".format)
_BYTES = (lambda bits: f"{whole_bytes(bits):,} B", lambda bits: f"{bits / 8:,.0f} B")
_DECIMAL, _SECONDS, _PLAIN = (
    (shown.format, shown.format) for shown in ("{:,.1f}", "{:.2f}", "{:g}")
)

_QUALITY = (
    Measure("coverage", "coverage", _SHARE, True),
    Measure(CEILING, "ceiling of coverage", _SHARE, True),
    Measure(_OF_CEILING, "share of the ceiling", _SHARE, True),
    Measure("precision", "precision", _SHARE, True),
    Measure("precision_significant", "precision of the significant", _SHARE),
    Measure(_TRUNCATED, "cut words among the false", _DECIMAL, True),
    Measure("recall", "recall", _SHARE, True),
    Measure("f1", "F1", _SHARE),
)
_CHOSEN = (
    Measure(LOCAL_EPSILON, "local epsilon, chosen", _EPSILON),
    Measure("delta", "delta", _PLAIN),
)
"""Rows of a comparison at one central epsilon."""
_COST = (
    Measure(COUNT_ERROR, "count error of the significant", _SHARE, True),
    Measure(INTERVALS, "interval coverage", _SHARE, True),
    Measure("local_epsilon", "local epsilon, item", _EPSILON),
    Measure("local_epsilon_user", "local epsilon, user", _EPSILON),
    Measure("central_epsilon_before_run", "central epsilon before the run, item", _EPSILON, True),
    Measure(CENTRAL, "central epsilon after the run, item", _EPSILON, True),
    Measure(
        "central_epsilon_user_before_run", "central epsilon before the run, user", _EPSILON, True
    ),
    Measure("central_epsilon_user", "central epsilon after the run, user", _EPSILON, True),
    Measure(CLAIMED_K, "k-anonymity, claimed", _COUNT, True),
    Measure("clients_asked", "clients asked", _COUNT),
    Measure("rounds", "rounds", _COUNT, True),
    Measure(DAYS, "days to the result", _DECIMAL, True),
    Measure("share_served", "clients that served", _SHARE, True),
    Measure("upload_bits_per_client_max", "upload per client, at most", _BYTES, True),
    Measure("download_bits_per_client_max", "download per client, at most", _BYTES, True),
    Measure(SERVER_SECONDS, "server, CPU seconds", _SECONDS, True),
)


def measures_of(table: pd.DataFrame, *, short: bool = False) -> list[Measure]:
    """Return the measures that some results have numbers for, in the order of the rows."""
    tops = sorted({int(match[1]) for column in table if (match := TOP.fullmatch(str(column)))})
    by_k = [
        Measure(f"{metric}_top_{k}", f"{label} of the top {k:,}", _SHARE, metric == "f1")
        for k in tops
        for metric, label in (("precision", "precision"), ("recall", "recall"), ("f1", "F1"))
    ]
    chosen = _CHOSEN if any(axis in table for axis in TARGETS) else ()
    return [
        each
        for each in (*_QUALITY, *by_k, *chosen, *_COST)
        if each.column in table
        and _says_something(table[each.column])
        and (each.is_short or not short)
    ]


def _says_something(column: pd.Series[Any]) -> bool:
    """Return whether a row would: few protocols cut words, few runs state intervals or ceilings."""
    if column.name == _TRUNCATED:
        return bool((column > 0).any())
    return column.name not in (CEILING, _OF_CEILING, INTERVALS) or bool(column.notna().any())


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
