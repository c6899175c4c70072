"""Count Mean Sketch: a report is a noisy indicator of the hashed value, in one of k rows."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.kernels.prng import lane_states
from fedhh.kernels.sketch_reports import (
    add_noise,
    add_noisy_rows,
    add_vectors,
    noisy_vectors,
    vectors_supporting,
)
from fedhh.kernels.subset_tally import count_into
from fedhh.oracles.attack import bits_with
from fedhh.oracles.base import Floats, Reports, Tally, Values
from fedhh.oracles.sampling import SampledAggregates
from fedhh.oracles.sketch import MeanSketchOracle, Sketch, odds
from fedhh.random import kernel_state

_BITS = 64


@dataclass(frozen=True, kw_only=True)
class CountMeanSketch(SampledAggregates, MeanSketchOracle):
    """Count Mean Sketch (Apple 2017, Algorithms 1 to 4).

    The client draws a row j of k, sets a vector in {-1, +1}^m to +1 at the cell h_j(value) and to
    -1 elsewhere, and flips each entry with probability 1 / (1 + e**(epsilon/2)), independently. It
    sends the vector and j.

    A report supports a value if its vector is +1 at the value's cell of row j. With h the chance
    that an entry is kept, p = h and, over the draw of the functions, q = h/m + (1 - 1/m)(1 - h).
    The paper's estimate, m/(m-1) ((1/k) sum_j M[j, h_j(d)] - n/m), is (support - n q) / (p - q).

    Guarantees are those of `SketchOracle`; `published_variance`, the paper's Theorem 4.2, bounds
    `exact_variance` from above. `sample_aggregate` is exact: given the rows, the counts of +1 are
    sums of independent coins, cell by cell.

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
        return 1 / (1 + odds(self.epsilon / 2))

    @cached_property
    def p(self) -> float:
        return 1 - self.flip_probability

    @cached_property
    def q(self) -> float:
        return self.flip_probability + (self.p - self.flip_probability) / self.num_cells

    @property
    def _flip(self) -> np.uint64:
        return np.uint64(round(self.flip_probability * 2.0**64))

    def privatize(self, values: Values, *, rng: np.random.Generator) -> Reports:
        """Return ``(n, 1 + ceil(m / 64)) int64``: the row, and the entries that are +1 as bits.

        Bit i of the bits, counted from the lowest of the first word, is entry i.
        """
        rows, cells = self._draw_cells(values, rng)
        bits = noisy_vectors(cells, self.num_cells, self._flip, kernel_state(rng))
        return np.concatenate([rows[:, None], bits.view(np.int64)], axis=1)

    def add_to_table(self, reports: Reports, table: npt.NDArray[np.signedinteger[Any]]) -> None:
        add_vectors(np.ascontiguousarray(reports, dtype=np.int64), table)

    def noise_free_counts(
        self, values: Values, *, rng: np.random.Generator, out: Sketch | None = None
    ) -> Sketch:
        """Return how many clients' row and cell each is, and how many have each row; O(n)."""
        out = self._sums(out)
        rows, cells = self._draw_cells(values, rng)
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
        coefficients = self.hashes.coefficients
        return np.asarray(vectors_supporting(coefficients, self.num_cells, reports, candidates))

    def mean_sketch(self, sketch: Sketch) -> Floats:
        table, reports_by_row = self._split(sketch)
        scale = 1 / (self.p - self.flip_probability)
        signs = 2 * table - reports_by_row[:, None]
        return np.asarray(self.num_hashes * (scale * signs + reports_by_row[:, None]) / 2)

    @property
    def _published_noise(self) -> float:
        privacy = self.p * self.flip_probability / (self.p - self.flip_probability) ** 2
        return privacy + 1 / self.num_cells

    def _craft(self, values: Values, sign: int, count: int, rng: np.random.Generator) -> Reports:
        # Every row has room for all of the values.
        rows = np.sort(rng.integers(self.num_hashes, size=count))
        ones = int(self.p + (self.num_cells - 1) * self.flip_probability)
        vectors = rng.integers(2, size=(count, self.num_cells), dtype=np.uint8)
        for row in np.unique(rows) if sign else ():
            own = rows == row
            cells = np.unique(self.hashes.cells(np.full(len(values), row), values))
            vectors[own] = bits_with(
                self.num_cells, cells, bit=int(sign > 0), ones=ones, count=int(own.sum()), rng=rng
            )
        return self.pack(rows, vectors.astype(np.bool_))

    def log_prob(self, reports: Reports, value: int) -> Floats:
        rows = reports[:, 0]
        cells = self.hashes.cells(rows, np.full(len(rows), value, dtype=np.int64))
        vectors = self._unpack(reports)
        # A true vector is 1 in the value's cell alone.
        flips = vectors.sum(axis=1) + 1 - 2 * vectors[np.arange(len(rows)), cells]
        kept = (self.num_cells - flips) * math.log(self.p)
        flipped = flips * math.log(self.flip_probability)
        return np.asarray(kept + flipped - math.log(self.num_hashes), dtype=np.float64)

    def log_probs(self, reports: Reports, values: Values) -> Floats:
        # Under two values, a report's probabilities differ in the bits of their own cells alone.
        rows = np.repeat(reports[:, 0], len(values))
        keys = np.tile(np.asarray(values, dtype=np.int64), len(reports))
        cells = self.hashes.cells(rows, keys).reshape(len(reports), -1).astype(np.int64)
        words = np.take_along_axis(reports[:, 1:].astype(np.int64), cells // _BITS, axis=1)
        bits = (words >> (cells % _BITS)) & 1
        gain = math.log(self.p) - math.log(self.flip_probability)
        of_first = self.log_prob(reports, int(values[0]))
        return np.asarray(of_first[:, None] + 2 * gain * (bits - bits[:, :1]), dtype=np.float64)

    def report_space(self) -> Reports:
        self._check_report_space(self.report_bits, width=self.num_cells)
        vectors = np.array(list(itertools.product([False, True], repeat=self.num_cells)))
        rows = np.repeat(np.arange(self.num_hashes, dtype=np.int64), len(vectors))
        return self.pack(rows, np.tile(vectors, (self.num_hashes, 1)))

    @property
    def report_bits(self) -> float:
        return self.num_cells + math.log2(self.num_hashes)

    def _add_values(self, values: Values, out: Sketch, *, rng: np.random.Generator) -> None:
        # No report is stored.
        table, reports_by_row = self._split(out)
        rows, cells = self._draw_cells(values, rng)
        add_noisy_rows(rows, cells, self._flip, table, lane_states(rng))
        reports_by_row += np.bincount(rows, minlength=self.num_hashes)

    def _sample_sketch(self, true_counts: Values, rng: np.random.Generator) -> Sketch:
        # O(k (m + c)).
        held = self._cell_counts(true_counts, rng)
        return self.sample_aggregate(np.concatenate([held.ravel(), held.sum(axis=1)]), rng=rng)

    @property
    def report_draws(self) -> int:
        return self.num_cells

    def pack(self, rows: Values, vectors: npt.NDArray[np.bool_]) -> Reports:
        """Return reports of ``(n,)`` rows and ``(n, m)`` entries that are +1."""
        words = -(-self.num_cells // _BITS)
        padded = np.zeros((len(rows), words * _BITS), dtype=np.bool_)
        padded[:, : self.num_cells] = vectors
        packed = np.packbits(padded, axis=1, bitorder="little").view("<i8")
        return np.concatenate([rows[:, None], packed], axis=1, dtype=np.int64)

    def _unpack(self, reports: Reports) -> npt.NDArray[np.int64]:
        packed = np.ascontiguousarray(reports[:, 1:]).astype("<i8").view(np.uint8)
        bits = np.unpackbits(packed, axis=1, bitorder="little", count=self.num_cells)
        return bits.astype(np.int64)
