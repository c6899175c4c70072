"""Count Mean Sketch: a report is a noisy indicator of the hashed value, in one of k rows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.kernels.lanes import lane_states
from fedhh.kernels.packed_reports import add_vectors, noisy_vectors, vectors_supporting
from fedhh.kernels.sketch_noise import add_noise
from fedhh.kernels.sketches import add_noisy_rows
from fedhh.kernels.subset_tally import count_into
from fedhh.oracles.base import Floats, Reports, Tally, Values
from fedhh.oracles.sampling import SampledAggregates
from fedhh.oracles.sketch import MeanSketchOracle, Sketch, odds
from fedhh.random import kernel_state

_BITS = 64
_ONES_OF_BYTES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1)

# Nanoseconds on one core: an entry of a report, where the sketch fits the second cache or does not;
# counting a report's own cell; a cell and a row of the sketch.
_COIN_NS = 0.15
_FAR_COIN_NS = 0.3
_NEAR_SKETCH = 2**17
_COUNT_NS = 15.0
_CELL_NS = 5.0
_ROW_NS = 3000.0


@dataclass(frozen=True, kw_only=True)
class CountMeanSketch(SampledAggregates, MeanSketchOracle):
    """Count Mean Sketch (Apple 2017, Algorithms 1 to 4).

    The client draws a row j of k, sets a vector in {-1, +1}^m to +1 at the cell h_j(value) and to
    -1 elsewhere, and flips each entry with probability 1 / (1 + e**(epsilon/2)), independently. It
    sends the vector and j.

    A report supports a value if its vector is +1 at the value's cell of row j. With h the chance
    that an entry is kept, p = h and, over the draw of the functions, q = h/m + (1 - 1/m)(1 - h).
    The paper's estimate, m/(m-1) ((1/k) sum_j M[j, h_j(d)] - n/m), is (support - n q) / (p - q).

    Formal guarantees:
        * epsilon-local differential privacy, for any hash functions; the factor e**epsilon is
          reached wherever two values have different cells.
        * Estimates are unbiased over the draw of the functions, not for fixed ones.
        * `exact_variance` is the variance over draw and coins; `published_variance`, the paper's
          Theorem 4.2, bounds it from above.
        * `sample_aggregate` is exact: given the rows, the counts of +1 are sums of independent
          coins, cell by cell.

    Report size: m + log2 k bits. Cost: O(m) per report, O(k) per candidate, memory O(k m).

    A sketch is k m counts of +1, row by row, and then k numbers of reports. `mean_sketch` turns it
    into the paper's matrix M.

    Attributes:
        num_cells: m.

    References:
        Differential Privacy Team, Apple (2017), "Learning with privacy at scale", section 4.1 and
        appendix A.
    """

    @cached_property
    def flip_probability(self) -> float:
        """Chance that an entry is flipped."""
        return 1 / (1 + odds(self.epsilon / 2))

    @cached_property
    def p(self) -> float:
        """Chance that an entry is kept: that a report supports its client's value."""
        return 1 - self.flip_probability

    @cached_property
    def q(self) -> float:
        """Chance that a report supports another value, over the draw of the hash functions."""
        return self.flip_probability + (self.p - self.flip_probability) / self.num_cells

    @property
    def _flip(self) -> np.uint64:
        return np.uint64(round(self.flip_probability * 2.0**64))

    def privatize(self, values: Values, *, rng: np.random.Generator) -> Reports:
        """Return ``(n, 1 + ceil(m / 64)) int64``: the row, and the entries that are +1 as bits.

        Bit i of the bits, counted from the lowest of the first word, is entry i.
        """
        values = self._check_values(values)
        rows = self._draw_rows(len(values), rng)
        cells = self.hashes.cells(rows, values)
        bits = noisy_vectors(cells, self.num_cells, self._flip, kernel_state(rng))
        return np.concatenate([rows[:, None], bits.view(np.int64)], axis=1)

    def add_to_table(self, reports: Reports, table: npt.NDArray[np.signedinteger[Any]]) -> None:
        """Add reports' ones to their rows of a ``(k, m)`` table."""
        add_vectors(np.ascontiguousarray(reports, dtype=np.int64), table)

    def noise_free_counts(
        self, values: Values, *, rng: np.random.Generator, out: Sketch | None = None
    ) -> Sketch:
        """Return how many clients' row and cell each is, and how many have each row; O(n)."""
        values = self._check_values(values)
        out = self._sums(out)
        rows = self._draw_rows(len(values), rng)
        cells = self.hashes.cells(rows, values)
        cells += rows * self.num_cells
        count_into(cells, out)
        _, reports_by_row = self._split(out)
        reports_by_row += np.bincount(rows, minlength=self.num_hashes)
        return out

    def sample_aggregate(self, counts: Sketch, *, rng: np.random.Generator) -> Sketch:
        """Return the sketch of reports, drawn with the exact distribution; O(k m).

        Given the rows, entries are flipped independently: a cell that is the own one of c of its
        row's n reports has Bin(c, p) + Bin(n - c, 1 - p) ones, whatever the other cells have.
        """
        sketch = counts.copy()
        held, reports_by_row = self._split(counts)
        table, _ = self._split(sketch)
        add_noise(held, reports_by_row, self.flip_probability, table, kernel_state(rng))
        return sketch

    def _supporters_among(self, reports: Reports, candidates: Values) -> Tally:
        supporters: Tally = vectors_supporting(
            self.hashes.coefficients, self.num_cells, reports, candidates
        )
        return supporters

    def cells(self, sketch: Sketch) -> Tally:
        """Return the counts of +1, ``(k, m) int64``."""
        cells: Tally = self._tables(sketch[None])[0]
        return cells

    def mean_sketch(self, sketch: Sketch) -> Floats:
        """Return the paper's matrix M, ``(k, m) float64``: Algorithm 3, from the integer sums."""
        table, reports_by_row = self._split(sketch)
        scale = 1 / (self.p - self.flip_probability)
        signs = 2 * table - reports_by_row[:, None]
        return np.asarray(self.num_hashes * (scale * signs + reports_by_row[:, None]) / 2)

    def published_variance(self, true_counts: Values) -> Floats:
        """Return the paper's Theorem 4.2 for every value of a histogram, an upper bound."""
        privacy = self.p * self.flip_probability / (self.p - self.flip_probability) ** 2
        return self._published_variance(true_counts, privacy + 1 / self.num_cells)

    def log_prob(self, reports: Reports, value: int) -> Floats:
        """Return the log-probability of each report, for these hash functions."""
        rows = reports[:, 0]
        cells = self.hashes.cells(rows, np.full(len(rows), value, dtype=np.int64))
        words = np.take_along_axis(reports, 1 + cells[:, None] // _BITS, axis=1)[:, 0]
        is_one = words >> (cells % _BITS) & 1
        # A true vector is 1 in the value's cell alone.
        flips = self._num_ones(reports) + 1 - 2 * is_one
        kept = (self.num_cells - flips) * math.log(self.p)
        flipped = flips * math.log(self.flip_probability)
        return np.asarray(kept + flipped - math.log(self.num_hashes), dtype=np.float64)

    def report_space(self) -> Reports:
        """Return all k 2**m reports."""
        self._check_report_space(self.report_bits, width=self.num_cells)
        vectors = np.array(list(itertools.product([False, True], repeat=self.num_cells)))
        rows = np.repeat(np.arange(self.num_hashes, dtype=np.int64), len(vectors))
        return self._pack(rows, np.tile(vectors, (self.num_hashes, 1)))

    @property
    def report_bits(self) -> float:
        """One bit per cell, and log2 k for the row."""
        return self.num_cells + math.log2(self.num_hashes)

    def _add_reports(self, reports: Reports, out: Sketch) -> None:
        table, reports_by_row = self._split(out)
        self.add_to_table(reports, table)
        reports_by_row += np.bincount(reports[:, 0], minlength=self.num_hashes)

    def _add_values(self, values: Values, out: Sketch, *, rng: np.random.Generator) -> None:
        # No report is stored.
        values = self._check_values(values)
        table, reports_by_row = self._split(out)
        rows = self._draw_rows(len(values), rng)
        cells = self.hashes.cells(rows, values)
        add_noisy_rows(rows, cells, self._flip, table, lane_states(rng))
        reports_by_row += np.bincount(rows, minlength=self.num_hashes)

    def _support(self, aggregates: Sketch, candidates: Values | None) -> Tally:
        return self._row_sums(self._tables(aggregates), candidates)

    def _sample_sketch(self, true_counts: Values, rng: np.random.Generator) -> Sketch:
        # O(k (m + c)).
        held = self._cell_counts(true_counts, rng)
        return self.sample_aggregate(np.concatenate([held.ravel(), held.sum(axis=1)]), rng=rng)

    def _nanoseconds_saved(self, num_reports: int) -> float:
        # By k, m and the number of reports.
        coin_ns = _COIN_NS if self.aggregate_size <= _NEAR_SKETCH else _FAR_COIN_NS
        per_report = self.num_cells * coin_ns - _COUNT_NS
        return num_reports * per_report - self.num_hashes * (self.num_cells * _CELL_NS + _ROW_NS)

    def _num_ones(self, reports: Reports) -> Values:
        """Return ``(n,) int64``: how many cells of each report are 1."""
        packed = np.ascontiguousarray(reports[:, 1:]).view(np.uint8)
        return np.asarray(_ONES_OF_BYTES[packed].sum(axis=1, dtype=np.int64))

    def _pack(self, rows: Values, vectors: npt.NDArray[np.bool_]) -> Reports:
        words = -(-self.num_cells // _BITS)
        padded = np.zeros((len(rows), words * _BITS), dtype=np.bool_)
        padded[:, : self.num_cells] = vectors
        packed = np.packbits(padded, axis=1, bitorder="little").view("<i8")
        return np.concatenate([rows[:, None], packed], axis=1, dtype=np.int64)

    def _unpack(self, reports: Reports) -> npt.NDArray[np.bool_]:
        packed = np.ascontiguousarray(reports[:, 1:]).astype("<i8").view(np.uint8)
        bits = np.unpackbits(packed, axis=1, bitorder="little", count=self.num_cells)
        return bits.astype(np.bool_)


def deviation_surface(
    true_counts: Values,
    value: int,
    *,
    epsilon: float,
    num_hashes: Sequence[int],
    num_cells: Sequence[int],
) -> Floats:
    """Return the standard deviation of a count's estimate for many sketch sizes.

    This is Apple (2017), figure 4b: the square root of Theorem 4.2 over server work (k) and report
    size (m). The published theorem is an upper bound, up to 3 percent above the exact deviation in
    the figure's range; no size goes below `deviation_floor`.

    Args:
        true_counts: ``(c,) int64``: how many clients hold each value.
        value: The value whose estimate is meant.
        epsilon: Privacy of one report.
        num_hashes: The k of each column.
        num_cells: The m of each row.

    Returns:
        ``(len(num_cells), len(num_hashes)) float64``.
    """
    surface = np.empty((len(num_cells), len(num_hashes)))
    for i, m in enumerate(num_cells):
        for j, k in enumerate(num_hashes):
            oracle = CountMeanSketch(
                epsilon=epsilon, domain_size=len(true_counts), num_hashes=k, num_cells=m
            )
            surface[i, j] = math.sqrt(oracle.published_variance(true_counts)[value])
    return surface


def deviation_floor(*, epsilon: float, num_reports: int) -> float:
    """Return the limit of `deviation_surface` for many hash functions and many cells."""
    growth = odds(epsilon / 2)
    return math.sqrt(num_reports * growth) / (growth - 1)
