"""What reports add up to, in as few bytes as they need.

Apple's sketch of emoji has 65,536 x 1,024 cells: half a gigabyte of 64-bit integers, for a few
million reports that put a few dozen ones into a cell. Its sums are kept in 16 bits for as long as
no row has more reports than these can count, and are looked at some rows at a time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.kernels.sketches import sum_cells, sum_cells_of_range
from fedhh.oracles import FrequencyOracle
from fedhh.oracles.sketch import MeanSketchOracle
from fedhh.questions.question import Tally
from fedhh.system.archive import Arrays

Numbers = npt.NDArray[np.int64]
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

    def support(self, candidates: Numbers | None = None) -> Tally:
        """Return how many reports support each candidate, or each value of the domain if None."""
        return self.oracle.support(self._sums, candidates)


class SketchSums(ReportSums):
    """A mean sketch in narrow integers."""

    oracle: MeanSketchOracle

    def __init__(self, oracle: MeanSketchOracle) -> None:
        self.oracle = oracle
        self.num_reports = 0
        self._table: _Table = np.zeros((oracle.num_hashes, oracle.num_cells), dtype=_WIDTHS[0])
        self._reports_by_row = np.zeros(oracle.num_hashes, dtype=np.int64)

    def add(self, reports: npt.NDArray[np.integer[Any]]) -> None:
        self._count(np.bincount(reports[:, 0], minlength=self.oracle.num_hashes))
        self.oracle.add_to_table(reports, self._table)

    def add_aggregate(self, aggregate: Tally, num_reports: int) -> None:
        self._count(aggregate[self._table.size :])
        self._table += (
            aggregate[: self._table.size].reshape(self._table.shape).astype(self._table.dtype)
        )

    def aggregate(self) -> Tally:
        return np.concatenate([self._table.ravel(), self._reports_by_row], dtype=np.int64)

    def state(self) -> Arrays:
        return {"table": self._table, "reports_by_row": self._reports_by_row}

    def restore(self, state: Arrays) -> None:
        self._table, self._reports_by_row = state["table"].copy(), state["reports_by_row"].copy()
        self.num_reports = int(self._reports_by_row.sum())

    def support(self, candidates: Numbers | None = None) -> Tally:
        """Return the sum over the rows that have reports, a chunk of them at a time."""
        size = self.oracle.domain_size if candidates is None else len(candidates)
        support = np.zeros(size, dtype=np.int64)
        coefficients = self.oracle.hashes.coefficients
        at_once = max(1, _CELLS_AT_ONCE // self.oracle.num_cells)
        used = np.flatnonzero(self._reports_by_row)
        for start in range(0, len(used), at_once):
            rows = used[start : start + at_once]
            # How cells count does not depend on the hash functions, so a sketch of these rows
            # alone says it. What a row's reports say of a cell is a whole number.
            part = replace(self.oracle, num_hashes=len(rows))
            numbers = np.concatenate(
                [self._table[rows].ravel(), self._reports_by_row[rows]], dtype=np.int64
            )
            cells = np.asarray(part.cells(numbers)).astype(np.int64)[None]
            if candidates is None:
                support += sum_cells_of_range(coefficients[rows], cells, size)[0]
            else:
                support += sum_cells(coefficients[rows], cells, candidates)[0]
        return support

    def _count(self, by_row: Numbers) -> None:
        self._reports_by_row += by_row
        self.num_reports += int(by_row.sum())
        # A cell's sum is at most the number of its row's reports.
        most = int(self._reports_by_row.max(initial=0))
        width = next(each for each in _WIDTHS if most <= np.iinfo(each).max)
        if np.dtype(width).itemsize > self._table.dtype.itemsize:
            self._table = self._table.astype(width)


def sums_of(oracle: FrequencyOracle) -> ReportSums:
    """Return empty sums for an oracle's reports."""
    return SketchSums(oracle) if isinstance(oracle, MeanSketchOracle) else ReportSums(oracle)
