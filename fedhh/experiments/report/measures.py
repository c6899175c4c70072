"""What stands in the cells of tables: measures of protocols, and means over seeds.

Each is a text for people and plain values for CSV.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from fedhh.experiments.config.labels import METRICS, is_share, metric_label, round_up, value_text
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
    """

    column: str
    label: str
    formats: tuple[_Text, _Text]


def whole_bytes(bits: float) -> int:
    """Return how many bytes hold at most so many bits, an expected length.

    >>> whole_bytes(379.5), whole_bytes(384)
    (48, 48)
    """
    # A mean of equal numbers may lie above them by its last digit.
    return math.ceil(bits / 8 * (1 - 1e-12))


def bytes_text(bits: float | None) -> str:
    """Return what is at most so many bits as text, never less than it is.

    >>> bytes_text(379.5), bytes_text(3_594_849)
    ('48 B', '449.4 kB')
    """
    if bits is None or math.isnan(bits):
        return "size not stated"
    size = whole_bytes(bits)
    return f"{size:,} B" if size < 10_000 else f"{math.ceil(size / 100) / 10:,.1f} kB"


_SHARE = ("{:.1%}".format, lambda half: f"{100 * half:.1f}")
_EPSILON = (round_up, "{:.3f}".format)
_COUNT = ("{:,.0f}".format, "{:,.0f}".format)
_BYTES = (bytes_text, lambda bits: f"{bits / 8:,.0f} B")
_DECIMAL, _SECONDS, _PLAIN, _NUMBER = (
    (shown.format, shown.format) for shown in ("{:,.1f}", "{:.2f}", "{:g}", "{:,.4g}")
)

_QUALITY = (
    Measure("coverage", "coverage", _SHARE),
    Measure(CEILING, "ceiling of coverage", _SHARE),
    Measure(_OF_CEILING, "share of the ceiling", _SHARE),
    Measure("precision", "precision", _SHARE),
    Measure("discovered", "words", _COUNT),
    Measure("precision_significant", "precision of the significant", _SHARE),
    Measure(_TRUNCATED, "cut words among the false", _DECIMAL),
    Measure("recall", "recall", _SHARE),
    Measure("f1", "F1", _SHARE),
)
_CHOSEN = (
    Measure(LOCAL_EPSILON, "local epsilon, chosen", _EPSILON),
    Measure("delta", "delta", _PLAIN),
)
"""Rows of a comparison at one central epsilon."""
_COST = (
    Measure(COUNT_ERROR, "count error of the significant", _SHARE),
    Measure(INTERVALS, "interval coverage", _SHARE),
    Measure("local_epsilon", "local epsilon, item", _EPSILON),
    Measure("local_epsilon_user", "local epsilon, user", _EPSILON),
    Measure("central_epsilon_before_run", "central epsilon before the run, item", _EPSILON),
    Measure(CENTRAL, "central epsilon after the run, item", _EPSILON),
    Measure("central_epsilon_user_before_run", "central epsilon before the run, user", _EPSILON),
    Measure("central_epsilon_user", "central epsilon after the run, user", _EPSILON),
    Measure(CLAIMED_K, "k-anonymity, claimed", _COUNT),
    Measure("clients_asked", "clients asked", _COUNT),
    Measure("rounds", "rounds", _COUNT),
    Measure("rounds_per_client", "rounds that a device serves in", _COUNT),
    Measure(DAYS, "days to the result", _DECIMAL),
    Measure("share_served", "clients that served", _SHARE),
    Measure("upload_bits_per_client_max", "upload per client, at most", _BYTES),
    Measure("download_bits_per_client_max", "download per client, at most", _BYTES),
    Measure(SERVER_SECONDS, "server, CPU seconds", _SECONDS),
)


def measures_of(table: pd.DataFrame, only: Sequence[str] = ()) -> list[Measure]:
    """Return the measures that some results have, in the order of the rows.

    Args:
        table: Results.
        only: Columns, in the order that is wanted; all that say something if empty.
    """
    tops = sorted({int(match[1]) for column in table if (match := TOP.fullmatch(str(column)))})
    by_k = [
        Measure(f"{metric}_top_{k}", f"{label} of the top {k:,}", _SHARE)
        for k in tops
        for metric, label in (("precision", "precision"), ("recall", "recall"), ("f1", "F1"))
    ]
    chosen = _CHOSEN if any(axis in table for axis in TARGETS) else ()
    known = {each.column: each for each in (*_QUALITY, *by_k, *chosen, *_COST)}
    if only:
        return [known.get(each) or _other(each) for each in only if each in table]
    return [
        each
        for each in known.values()
        if each.column in table and _says_something(table[each.column])
    ]


def metric_names(columns: Iterable[str] | None = None) -> dict[str, str]:
    """Return what tables call some columns of results, or all that have a name if None."""
    known = {each.column: each.label for each in (*_QUALITY, *_CHOSEN, *_COST)}
    all_known = dict.fromkeys((*METRICS, *known)) if columns is None else columns
    return {each: known.get(each) or metric_label(each) for each in all_known}


def _other(column: str) -> Measure:
    return Measure(column, metric_label(column), _SHARE if is_share(column) else _NUMBER)


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


def with_interval(row: Any) -> str:
    """Return a share's mean and its interval, in percent."""
    mean, low, high = (f"{row[p]:.1%}" for p in _PARTS)
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
