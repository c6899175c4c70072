"""Hadamard Count Mean Sketch: a report is one noisy bit of the hashed value's Hadamard row."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.kernels.packed_reports import add_signs, signs_supporting
from fedhh.kernels.sketches import hadamard_rows
from fedhh.oracles.base import Floats, Reports, ServerWork, Tally, Values
from fedhh.oracles.sketch import MeanSketchOracle, Sketch
from fedhh.validation import InputError


@dataclass(frozen=True, kw_only=True)
class HadamardCountMeanSketch(MeanSketchOracle):
    """Hadamard Count Mean Sketch (Apple 2017, Algorithms 5 to 7).

    The client draws a row j of k and a coefficient l of m, takes the entry H[l, h_j(value)] of the
    Hadamard matrix of +-1, (-1)**popcount(l & cell), and negates it with probability
    1 / (1 + e**epsilon). It sends the sign, j and l.

    A report supports a value if its sign is H[l, h_j(value)]. p is the chance that the sign is
    kept and, over the draw of the functions, q = p/m + (1 - 1/m)/2. The paper's estimate is
    (support - n q) / (p - q).

    Formal guarantees:
        * epsilon-local differential privacy, for any hash functions; the factor e**epsilon is
          reached wherever two values have different cells.
        * Estimates are unbiased over the draw of the functions, not for fixed ones.
        * `exact_variance` is the variance over draw and coins; `published_variance`, the paper's
          Theorem 4.4, bounds it from above.
        * `sample_sketch` has the law of the sketch of fresh reports.

    The noise never falls below one per report, however large epsilon is: one bit cannot say more.

    Report size: 1 + log2 k + log2 m bits. Cost: O(1) per report, O(k) per candidate, memory O(k m).

    A sketch is k m sums of signs by row and coefficient, and then k numbers of reports.

    Attributes:
        num_cells: m, a power of two.

    References:
        Differential Privacy Team, Apple (2017), "Learning with privacy at scale", section 4.2 and
        appendix B.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_cells & (self.num_cells - 1):
            raise InputError(
                f"Expected num_cells to be a power of two for hcms, got "
                f"num_cells={self.num_cells}; use {2 ** self.num_cells.bit_length()}."
            )

    @cached_property
    def flip_probability(self) -> float:
        """Chance that the sign is negated."""
        return 1 / (1 + math.exp(self.epsilon))

    @cached_property
    def p(self) -> float:
        """Chance that the sign is kept: that a report supports its client's value."""
        return 1 - self.flip_probability

    @cached_property
    def q(self) -> float:
        """Chance that a report supports another value, over the draw of the hash functions."""
        return 0.5 + (self.p - 0.5) / self.num_cells

    def privatize(self, values: Values, *, rng: np.random.Generator) -> Reports:
        """Return ``(n, 3) int64``: row, coefficient, and the sign, -1 or +1."""
        values = self.check_values(values)
        rows = self._draw_rows(len(values), rng)
        coefficients = rng.integers(self.num_cells, size=len(values))
        signs = hadamard_entries(coefficients, self.hashes.cells(rows, values))
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
            signs = 2 * rng.binomial(landed, self.p) - landed
            table[row] += hadamard_entries(coefficients, np.full(self.num_cells, cell)) * signs
        return sketch

    def support(self, sketch: Sketch, candidates: Values) -> Tally:
        """Return how many reports have each candidate's sign at their row and coefficient."""
        agreement = self._row_sums(self._transformed(sketch[None]), candidates)
        supporters: Tally = self._supporters(agreement, sketch[None])[0]
        return supporters

    def cells(self, sketch: Sketch) -> Floats:
        """Return half the reports of each row, and half of each cell's agreement, ``(k, m)``."""
        _, reports_by_row = self._split(sketch)
        return np.asarray((self._transformed(sketch[None])[0] + reports_by_row[:, None]) / 2)

    def support_of_all(self, sketches: Sketch) -> Tally:
        """Return the support of every value in each of ``(t, aggregate_size)`` sketches."""
        agreement = self._row_sums_of_all(self._transformed(sketches))
        return self._supporters(agreement, sketches)

    def mean_sketch(self, sketch: Sketch) -> Floats:
        """Return the paper's matrix M, ``(k, m) float64``: Algorithm 7, from the integer sums."""
        scale = 1 / (self.p - self.flip_probability)
        return np.asarray(self.num_hashes * scale * self._transformed(sketch[None])[0])

    def published_variance(self, true_counts: Values) -> Floats:
        """Return the paper's Theorem 4.4 for every value of a histogram, an upper bound."""
        return self._published_variance(true_counts, 1 / (self.p - self.flip_probability) ** 2)

    def log_prob(self, reports: Reports, value: int) -> Floats:
        """Return the log-probability of each report, for these hash functions."""
        rows, coefficients, signs = reports.T
        entries = hadamard_entries(coefficients, self.hashes.cells(rows, np.full(len(rows), value)))
        kept = np.where(signs == entries, math.log(self.p), math.log(self.flip_probability))
        return np.asarray(kept - math.log(self.num_hashes * self.num_cells), dtype=np.float64)

    def report_space(self) -> Reports:
        """Return all 2 k m reports."""
        space = itertools.product(range(self.num_hashes), range(self.num_cells), (-1, 1))
        return np.array(list(space), dtype=np.int64)

    @property
    def server_work(self) -> ServerWork:
        """One cell; a candidate is a cell of each row, and its share of transforming the rows."""
        transform = self.num_hashes * self.num_cells * math.log2(self.num_cells)
        share = transform / self.domain_size
        return ServerWork("1", 1, "k + k m log m / s", self.num_hashes + share)

    @property
    def report_bits(self) -> float:
        """One bit, log2 k for the row, and log2 m for the coefficient."""
        return 1 + math.log2(self.num_hashes) + math.log2(self.num_cells)

    def _add(self, reports: Reports, sketch: Sketch) -> Sketch:
        rows = reports[:, 0]
        table, reports_by_row = self._split(sketch)
        self.add_reports(reports, table)
        reports_by_row += np.bincount(rows, minlength=self.num_hashes)
        return sketch

    def add_reports(self, reports: Reports, table: npt.NDArray[np.signedinteger[Any]]) -> None:
        """Add reports' signs to their rows and coefficients of a ``(k, m)`` table."""
        add_signs(np.ascontiguousarray(reports, dtype=np.int64), table)

    def _supporters_among(self, reports: Reports, candidates: Values) -> Tally:
        supporters: Tally = signs_supporting(
            self.hashes.coefficients, self.num_cells, reports, candidates
        )
        return supporters

    def _transformed(self, sketches: Sketch) -> Sketch:
        """Return ``(t, k, m)``: reports that agree with each cell, less those that do not."""
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
