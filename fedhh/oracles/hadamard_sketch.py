"""Sketches of which each report is one noisy entry of a Hadamard matrix."""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.kernels.packed_reports import add_signs
from fedhh.kernels.sketches import hadamard_rows
from fedhh.oracles.base import Floats, Reports, ServerWork, Tally, Values
from fedhh.oracles.sketch import Sketch, TableSketch, odds
from fedhh.validation import InputError


@dataclass(frozen=True, kw_only=True)
class HadamardSketch(TableSketch):
    """What sketches share whose clients draw a row j of k and a coefficient l of m, and say a sign.

    The sign is that of the matrix of +-1, (-1)**popcount(l & cell), as a subclass reads a cell; it
    is negated with probability 1 / (1 + e**epsilon). The sketch is the sums of signs by row and
    coefficient: of each row, the Hadamard transform of what reports say of its cells.

    Attributes:
        num_cells: m, a power of two.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_cells & (self.num_cells - 1):
            raise InputError(
                f"Expected num_cells to be a power of two for a sketch of Hadamard entries, got "
                f"num_cells={self.num_cells}; use {2 ** self.num_cells.bit_length()}."
            )

    @abstractmethod
    def _signs(self, coefficients: Values, cells: Values) -> npt.NDArray[np.int64]:
        """Return what a client says before noise whose value is in a cell of its row."""

    @abstractmethod
    def _agreement(self, sketches: Sketch) -> Sketch:
        """Return ``(t, k, row_size)``: reports that agree with each cell, less the others."""

    @cached_property
    def flip_probability(self) -> float:
        """Chance that the sign is negated."""
        return 1 / (1 + odds(self.epsilon))

    @cached_property
    def p(self) -> float:
        """Chance that the sign is kept: that a report supports its client's value."""
        return 1 - self.flip_probability

    def privatize(self, values: Values, *, rng: np.random.Generator) -> Reports:
        """Return ``(n, 3) int64``: row, coefficient, and the sign, -1 or +1."""
        values = self.check_values(values)
        rows = self._draw_rows(len(values), rng)
        coefficients = rng.integers(self.num_cells, size=len(values))
        signs = self._signs(coefficients, self.hashes.cells(rows, values))
        signs[rng.random(len(values)) < self.flip_probability] *= -1
        return np.stack([rows, coefficients, signs], axis=1)

    def aggregate(self, reports: Reports) -> Sketch:
        """Return the sums of signs by row and coefficient, and the number of reports by row."""
        return self._add(reports, np.zeros(self.aggregate_size, dtype=np.int64))

    def privatize_and_aggregate(
        self, values: Values, *, rng: np.random.Generator, out: Sketch | None = None
    ) -> Sketch:
        """Return the sketch of fresh reports; a report is three numbers, so they are made."""
        out = self._sketch_of(out)
        return self._add(self.privatize(values, rng=rng), out)

    def sample_sketch(self, true_counts: Values, *, rng: np.random.Generator) -> Sketch:
        """Return a sketch drawn without reports; exact. Cost O(k m min(n, m) + k c).

        Given the rows, the clients of one cell spread uniformly over the coefficients; those that
        landed on one coefficient keep or negate its sign independently.
        """
        held = self._cell_counts(true_counts, rng)
        sketch = np.zeros(self.aggregate_size, dtype=np.int64)
        table, reports_by_row = self._split(sketch)
        reports_by_row += held.sum(axis=1)
        chances = np.full(self.num_cells, 1 / self.num_cells)
        coefficients = np.arange(self.num_cells)
        for row, cell in zip(*np.nonzero(held), strict=True):
            landed = rng.multinomial(held[row, cell], chances)
            agreeing = 2 * rng.binomial(landed, self.p) - landed
            table[row] += self._signs(coefficients, np.full(self.num_cells, cell)) * agreeing
        return sketch

    def support(self, sketch: Sketch, candidates: Values) -> Tally:
        """Return how many reports have each candidate's sign at their row and coefficient."""
        agreement = self._row_sums(self._agreement(sketch[None]), candidates)
        supporters: Tally = self._supporters(agreement, sketch[None])[0]
        return supporters

    def support_of_all(self, sketches: Sketch) -> Tally:
        """Return the support of every value in each of ``(t, aggregate_size)`` sketches."""
        agreement = self._row_sums_of_all(self._agreement(sketches))
        return self._supporters(agreement, sketches)

    def cells(self, sketch: Sketch) -> Floats:
        """Return half the reports of each row and half of each cell's agreement, in one sum."""
        _, reports_by_row = self._split(sketch)
        return np.asarray((self._agreement(sketch[None])[0] + reports_by_row[:, None]) / 2)

    def log_prob(self, reports: Reports, value: int) -> Floats:
        """Return the log-probability of each report, for these hash functions."""
        rows, coefficients, signs = reports.T
        own = self._signs(coefficients, self.hashes.cells(rows, np.full(len(rows), value)))
        kept = np.where(signs == own, math.log(self.p), math.log(self.flip_probability))
        return np.asarray(kept - math.log(self.num_hashes * self.num_cells), dtype=np.float64)

    def report_space(self) -> Reports:
        """Return all 2 k m reports."""
        self._check_report_space(self.report_bits, width=3)
        space = itertools.product(range(self.num_hashes), range(self.num_cells), (-1, 1))
        return np.array(list(space), dtype=np.int64)

    @property
    def server_work(self) -> ServerWork:
        """One cell; a candidate is a cell of each row, and its share of transforming the rows."""
        transform = self.num_hashes * self.num_cells * math.log2(max(self.num_cells, 2))
        share = transform / self.domain_size
        return ServerWork("1", 1, "k + k m log m / s", self.num_hashes + share)

    @property
    def report_bits(self) -> float:
        """One bit, log2 k for the row, and log2 m for the coefficient."""
        return 1 + math.log2(self.num_hashes) + math.log2(self.num_cells)

    def _add(self, reports: Reports, sketch: Sketch) -> Sketch:
        table, reports_by_row = self._split(sketch)
        self.add_reports(reports, table)
        reports_by_row += np.bincount(reports[:, 0], minlength=self.num_hashes)
        return sketch

    def add_reports(self, reports: Reports, table: npt.NDArray[np.signedinteger[Any]]) -> None:
        """Add reports' signs to their rows and coefficients of a ``(k, m)`` table."""
        add_signs(np.ascontiguousarray(reports, dtype=np.int64), table)

    def _transformed(self, sketches: Sketch) -> Sketch:
        """Return ``(t, k, m)``: the transform of each row."""
        tables = self._tables(sketches).copy()
        hadamard_rows(tables.reshape(-1, self.num_cells))
        return tables

    def _supporters(self, agreement: Tally, sketches: Sketch) -> Tally:
        reports = sketches[:, self.num_hashes * self.num_cells :].sum(axis=1)
        return np.asarray((agreement + reports[:, None]) // 2)


def hadamard_entries(rows: Values, columns: Values) -> npt.NDArray[np.int64]:
    """Return entries of the Hadamard matrix, (-1)**popcount(row & column)."""
    parity = rows & columns
    for shift in (32, 16, 8, 4, 2, 1):
        parity = parity ^ (parity >> shift)
    return 1 - 2 * (parity & 1)
