"""Sketching oracles: hashing by k functions that reports share, so that these add up in k rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from annotated_types import Ge, Le

from fedhh.kernels.reports import WORD_BITS
from fedhh.kernels.subset_tally import count_into
from fedhh.oracles.base import Reports, Values
from fedhh.oracles.bits import PackedUnaryEncoding
from fedhh.oracles.families import SampledAggregates
from fedhh.oracles.hashed import Sketch, SketchOracle
from fedhh.oracles.values import GeneralizedRandomizedResponse
from fedhh.validation import SMALLEST_EPSILON

_LARGEST_EPSILON = 20.0
"""Of Fast Local Hashing, whose table has about e**epsilon cells in a row."""


@dataclass(frozen=True, kw_only=True)
class CellCounts(SampledAggregates, SketchOracle):
    """A sketch whose sums are counts of cells, so that clients' cells are its noise-free counts."""

    @property
    def report_draws(self) -> int:
        return self.inner.report_draws

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
    def inner(self) -> PackedUnaryEncoding:
        return PackedUnaryEncoding(epsilon=self.epsilon, domain_size=self.num_cells)

    def _craft(self, values: Values, sign: int, count: int, rng: np.random.Generator) -> Reports:
        # Every row has room for all of the values.
        rows, numbers = np.unique(rng.integers(self.num_hashes, size=count), return_counts=True)
        parts = [np.empty((0, 1 + -(-self.num_cells // WORD_BITS)), dtype=np.int64)]
        for row, number in zip(rows, numbers, strict=True):
            cells = self.hashes.cells(np.full(len(values), row), values)
            sent = self.inner.craft(cells, sign=sign, count=number, rng=rng)
            parts.append(np.column_stack([np.full(number, row), sent]))
        return np.concatenate(parts)


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
