"""What reports add up to, in as few bytes as they need.

Apple's sketch of emoji has 65,536 x 1,024 cells: half a gigabyte of 64-bit integers, for a few
million reports that put a few dozen ones into a cell. Its sums are kept in 16 bits for as long as
no row has more reports than these can count, and are looked at some rows at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.arrays import Ints
from fedhh.oracles import FrequencyOracle
from fedhh.oracles.hashed import SketchOracle
from fedhh.questions.question import Tally
from fedhh.system.archive import Arrays

_Table = npt.NDArray[np.signedinteger[Any]]

_WIDTHS: tuple[type[np.signedinteger[Any]], ...] = (np.int16, np.int32, np.int64)
_CELLS_AT_ONCE = 2**22


class ReportSums:
    """Sums of the reports of one oracle, as the oracle has them."""

    def __init__(self, oracle: FrequencyOracle) -> None:
        self.oracle = oracle
        self.num_reports = 0
        self._sums = np.zeros(oracle.aggregate_size, dtype=np.int64)

    def add(self, reports: npt.NDArray[np.integer[Any]]) -> None:
        """Add reports as `FrequencyOracle.privatize` returns them."""
        self.add_aggregate(self.oracle.aggregate(reports), len(reports))

    def add_aggregate(self, aggregate: Tally, num_reports: int) -> None:
        """Add ``(aggregate_size,) int64`` sums of other reports."""
        self._sums += aggregate
        self.num_reports += num_reports

    def aggregate(self) -> Tally:
        """Return ``(aggregate_size,) int64``."""
        return self._sums

    def state(self) -> Arrays:
        """Return what `restore` takes."""
        return {"sums": self._sums, "num_reports": np.array(self.num_reports)}

    def restore(self, state: Arrays) -> None:
        """Go on from stored sums."""
        self._sums, self.num_reports = state["sums"].copy(), int(state["num_reports"])

    def support(self, candidates: Ints | None = None) -> Tally:
        """Return how many reports support each candidate, or each value of the domain if None."""
        return self.oracle.support(self._sums, candidates)


class SketchSums(ReportSums):
    """A sketch in narrow integers."""

    oracle: SketchOracle

    def __init__(self, oracle: SketchOracle) -> None:
        self.oracle = oracle
        self.num_reports = 0
        rows = oracle.num_hashes
        self._table: _Table = np.zeros((rows, oracle.aggregate_size // rows), dtype=_WIDTHS[0])
        self._most_by_row = np.zeros(rows, dtype=np.int64)

    def add(self, reports: npt.NDArray[np.integer[Any]]) -> None:
        # A number of a row is at most that of its reports.
        self._make_room(np.bincount(reports[:, 0], minlength=self.oracle.num_hashes))
        self.oracle.add_to_table(reports, self._table)
        self.num_reports += len(reports)

    def add_aggregate(self, aggregate: Tally, num_reports: int) -> None:
        table = aggregate.reshape(self._table.shape)
        self._make_room(np.abs(table).max(axis=1))
        self._table += table.astype(self._table.dtype)
        self.num_reports += num_reports

    def aggregate(self) -> Tally:
        return self._table.ravel().astype(np.int64)

    def state(self) -> Arrays:
        return {
            "table": self._table,
            "most_by_row": self._most_by_row,
            "num_reports": np.array(self.num_reports),
        }

    def restore(self, state: Arrays) -> None:
        self._table, self._most_by_row = state["table"].copy(), state["most_by_row"].copy()
        self.num_reports = int(state["num_reports"])

    def support(self, candidates: Ints | None = None) -> Tally:
        """Return the sum over the rows that have reports, a chunk of them at a time."""
        size = self.oracle.domain_size if candidates is None else len(candidates)
        support = np.zeros(size, dtype=np.int64)
        at_once = max(1, _CELLS_AT_ONCE // self._table.shape[1])
        used = np.flatnonzero(self._most_by_row)
        for start in range(0, len(used), at_once):
            rows = used[start : start + at_once]
            cells = self.oracle.inner.support(self._table[rows].astype(np.int64))
            support += self.oracle.row_sums(cells[None], candidates, rows)[0]
        return support

    def _make_room(self, by_row: Ints) -> None:
        """Widen the table if a row may have so large numbers more."""
        self._most_by_row += by_row
        most = int(self._most_by_row.max(initial=0))
        width = next(each for each in _WIDTHS if most <= np.iinfo(each).max)
        if np.dtype(width).itemsize > self._table.dtype.itemsize:
            self._table = self._table.astype(width)


def sums_of(oracle: FrequencyOracle) -> ReportSums:
    """Return empty sums for an oracle's reports."""
    return SketchSums(oracle) if isinstance(oracle, SketchOracle) else ReportSums(oracle)
