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

from fedhh.kernels.sketch_reports import add_signs, signs_supporting
from fedhh.kernels.sketches import hadamard_rows
from fedhh.oracles.base import Floats, Reports, Tally, Values, best_of
from fedhh.oracles.sketch import MeanSketchOracle, Sketch, TableSketch, odds
from fedhh.validation import InputError, require_at_least


@dataclass(frozen=True, kw_only=True)
class HadamardSketch(TableSketch):
    """What sketches share whose clients draw a row j of k and a coefficient l of m, and say a sign.

    The sign is that of the matrix of +-1, (-1)**popcount(l & cell), as a subclass reads a cell; it
    is negated with probability 1 / (1 + e**epsilon). The sketch is k m sums of signs by row and
    coefficient: of each row, the Hadamard transform of what reports say of its cells; and then k
    numbers of reports. Guarantees are those of `SketchOracle`.

    The noise never falls below one per report, however large epsilon is: one bit cannot say more.

    Report size: 1 + log2 k + log2 m bits. Cost: O(1) per report, O(k) per candidate, memory O(k m).

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
    def signs(self, coefficients: Values, cells: Values) -> npt.NDArray[np.int64]:
        """Return what a client says before noise whose value is in a cell of its row."""

    @abstractmethod
    def _agreement(self, sketches: Sketch) -> Sketch:
        """Return ``(t, k, row_size)``: reports that agree with each cell, less the others."""

    @cached_property
    def flip_probability(self) -> float:
        return 1 / (1 + odds(self.epsilon))

    @cached_property
    def p(self) -> float:
        return 1 - self.flip_probability

    def privatize(self, values: Values, *, rng: np.random.Generator) -> Reports:
        """Return ``(n, 3) int64``: row, coefficient, and the sign, -1 or +1."""
        rows, cells = self._draw_cells(values, rng)
        coefficients = rng.integers(self.num_cells, size=len(rows))
        signs = self.signs(coefficients, cells)
        signs[rng.random(len(rows)) < self.flip_probability] *= -1
        return np.stack([rows, coefficients, signs], axis=1)

    def _sample_sketch(self, true_counts: Values, rng: np.random.Generator) -> Sketch:
        # O(k m min(n, m) + k c). Given the rows, the clients of one cell spread uniformly over the
        # coefficients; those that landed on one coefficient keep or negate its sign independently.
        held = self._cell_counts(true_counts, rng)
        sketch = np.zeros(self.aggregate_size, dtype=np.int64)
        table, reports_by_row = self._split(sketch)
        reports_by_row += held.sum(axis=1)
        chances = np.full(self.num_cells, 1 / self.num_cells)
        coefficients = np.arange(self.num_cells)
        for row, cell in zip(*np.nonzero(held), strict=True):
            landed = rng.multinomial(held[row, cell], chances)
            agreeing = 2 * rng.binomial(landed, self.p) - landed
            table[row] += self.signs(coefficients, np.full(self.num_cells, cell)) * agreeing
        return sketch

    def _support(self, aggregates: Sketch, candidates: Values | None) -> Tally:
        # Reports that have each candidate's sign at their row and coefficient.
        agreement = self._row_sums(self._agreement(aggregates), candidates)
        reports = aggregates[:, self.num_hashes * self.num_cells :].sum(axis=1)
        return np.asarray((agreement + reports[:, None]) // 2)

    def cells(self, sketch: Sketch) -> Floats:
        """Return half the reports of each row and half of each cell's agreement, in one sum."""
        _, reports_by_row = self._split(sketch)
        return np.asarray((self._agreement(sketch[None])[0] + reports_by_row[:, None]) / 2)

    def _craft(self, values: Values, sign: int, count: int, rng: np.random.Generator) -> Reports:
        # A value's signs are its cell's row of the matrix, times its sign at coefficient 0.
        cells = np.arange(self.row_size)
        loads = self._cell_loads(values) * self.signs(np.zeros_like(cells), cells)
        scores = loads.reshape(self.num_hashes * self.num_cells, -1).sum(axis=1)
        table = np.ascontiguousarray(scores.reshape(self.num_hashes, self.num_cells))
        hadamard_rows(table)
        scores = np.stack([-table.ravel(), table.ravel()], axis=1).ravel()
        entries, signs = np.divmod(best_of(sign * scores, count, rng=rng), 2)
        rows, coefficients = np.divmod(entries, self.num_cells)
        return np.stack([rows, coefficients, 2 * signs - 1], axis=1)

    def log_prob(self, reports: Reports, value: int) -> Floats:
        rows, coefficients, signs = reports.T
        own = self.signs(coefficients, self.hashes.cells(rows, np.full(len(rows), value)))
        kept = np.where(signs == own, math.log(self.p), math.log(self.flip_probability))
        return np.asarray(kept - math.log(self.num_hashes * self.num_cells), dtype=np.float64)

    def report_space(self) -> Reports:
        self._check_report_space(self.report_bits, width=3)
        space = itertools.product(range(self.num_hashes), range(self.num_cells), (-1, 1))
        return np.array(list(space), dtype=np.int64)

    @property
    def report_bits(self) -> float:
        return 1 + math.log2(self.num_hashes) + math.log2(self.num_cells)

    def add_to_table(self, reports: Reports, table: npt.NDArray[np.signedinteger[Any]]) -> None:
        add_signs(np.ascontiguousarray(reports, dtype=np.int64), table)

    def _transformed(self, sketches: Sketch) -> Sketch:
        """Return ``(t, k, m)``: the transform of each row."""
        tables = self._tables(sketches).copy()
        hadamard_rows(tables.reshape(-1, self.num_cells))
        return tables


def hadamard_entries(rows: Values, columns: Values) -> npt.NDArray[np.int64]:
    """Return entries of the Hadamard matrix, (-1)**popcount(row & column)."""
    parity = rows & columns
    for shift in (32, 16, 8, 4, 2, 1):
        parity = parity ^ (parity >> shift)
    return 1 - 2 * (parity & 1)


@dataclass(frozen=True, kw_only=True)
class HadamardCountMeanSketch(HadamardSketch, MeanSketchOracle):
    """Hadamard Count Mean Sketch (Apple 2017, Algorithms 5 to 7).

    The client draws a row j of k and a coefficient l of m, takes the entry H[l, h_j(value)] of the
    Hadamard matrix of +-1, (-1)**popcount(l & cell), and negates it with probability
    1 / (1 + e**epsilon). It sends the sign, j and l.

    A report supports a value if its sign is H[l, h_j(value)]. p is the chance that the sign is
    kept and, over the draw of the functions, q = p/m + (1 - 1/m)/2. The paper's estimate is
    (support - n q) / (p - q).

    Guarantees, sizes and costs are those of `HadamardSketch`; `published_variance`, the paper's
    Theorem 4.4, bounds `exact_variance` from above.

    References:
        Differential Privacy Team, Apple (2017), "Learning with privacy at scale", section 4.2 and
        appendix B.
    """

    @cached_property
    def q(self) -> float:
        return 0.5 + (self.p - 0.5) / self.num_cells

    def mean_sketch(self, sketch: Sketch) -> Floats:
        scale = 1 / (self.p - self.flip_probability)
        return np.asarray(self.num_hashes * scale * self._transformed(sketch[None])[0])

    @property
    def _published_noise(self) -> float:
        return 1 / (self.p - self.flip_probability) ** 2

    def signs(self, coefficients: Values, cells: Values) -> npt.NDArray[np.int64]:
        return hadamard_entries(coefficients, cells)

    def _supporters_among(self, reports: Reports, candidates: Values) -> Tally:
        coefficients = self.hashes.coefficients
        return np.asarray(signs_supporting(coefficients, self.num_cells, reports, candidates))

    def _agreement(self, sketches: Sketch) -> Sketch:
        return self._transformed(sketches)


@dataclass(frozen=True, kw_only=True)
class Hashtogram(HadamardSketch):
    """Hashtogram (Bassily, Nissim, Stemmer, Thakurta 2017), with the mean over rows.

    Each of k rows has a public location hash into m cells and a public sign hash. The client draws
    a row j and a coefficient l of m, takes s_j(value) H[l, h_j(value)], where H is the Hadamard
    matrix of +-1, (-1)**popcount(l & cell), negates it with probability 1 / (1 + e**epsilon), and
    sends the sign, j and l. Location and sign of a row are one three-wise independent function
    into 2 m cells, read as (cell // 2, (-1)**cell).

    A report supports a value if its sign is what the value's client would have said. p is the
    chance that the sign is kept; q is 1/2 over the draw of the functions, since values that share
    a location share a sign with probability 1/2. So the estimate (support - n q) / (p - q) is the
    count-sketch's mean over rows.

    The paper takes the median over rows, which its proof needs. The mean has a known distribution,
    and less
    error where the sketch is large: for normal noise, the median's variance is pi / 2 times as
    much. Measured on 100,000 clients, Zipf(1.1) over 5,000 values, epsilon 2, root mean square
    errors of the 100 most frequent values' counts over six draws: 421 by the mean and 515 by the
    median for 64 rows of 4,096 cells, 408 and 499 for 16 of 16,384. In a sketch as small as 8 rows
    of 256, collisions with the most frequent value outweigh the noise, and the median is ahead,
    514 against 619; `row_estimates` has the numbers to take it of.

    Guarantees, sizes and costs are those of `HadamardSketch`, with signed cells for cells.

    References:
        Bassily, Nissim, Stemmer, Thakurta (2017), "Practical locally private heavy hitters",
        NeurIPS (arXiv:1707.04982), section 4 and its algorithm Hashtogram; numbering not verified.
    """

    num_hashes: int = 64
    num_cells: int = 4096

    def __post_init__(self) -> None:
        require_at_least(1, num_cells=self.num_cells)
        super().__post_init__()

    @property
    def row_size(self) -> int:
        """2 m: a hash function maps to a cell and a sign."""
        return 2 * self.num_cells

    @property
    def q(self) -> float:
        return 0.5

    def row_estimates(self, sketch: Sketch, candidates: Values) -> Floats:
        """Return ``(k, c) float64``: each row's own estimate of each candidate's count.

        Their mean is `estimate`, their median the paper's.
        """
        candidates = self._check_values(candidates, "candidates")
        cells = self._agreement(sketch[None])[0]
        scale = self.num_hashes / (self.p - self.flip_probability)
        rows = np.arange(self.num_hashes)
        own = np.stack([self.hashes.cells(np.full(len(candidates), j), candidates) for j in rows])
        return np.asarray(scale * np.take_along_axis(cells, own, axis=1), dtype=np.float64)

    def collision_variance(self, count: npt.ArrayLike) -> Floats:
        """Return ``c (c - 1) / (k m)``: pairs that share a row, and their location with others.

        See `exact_variance`: two clients who hold one other value agree on a third value's sign
        together if they share the row and the location, and are independent otherwise.
        """
        count = np.asarray(count, dtype=np.float64)
        pairs = count * np.maximum(count - 1, 0)
        return np.asarray(pairs / (self.num_hashes * self.num_cells), dtype=np.float64)

    def signs(self, coefficients: Values, cells: Values) -> npt.NDArray[np.int64]:
        return hadamard_entries(coefficients, cells // 2) * (1 - 2 * (cells & 1))

    def _agreement(self, sketches: Sketch) -> Sketch:
        tables = self._transformed(sketches)
        signed = np.stack([tables, -tables], axis=-1)
        return signed.reshape(len(sketches), self.num_hashes, self.row_size)
