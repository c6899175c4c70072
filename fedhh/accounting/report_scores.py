"""Scores of reports: how likely each is under some values, as stated or as other reports teach.

A score only suggests which value a report is about. Where it is wrong, an audit sees less; what it
finds holds all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fedhh.random import scatter

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_MOST_COLUMNS = 64
_LONGEST_HASHED = 4096
_MOST_CATEGORIES = 32
_BINS = 16
_LOW_BITS = 7
_MOST_WHOLE = 4096
_PRIOR = 2.0
"""Reports added to each count, so that a place that was seen by chance says little."""
_FARTHEST = 1e6
_STEP = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, kw_only=True, eq=False)
class ShownReports:
    """What some reports show.

    Attributes:
        given: ``(n, m)`` finite scores of m values that do not have to be learned, such as the
            stated log-likelihoods.
        columns: ``(n, c)`` numbers of the report, integers or floats without NaN.
        sums: ``(n,)`` sums of all of the report's numbers.
        whole: ``(n,) uint64``: equal where reports are.
    """

    given: Floats
    columns: npt.NDArray[Any]
    sums: Floats
    whole: Words

    @classmethod
    def of(cls, given: Floats, reports: npt.NDArray[Any]) -> ShownReports:
        """Return what reports show, given a score of each value.

        Args:
            given: ``(n, m)``; may be -inf. Made finite, and relative to each report's largest.
            reports: First axis n. Of long ones, some numbers are looked at.
        """
        rows = np.ascontiguousarray(reports.reshape(len(reports), -1))
        chosen = rows
        if rows.shape[1] > _MOST_COLUMNS:
            places = np.linspace(0, rows.shape[1] - 1, _MOST_COLUMNS).astype(np.intp)
            chosen = rows[:, places]
        hashed = rows if rows.shape[1] <= _LONGEST_HASHED else chosen
        return cls(
            given=_as_scores(given),
            columns=chosen,
            sums=rows.sum(axis=1, dtype=np.float64),
            whole=_hashed(hashed),
        )

    @classmethod
    def together(cls, parts: list[ShownReports]) -> ShownReports:
        """Return all parts' reports, in their order."""
        return cls(
            given=np.concatenate([part.given for part in parts]),
            columns=np.concatenate([part.columns for part in parts]),
            sums=np.concatenate([part.sums for part in parts]),
            whole=np.concatenate([part.whole for part in parts]),
        )


class ReportScore(Protocol):
    """A log-likelihood of reports under some values, up to a constant of each report."""

    @property
    def name(self) -> str:
        """What it is made of."""

    def of(self, shown: ShownReports) -> Floats:
        """Return ``(n, m)`` finite scores."""


@dataclass(frozen=True)
class Given:
    """The scores that do not have to be learned."""

    name: str

    def of(self, shown: ShownReports) -> Floats:
        """Return them."""
        return shown.given


@dataclass(frozen=True, eq=False)
class WholeReports:
    """How often each whole report was seen under each value; all rare ones are counted as one.

    Attributes:
        known: ``(r,) uint64``, ascending.
        logs: ``(r + 1, m)`` log-frequencies, the last of all other reports.
    """

    known: Words
    logs: Floats
    name: str = "whole report"

    @classmethod
    def learned(cls, shown: ShownReports, held: Numbers, num_values: int) -> WholeReports:
        """Return the frequencies among some reports.

        Args:
            shown: n reports.
            held: ``(n,)`` numbers of the values that were held.
            num_values: m.
        """
        known, counts = np.unique(shown.whole, return_counts=True)
        known = np.sort(known[np.argsort(-counts, kind="stable")[:_MOST_WHOLE]])
        table = cls(known=known, logs=np.zeros((len(known) + 1, num_values)))
        return cls(known=known, logs=_log_table(table._places(shown), held, table.logs.shape))

    def of(self, shown: ShownReports) -> Floats:
        """Return what was learned of these reports."""
        return np.asarray(self.logs[self._places(shown)])

    def _places(self, shown: ShownReports) -> npt.NDArray[np.intp]:
        places = np.searchsorted(self.known, shown.whole)
        inside = np.minimum(places, len(self.known) - 1)
        return np.where(self.known[inside] == shown.whole, inside, len(self.known))


@dataclass(frozen=True, eq=False)
class NaiveBayes:
    """Each column's frequencies under each value, multiplied as if columns were independent.

    Columns are the report's numbers, their sum, and the given scores, which say which values
    a report supports. Numbers of many values are taken in bins, and by their last bits.

    Attributes:
        edges: Of each column, where its bins end.
        tables: Of each column, ``(bins, m)`` log-frequencies; of its last bits, or None.
    """

    edges: list[Floats]
    tables: list[tuple[Floats, Floats | None]]
    name: str = "learned likelihood"

    @classmethod
    def learned(cls, shown: ShownReports, held: Numbers, num_values: int) -> NaiveBayes:
        """Return the frequencies among some reports; see `WholeReports.learned`."""
        edges, tables = [], []
        for column in _columns(shown):
            ends = _ends_of_bins(column)
            size = len(ends) + 1
            table = _log_table(np.searchsorted(ends, column), held, (size, num_values))
            of_bits = None
            if column.dtype.kind in "iu" and len(ends) == _BINS - 1:
                of_bits = _log_table(_last_bits(column), held, (_LOW_BITS + 1, num_values))
            edges.append(ends)
            tables.append((table, of_bits))
        return cls(edges=edges, tables=tables)

    def of(self, shown: ShownReports) -> Floats:
        """Return the sum of all columns' logarithms."""
        total = np.zeros((len(shown.whole), self.tables[0][0].shape[1]))
        for column, ends, (table, of_bits) in zip(
            _columns(shown), self.edges, self.tables, strict=True
        ):
            total += table[np.searchsorted(ends, column)]
            if of_bits is not None:
                total += of_bits[_last_bits(column)]
        return total


def _as_scores(log_likelihoods: Floats) -> Floats:
    """Return finite log-likelihoods relative to each report's largest, rounded to 1e-9.

    Rounding keeps equal ones equal. A report that is impossible under all values says nothing.
    """
    largest = log_likelihoods.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        relative = np.where(np.isneginf(largest), 0.0, log_likelihoods - largest)
    return np.asarray(np.round(np.maximum(relative, -_FARTHEST), 9))


def _columns(shown: ShownReports) -> list[npt.NDArray[Any]]:
    return [*shown.columns.T, shown.sums, *shown.given.T]


def _ends_of_bins(column: npt.NDArray[Any]) -> Floats:
    """Return up to which number each bin goes; the last one goes on for ever."""
    values = np.unique(column)
    if len(values) <= _MOST_CATEGORIES:
        return np.asarray(values[:-1])
    return np.asarray(np.quantile(column, np.arange(1, _BINS) / _BINS, method="lower"))


def _last_bits(column: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    return np.asarray(column & _LOW_BITS, dtype=np.intp)


def _log_table(places: npt.NDArray[np.intp], held: Numbers, shape: tuple[int, ...]) -> Floats:
    """Return log-frequencies of places under each value; rare places say little."""
    counts = np.bincount(places * shape[1] + held, minlength=shape[0] * shape[1]).reshape(shape)
    smoothed = counts + _PRIOR
    return np.asarray(np.log(smoothed / smoothed.sum(axis=0)))


def _hashed(rows: npt.NDArray[Any]) -> Words:
    """Return a word for each row."""
    numbers = rows if rows.dtype.kind in "iub" else np.asarray(rows, dtype=np.float64)
    words = numbers.astype(np.int64) if rows.dtype.kind in "iub" else numbers.view(np.int64)
    places = np.arange(1, rows.shape[1] + 1, dtype=np.uint64) * _STEP
    mixed = scatter(words.view(np.uint64) ^ scatter(places))
    return np.asarray(mixed.sum(axis=1, dtype=np.uint64))
