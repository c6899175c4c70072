"""Sketching oracles: hashing by k functions that reports share, so that these add up in k rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from annotated_types import Ge, Le

from fedhh.kernels.reports import add_vectors, noisy_vectors
from fedhh.kernels.subset_tally import count_into
from fedhh.oracles.base import Reports, Values
from fedhh.oracles.bits import SymmetricUnaryEncoding
from fedhh.oracles.families import SampledAggregates
from fedhh.oracles.hashed import Sketch, SketchOracle, Table
from fedhh.oracles.values import GeneralizedRandomizedResponse
from fedhh.random import kernel_state
from fedhh.validation import SMALLEST_EPSILON

_LARGEST_EPSILON = 20.0
"""Of Fast Local Hashing, whose table has about e**epsilon cells in a row."""


@dataclass(frozen=True, kw_only=True)
class CellCounts(SampledAggregates, SketchOracle):
    """A sketch whose sums are counts of cells, so that clients' cells are its noise-free counts."""

    @property
    def report_draws(self) -> int:
        return 1

    def add_to_table(self, reports: Reports, table: Table) -> None:
        np.add.at(
            table.reshape(-1), reports[:, 0] * self.row_size + reports[:, 1], table.dtype.type(1)
        )

    def noise_free_counts(
        self, values: Values, *, rng: np.random.Generator, out: Sketch | None = None
    ) -> Sketch:
        """Return how many clients' row and cell each is; O(n)."""
        out = self._sums(out)
        rows, cells = self._draw_cells(values, rng)
        count_into(cells + rows.ravel() * self.row_size, out)
        return out

    def sample_aggregate(self, counts: Sketch, *, rng: np.random.Generator) -> Sketch:
        """Return the sketch of reports, drawn with the exact distribution; O(k m)."""
        return self._noisy(counts.reshape(self.num_hashes, -1), rng).ravel()


@dataclass(frozen=True, kw_only=True)
class CountMeanSketch(CellCounts):
    """Count Mean Sketch (Apple 2017, Algorithms 1 to 4).

    The client draws a row j of k, sets a vector in {-1, +1}^m to +1 at the cell h_j(value) and to
    -1 elsewhere, and flips each entry with probability 1 / (1 + e**(epsilon/2)), independently:
    symmetric unary encoding of the cell. It sends the vector and j.

    A report supports a value if its vector is +1 at the value's cell of row j. With h the chance
    that an entry is kept, p = h and, over the draw of the functions, q = h/m + (1 - 1/m)(1 - h).
    The paper's estimate, m/(m-1) ((1/k) sum_j M[j, h_j(d)] - n/m), is (support - n q) / (p - q);
    its Theorem 4.2 bounds `exact_variance` from above.

    Report size: m + log2 k bits. Cost: O(m) per report. Guarantees are those of `Hashed`.

    A report is ``(1 + ceil(m / 64),) int64``: the row, and the entries that are +1 as bits; bit i,
    counted from the lowest of the first word, is entry i. A sketch is k m counts of +1, row by row.

    Attributes:
        num_cells: m.

    References:
        Differential Privacy Team, Apple (2017), "Learning with privacy at scale", section 4.1 and
        appendix A.
    """

    num_cells: Annotated[int, Ge(2)] = 1024

    @cached_property
    def inner(self) -> SymmetricUnaryEncoding:
        return SymmetricUnaryEncoding(epsilon=self.epsilon, domain_size=self.num_cells)

    @property
    def report_draws(self) -> int:
        return self.num_cells

    def _encode(self, sent: Reports) -> Reports:
        words = -(-self.num_cells // 64)
        padded = np.zeros((len(sent), words * 64), dtype=np.uint8)
        padded[:, : self.num_cells] = sent
        return np.packbits(padded, axis=1, bitorder="little").view("<i8").astype(np.int64)

    def _decode(self, sent: Reports) -> Reports:
        packed = np.ascontiguousarray(sent).astype("<i8").view(np.uint8)
        return np.unpackbits(packed, axis=1, bitorder="little", count=self.num_cells)

    def privatize(self, values: Values, *, rng: np.random.Generator) -> Reports:
        # 64 coins at once.
        rows, cells = self._draw_cells(values, rng)
        flip = np.uint64(round(self.inner.q * 2.0**64))
        bits = noisy_vectors(cells, self.num_cells, flip, kernel_state(rng))
        return np.concatenate([rows, bits.view(np.int64)], axis=1)

    def add_to_table(self, reports: Reports, table: Table) -> None:
        add_vectors(reports, table)

    def _craft(self, values: Values, sign: int, count: int, rng: np.random.Generator) -> Reports:
        # Every row has room for all of the values.
        rows = np.sort(rng.integers(self.num_hashes, size=count))
        vectors = np.empty((count, self.num_cells), dtype=np.uint8)
        for row in np.unique(rows):
            own = rows == row
            cells = self.hashes.cells(np.full(len(values), row), values)
            vectors[own] = self.inner.craft(cells, sign=sign, count=int(own.sum()), rng=rng)
        return np.concatenate([rows[:, None], self._encode(vectors)], axis=1)


@dataclass(frozen=True, kw_only=True)
class FastLocalHashing(CellCounts):
    """Fast Local Hashing (Cormode, Maddock, Maple 2021, section 3.4).

    Optimal Local Hashing (Wang et al. 2017) lets every client draw a hash function of its own into
    m = round(e**epsilon) + 1 cells, and randomizes the value's cell by generalized randomized
    response: the cell itself with probability p = e**epsilon / (e**epsilon + m - 1), otherwise one
    of the others. Here the function is one of k public ones, so that reports add up in a table of
    k m counts and a candidate costs O(k), whatever the number of reports.

    A report supports all values that its function sends to the cell sent; q = 1/m over the draw of
    the functions. The variance is that of optimal local hashing, and a share of about
    (number of reports) (sum of squared frequencies) / (4 k) on top (`exact_variance`): k is to be
    large against the number of reports of a typical frequent value. k to infinity is optimal local
    hashing.

    Report size: log2 k + log2 m bits. Cost: O(1) per report. Guarantees are those of `Hashed`. A
    report is ``(2,) int64``: row and cell.

    References:
        Cormode, Maddock, Maple (2021), "Frequency estimation under local differential privacy",
        PVLDB 14(11).
        Wang, Blocki, Li, Jha (2017), "Locally differentially private protocols for frequency
        estimation", USENIX Security, section 4.4.
    """

    # Above, the number of cells would not fit any memory, and its exponential no float.
    epsilon: Annotated[float, Ge(SMALLEST_EPSILON), Le(_LARGEST_EPSILON)]

    @cached_property
    def inner(self) -> GeneralizedRandomizedResponse:
        num_cells = round(math.exp(self.epsilon)) + 1
        return GeneralizedRandomizedResponse(epsilon=self.epsilon, domain_size=num_cells)


@dataclass(frozen=True, kw_only=True)
class BassilySmith(CellCounts):
    """The frequency oracle of Bassily and Smith (2015, Algorithm 4), on one random projection.

    The public matrix has a sign, -1 or +1, for each of s values and each of k coordinates. The
    client draws a coordinate and sends it with its value's sign there, negated with probability
    1 / (e**epsilon + 1). Here coordinates are rows, signs are the two cells of a row, and a
    report supports the values that have the sign sent: p = e**epsilon / (e**epsilon + 1) and, over
    the draw of the matrix, q = 1/2. The paper's estimate, the scaled inner product of the mean
    report and the value's row, is (support - n q) / (p - q).

    The paper draws all signs independently. Here a coordinate's are one polynomial's, three-wise
    independent: what the variance needs, and k numbers in place of s k.

    Reports, sizes and costs are those of `FastLocalHashing` with m = 2. V0 = (e**epsilon + 1)**2 /
    (e**epsilon - 1)**2, never below 1 however large epsilon is: one bit cannot say more. To it, c
    clients of another, equal value add c (c - 1) / k (`exact_variance`).

    Attributes:
        num_hashes: k, the paper's m: coordinates of the projection.

    References:
        Bassily, Smith (2015), "Local, private, efficient protocols for succinct histograms",
        STOC, Algorithms 1 and 4.
    """

    @cached_property
    def inner(self) -> GeneralizedRandomizedResponse:
        return GeneralizedRandomizedResponse(epsilon=self.epsilon, domain_size=2)
