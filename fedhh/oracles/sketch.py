"""Sketching oracles: reports add up in a small table that can be asked about any value later.

A report names one of k public hash functions and says something noisy about the cell, of m, that
the function sends the client's value to. Over the draw of the functions such an oracle is pure:
a report supports its client's value with probability p and any other value with probability q.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fedhh.hashing import NUM_KEYS, HashFamily
from fedhh.kernels.sketches import sum_cells, sum_cells_of_range
from fedhh.oracles.base import Floats, PureOracle, Reports, Tally, Values
from fedhh.validation import InputError, require_at_least, require_between

Sketch = npt.NDArray[np.int64]

_LARGEST_ENUMERATION = 2**28
_LARGEST_SKETCH = 2**30
_LARGEST_EXPONENT = 700.0


def odds(epsilon: float) -> float:
    """Return e**epsilon, or, where that is no double, a number whose inverse is next to 0 too."""
    return math.exp(min(epsilon, _LARGEST_EXPONENT))


@dataclass(frozen=True, kw_only=True)
class SketchOracle(PureOracle):
    """A pure oracle over the draw of its hash functions, with an aggregate of fixed size.

    Estimates are unbiased over the draw of the hash functions, not for fixed ones: a value that
    shares cells with a frequent one is then overestimated, in every round alike. `variance` is
    exact over draw and coins if no two other clients hold the same value; `exact_variance` has what
    equal values add. `log_prob` and `report_space` are for the functions at hand. `sample_sketch`
    draws from the distribution of the sketch of fresh reports.

    Reports have epsilon-local differential privacy for any hash functions; the factor e**epsilon is
    reached wherever two values have different cells.

    Attributes:
        num_hashes: k.
        hash_seed: Seed of the functions; clients and server must agree on it.
    """

    has_public_coins: ClassVar[bool] = True
    is_sketch: ClassVar[bool] = True

    num_hashes: int = 2048
    hash_seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(1, num_hashes=self.num_hashes)
        require_at_least(0, hash_seed=self.hash_seed)
        require_between(2, NUM_KEYS, domain_size=self.domain_size)
        if self.aggregate_size > _LARGEST_SKETCH:
            raise InputError(
                f"Expected a sketch of at most {_LARGEST_SKETCH:,} numbers, got "
                f"{self.num_hashes:,} rows of {self.row_size:,} cells; lower num_hashes."
            )

    @property
    @abstractmethod
    def row_size(self) -> int:
        """m, the number of cells that a hash function maps to."""

    @property
    @abstractmethod
    def aggregate_size(self) -> int:
        """Number of integers in a sketch."""

    @cached_property
    def hashes(self) -> HashFamily:
        """The public hash functions, the same for every oracle with these parameters."""
        return HashFamily.draw(
            num_hashes=self.num_hashes, num_cells=self.row_size, seed=self.hash_seed
        )

    @abstractmethod
    def _tables(self, sketches: Sketch) -> Sketch:
        """Return the ``(t, k, m)`` sums of ``(t, aggregate_size)`` sketches; perhaps a view."""

    @abstractmethod
    def _sample_sketch(self, true_counts: Values, rng: np.random.Generator) -> Sketch:
        """Return what `sample_sketch` does."""

    def cells(self, sketch: Sketch) -> Tally | Floats:
        """Return ``(k, m)``: a value's support is the sum over rows j of entry (j, h_j(value)).

        That is what each cell of each row adds to the support of the values that it stands for.
        """
        return np.asarray(self._tables(sketch[None])[0])

    def _support(self, aggregates: Sketch, candidates: Values | None) -> Tally:
        return self._row_sums(self._tables(aggregates), candidates)

    def exact_variance(self, true_counts: Values) -> Floats:
        """Return the exact variance of every value's estimate, over hash functions and coins.

        To `variance` it adds, for the others' counts f*, what clients with equal values do
        together, (1/k) (1/m) (1 - 1/m) sum f* (f* - 1), times (m / (m - 1))**2. It needs hash
        functions that are three-wise independent, no more. Derived independently of the papers.
        ``true_counts``, ``(c,) int64``, says how many clients hold each value.
        """
        counts = np.asarray(true_counts, dtype=np.float64)
        added = self.collision_variance(counts)
        alone = self.variance(counts, int(counts.sum()))
        return np.asarray(alone + added.sum() - added, dtype=np.float64)

    def collision_variance(self, count: npt.ArrayLike) -> Floats:
        """Return ``c (c - 1) / (k (m - 1))``; see `exact_variance`."""
        count = np.asarray(count, dtype=np.float64)
        pairs = count * np.maximum(count - 1, 0)
        return np.asarray(pairs / self.num_hashes / (self.row_size - 1), dtype=np.float64)

    def _draw_cells(self, values: Values, rng: np.random.Generator) -> tuple[Values, Values]:
        """Return each client's row, drawn at random, and the cell of its value in it."""
        values = self._check_values(values)
        rows = rng.integers(self.num_hashes, size=len(values))
        return rows, self.hashes.cells(rows, values)

    def _cell_counts(self, true_counts: Values, rng: np.random.Generator) -> Sketch:
        """Return ``(k, m) int64``: clients whose row and cell these are, rows drawn at random."""
        counts = np.zeros((self.num_hashes, self.row_size), dtype=np.int64)
        chances = np.full(self.num_hashes, 1 / self.num_hashes)
        rows = np.arange(self.num_hashes)
        for value in np.flatnonzero(true_counts).tolist():
            cells = self.hashes.cells(rows, np.full(self.num_hashes, value))
            counts[rows, cells] += rng.multinomial(int(true_counts[value]), chances)
        return counts

    def _cell_loads(self, values: Values) -> Sketch:
        """Return ``(k, m) int64``: how many of the values each cell of each row has."""
        rows = np.repeat(np.arange(self.num_hashes), len(values))
        cells = self.hashes.cells(rows, np.tile(values, self.num_hashes))
        places = rows * self.row_size + cells
        size = self.num_hashes * self.row_size
        return np.bincount(places, minlength=size).reshape(-1, self.row_size)

    def _row_sums(self, tables: Sketch, candidates: Values | None) -> Tally:
        """Return ``(t, c) int64``: for each of ``(t, k, m)`` tables, a candidate's cells summed.

        Every value is a candidate if None; cost O(c k), about a nanosecond each.
        """
        if candidates is not None:
            return sum_cells(self.hashes.coefficients, tables, candidates)
        if self.domain_size > _LARGEST_ENUMERATION:
            raise InputError(
                f"Expected domain_size <= {_LARGEST_ENUMERATION} to ask a sketch about all values, "
                f"got domain_size={self.domain_size}; ask about candidates."
            )
        return sum_cells_of_range(self.hashes.coefficients, tables, self.domain_size)


def sample_sketch(oracle: SketchOracle, true_counts: Values, *, rng: np.random.Generator) -> Sketch:
    """Return ``(aggregate_size,) int64``, distributed as the sketch of some clients' reports.

    ``true_counts``, ``(c,) int64``, says how many clients hold each of the values 0 .. c - 1.
    """
    counts = np.ascontiguousarray(true_counts, dtype=np.int64)
    if counts.ndim != 1 or len(counts) > oracle.domain_size or counts.min(initial=0) < 0:
        raise InputError(
            f"Expected at most {oracle.domain_size} true_counts >= 0, one per value, got shape "
            f"{counts.shape} with minimum {counts.min(initial=0)}."
        )
    return oracle._sample_sketch(counts, rng)


@dataclass(frozen=True, kw_only=True)
class TableSketch(SketchOracle):
    """A sketch of k m sums, row by row, and then k numbers of reports.

    Attributes:
        num_cells: m.
    """

    num_cells: int = 1024

    @property
    def aggregate_size(self) -> int:
        """Number of sums, k m, and k more for the numbers of reports."""
        return self.num_hashes * (self.num_cells + 1)

    def _split(self, sketch: Sketch) -> tuple[Sketch, Sketch]:
        """Return views of the ``(k, m)`` sums and of the ``(k,)`` numbers of reports."""
        sums = self.num_hashes * self.num_cells
        return sketch[:sums].reshape(self.num_hashes, self.num_cells), sketch[sums:]

    def _tables(self, sketches: Sketch) -> Sketch:
        sums = self.num_hashes * self.num_cells
        return sketches[:, :sums].reshape(-1, self.num_hashes, self.num_cells)

    @abstractmethod
    def add_to_table(self, reports: Reports, table: npt.NDArray[np.signedinteger[Any]]) -> None:
        """Add reports to the sums of a table, whose numbers may be narrower than a sketch's.

        Args:
            reports: What `privatize` returned.
            table: ``(k, m)``, changed in place; wide enough for the reports of any row.
        """

    def _add_reports(self, reports: Reports, out: Sketch) -> None:
        table, reports_by_row = self._split(out)
        self.add_to_table(reports, table)
        reports_by_row += np.bincount(reports[:, 0], minlength=self.num_hashes)


@dataclass(frozen=True, kw_only=True)
class MeanSketchOracle(TableSketch):
    """What Apple's two sketches share, whose estimates are means over rows."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(2, num_cells=self.num_cells)

    @property
    def row_size(self) -> int:
        return self.num_cells

    @abstractmethod
    def _supporters_among(self, reports: Reports, candidates: Values) -> Tally:
        """Return the support by looking at each report and candidate; O(n c)."""

    def _support_of_reports(self, reports: Reports, candidates: Values) -> Tally:
        # By way of their sketch if they are many.
        if len(reports) * len(candidates) > self.aggregate_size:
            return super()._support_of_reports(reports, candidates)
        return self._supporters_among(np.ascontiguousarray(reports, dtype=np.int64), candidates)

    @abstractmethod
    def mean_sketch(self, sketch: Sketch) -> Floats:
        """Return Algorithm 3's or 7's matrix M, ``(k, m) float64``, from the integer sums."""

    @property
    @abstractmethod
    def _published_noise(self) -> float:
        """What a report adds to the variance of Theorem 4.2 or 4.4, but for (m/(m-1))**2."""

    def published_variance(self, true_counts: Values) -> Floats:
        """Return the variance that the paper states for every value of a histogram.

        ``(m/(m-1))**2 [noise n + sum f*^2 / (k m)]`` for the others' counts f*: Theorems 4.2 and
        4.4. The paper prints it as an equality; it bounds `exact_variance` from above.
        """
        counts = np.asarray(true_counts, dtype=np.float64)
        squares = counts**2
        collisions = (squares.sum() - squares) / (self.num_hashes * self.num_cells)
        scale = (self.num_cells / (self.num_cells - 1)) ** 2
        return np.asarray(
            scale * (self._published_noise * counts.sum() + collisions), dtype=np.float64
        )
