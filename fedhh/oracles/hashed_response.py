"""Randomized response on a hash of the value, under one of k functions that reports share."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedhh.oracles.base import Floats, Reports, Values, best_of
from fedhh.oracles.sampling import SampledAggregates
from fedhh.oracles.sketch import Sketch, SketchOracle
from fedhh.validation import require_between

_LARGEST_EPSILON = 20.0
"""Of Fast Local Hashing, whose table has about e**epsilon cells in a row."""


@dataclass(frozen=True, kw_only=True)
class HashedResponseOracle(SketchOracle):
    """A report is a row of k, drawn at random, and the value's cell of it, of m, or another cell.

    The cell is the value's own with probability p = e**epsilon / (e**epsilon + m - 1), otherwise
    one of the others. A sketch is k m numbers of reports. Subclasses choose m. Guarantees are those
    of `SketchOracle`.

    Report size: log2 k + log2 m bits. Cost: O(1) per report, O(k) per candidate, memory O(k m).
    """

    @property
    def aggregate_size(self) -> int:
        return self.num_hashes * self.row_size

    @cached_property
    def p(self) -> float:
        return 1 / (1 + (self.row_size - 1) * math.exp(-self.epsilon))

    @cached_property
    def q(self) -> float:
        return 1 / self.row_size

    def privatize(self, values: Values, *, rng: np.random.Generator) -> Reports:
        """Return ``(n, 2) int64``: row and cell."""
        rows, cells = self._draw_cells(values, rng)
        # One of the other cells: a uniform step from the own one, around the row.
        steps = rng.integers(1, self.row_size, size=len(rows))
        steps[rng.random(len(rows)) < self.p] = 0
        return np.stack([rows, (cells + steps) % self.row_size], axis=1)

    def _sample_sketch(self, true_counts: Values, rng: np.random.Generator) -> Sketch:
        # O(k (m + c)) and the cells held.
        held = self._cell_counts(true_counts, rng)
        other = (1 - self.p) / (self.row_size - 1)
        table = np.zeros_like(held)
        for row, cell in zip(*np.nonzero(held), strict=True):
            chances = np.full(self.row_size, other)
            chances[cell] = self.p
            table[row] += rng.multinomial(held[row, cell], chances)
        return table.ravel()

    def _craft(self, values: Values, sign: int, count: int, rng: np.random.Generator) -> Reports:
        scores = self._cell_loads(values).ravel()
        best = best_of(sign * scores, count, rng=rng)
        return np.stack(np.divmod(best, self.row_size), axis=1)

    def log_prob(self, reports: Reports, value: int) -> Floats:
        rows, sent = reports.T
        cells = self.hashes.cells(rows, np.full(len(rows), value))
        log_p = math.log(self.p)
        own = np.where(sent == cells, log_p, log_p - self.epsilon)
        return own - math.log(self.num_hashes)

    def report_space(self) -> Reports:
        self._check_report_space(self.report_bits, width=2)
        space = itertools.product(range(self.num_hashes), range(self.row_size))
        return np.array(list(space), dtype=np.int64)

    @property
    def report_bits(self) -> float:
        return math.log2(self.num_hashes) + math.log2(self.row_size)

    def _tables(self, sketches: Sketch) -> Sketch:
        return sketches.reshape(-1, self.num_hashes, self.row_size)

    def _add_reports(self, reports: Reports, out: Sketch) -> None:
        np.add.at(self._tables(out)[0], (reports[:, 0], reports[:, 1]), 1)


@dataclass(frozen=True, kw_only=True)
class FastLocalHashing(HashedResponseOracle):
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

    Guarantees and costs are those of `HashedResponseOracle`.

    References:
        Cormode, Maddock, Maple (2021), "Frequency estimation under local differential privacy",
        PVLDB 14(11).
        Wang, Blocki, Li, Jha (2017), "Locally differentially private protocols for frequency
        estimation", USENIX Security, section 4.4.
    """

    def _check_epsilon(self) -> None:
        # Above, the number of cells would not fit any memory, and its exponential no float.
        super()._check_epsilon()
        require_between(0, _LARGEST_EPSILON, epsilon=self.epsilon)

    @property
    def row_size(self) -> int:
        return round(math.exp(self.epsilon)) + 1


@dataclass(frozen=True, kw_only=True)
class BassilySmith(SampledAggregates, HashedResponseOracle):
    """The frequency oracle of Bassily and Smith (2015, Algorithm 4), on one random projection.

    The public matrix has a sign, -1 or +1, for each of s values and each of k coordinates. The
    client draws a coordinate and sends it with its value's sign there, negated with probability
    1 / (e**epsilon + 1). Here coordinates are rows, signs are the two cells of a row, and a
    report supports the values that have the sign sent: p = e**epsilon / (e**epsilon + 1) and, over
    the draw of the matrix, q = 1/2. The paper's estimate, the scaled inner product of the mean
    report and the value's row, is (support - n q) / (p - q).

    The paper draws all signs independently. Here a coordinate's are one polynomial's, three-wise
    independent: what the variance needs, and k numbers in place of s k.

    Guarantees and costs are those of `HashedResponseOracle`, with m = 2. V0 = (e**epsilon + 1)**2 /
    (e**epsilon - 1)**2, never below 1 however large epsilon is: one bit cannot say more. To it, c
    clients of another, equal value add c (c - 1) / k (`exact_variance`).

    Attributes:
        num_hashes: k, the paper's m: coordinates of the projection.

    References:
        Bassily, Smith (2015), "Local, private, efficient protocols for succinct histograms",
        STOC, Algorithms 1 and 4.
    """

    @property
    def row_size(self) -> int:
        return 2

    def noise_free_counts(
        self, values: Values, *, rng: np.random.Generator, out: Sketch | None = None
    ) -> Sketch:
        out = self._sums(out)
        rows, cells = self._draw_cells(values, rng)
        out += np.bincount(rows * self.row_size + cells, minlength=self.aggregate_size)
        return out

    def sample_aggregate(self, counts: Sketch, *, rng: np.random.Generator) -> Sketch:
        """Return the sketch of reports, drawn with the exact distribution; O(k).

        Given the coordinates, signs are negated independently: each of c clients' count keeps
        Bin(c, p) of them, and its coordinate's other count has the rest.
        """
        kept = rng.binomial(counts, self.p).reshape(-1, 2)
        moved = counts.reshape(-1, 2) - kept
        sketch: Sketch = (kept + moved[:, ::-1]).ravel()
        return sketch

    def _sample_sketch(self, true_counts: Values, rng: np.random.Generator) -> Sketch:
        # O(k c) for c values.
        return self.sample_aggregate(self._cell_counts(true_counts, rng).ravel(), rng=rng)

    @property
    def report_draws(self) -> int:
        return 1
