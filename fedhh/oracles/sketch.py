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
    exact over draw and coins if no two other clients hold the same value; `exact_variance` has
    what equal values add. `log_prob` and `report_space` are for the functions at hand.

    Attributes:
        num_hashes: k.
        hash_seed: Seed of the functions; clients and server must agree on it.
    """

    has_public_coins: ClassVar[bool] = True
    has_fixed_aggregate: ClassVar[bool] = True

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
    def aggregate(self, reports: Reports) -> Sketch:
        """Return the ``(aggregate_size,) int64`` sums of some reports (run by the server)."""

    @abstractmethod
    def privatize_and_aggregate(
        self, values: Values, *, rng: np.random.Generator, out: Sketch | None = None
    ) -> Sketch:
        """Return the sketch of fresh reports, which are not stored.

        The law is that of ``aggregate(privatize(values))``. Memory is that of the sketch, whatever
        the number of values.

        Args:
            values: ``(n,) int64`` in [0, domain_size).
            rng: Source of the clients' coins.
            out: ``(aggregate_size,) int64`` to add to, contiguous; a new array if None.
        """

    @abstractmethod
    def sample_sketch(self, true_counts: Values, *, rng: np.random.Generator) -> Sketch:
        """Return a sketch drawn from a histogram, without reports; the law is exact.

        Args:
            true_counts: ``(c,) int64``, at least 0, c at most domain_size: how many clients hold
                each of the values 0 .. c - 1.
            rng: Source of randomness.

        Returns:
            ``(aggregate_size,) int64``, distributed as the sketch of these clients' reports.
        """

    @abstractmethod
    def support(self, sketch: Sketch, candidates: Values) -> Tally:
        """Return how many of a sketch's reports support each candidate (run by the server).

        Args:
            sketch: ``(aggregate_size,) int64``.
            candidates: ``(c,) int64`` in [0, domain_size).

        Returns:
            ``(c,) int64``, ready for `estimate`. Cost O(c k).
        """

    @abstractmethod
    def cells(self, sketch: Sketch) -> Tally | Floats:
        """Return ``(k, m)``: a value's `support` is the sum over rows j of entry (j, h_j(value)).

        That is what each cell of each row adds to the support of the values that it stands for.
        """

    @abstractmethod
    def support_of_all(self, sketches: Sketch) -> Tally:
        """Return the support of every value in each of ``(t, aggregate_size)`` sketches.

        Returns:
            ``(t, domain_size) int64``. Cost O(domain_size k), about a nanosecond each.
        """

    def tally(self, reports: Reports, candidates: Values) -> Tally:
        """Return how many reports support each candidate, by way of their sketch."""
        return self.support(self.aggregate(reports), candidates)

    def privatize_and_tally(
        self, values: Values, *, rng: np.random.Generator, out: Tally | None = None
    ) -> Tally:
        """Return the tally of all values over fresh reports; a sketch is the cheaper aggregate."""
        out = self._tally_of_all(out)
        out += self.support_of_all(self.privatize_and_aggregate(values, rng=rng)[None])[0]
        return out

    def sample_tally(
        self, true_counts: Values, num_reports: int, *, rng: np.random.Generator
    ) -> Tally:
        """Return the tally of all values, drawn from a histogram by `sample_sketch`; exact.

        Args:
            true_counts: ``(domain_size,) int64``, summing to ``num_reports``.
            num_reports: Number of reports n, dummies included.
            rng: Source of randomness.
        """
        counts = self._check_true_counts(true_counts, num_reports)
        tally: Tally = self.support_of_all(self.sample_sketch(counts, rng=rng)[None])[0]
        return tally

    def variance(self, count: npt.ArrayLike, num_reports: int) -> Floats:
        """Return the exact variance if no two other clients hold the same value."""
        return super().variance(count, num_reports)

    def exact_variance(self, true_counts: Values) -> Floats:
        """Return the exact variance of every value's estimate, over hash functions and coins.

        To `variance` it adds, for the others' counts f*, what clients with equal values do
        together, (1/k) (1/m) (1 - 1/m) sum f* (f* - 1), times (m / (m - 1))**2. It needs hash
        functions that are three-wise independent, no more. Derived independently of the papers.

        Args:
            true_counts: ``(c,) int64``: how many clients hold each value.

        Returns:
            ``(c,) float64``.
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

    def _sketch_of(self, out: Sketch | None) -> Sketch:
        """Return ``out`` if it can hold a sketch, zeros if it is None."""
        if out is None:
            return np.zeros(self.aggregate_size, dtype=np.int64)
        if out.shape != (self.aggregate_size,) or out.dtype != np.int64 or not out.data.contiguous:
            raise InputError(
                f"Expected out as ({self.aggregate_size},) contiguous int64, got {out.shape} of "
                f"{out.dtype}; leave it out for a new array."
            )
        return out

    def _draw_rows(self, size: int, rng: np.random.Generator) -> Values:
        return rng.integers(self.num_hashes, size=size)

    def _cell_counts(self, true_counts: Values, rng: np.random.Generator) -> Sketch:
        """Return ``(k, m) int64``: clients whose row and cell these are, rows drawn at random."""
        counts = np.zeros((self.num_hashes, self.row_size), dtype=np.int64)
        chances = np.full(self.num_hashes, 1 / self.num_hashes)
        rows = np.arange(self.num_hashes)
        for value in np.flatnonzero(true_counts).tolist():
            cells = self.hashes.cells(rows, np.full(self.num_hashes, value))
            counts[rows, cells] += rng.multinomial(int(true_counts[value]), chances)
        return counts

    def _row_sums(self, tables: Sketch, candidates: Values) -> Tally:
        """Return ``(t, c) int64``: for each of ``(t, k, m)`` tables, a candidate's cells summed."""
        candidates = self.check_values(candidates, "candidates")
        sums: Tally = sum_cells(self.hashes.coefficients, tables, candidates)
        return sums

    def _row_sums_of_all(self, tables: Sketch) -> Tally:
        """Return `_row_sums` of every value, ``(t, domain_size) int64``."""
        if self.domain_size > _LARGEST_ENUMERATION:
            raise InputError(
                f"Expected domain_size <= {_LARGEST_ENUMERATION} to ask a sketch about all values, "
                f"got domain_size={self.domain_size}; ask about candidates."
            )
        sums: Tally = sum_cells_of_range(self.hashes.coefficients, tables, self.domain_size)
        return sums


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
        """Return the ``(t, k, m)`` sums of ``(t, aggregate_size)`` sketches; perhaps a view."""
        sums = self.num_hashes * self.num_cells
        return sketches[:, :sums].reshape(-1, self.num_hashes, self.num_cells)


@dataclass(frozen=True, kw_only=True)
class MeanSketchOracle(TableSketch):
    """What Apple's two sketches share, whose estimates are means over rows."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(2, num_cells=self.num_cells)

    @property
    def row_size(self) -> int:
        """The field ``num_cells``."""
        return self.num_cells

    @abstractmethod
    def add_reports(self, reports: Reports, table: npt.NDArray[np.signedinteger[Any]]) -> None:
        """Add reports to the sums of a table, whose numbers may be narrower than a sketch's.

        Args:
            reports: What `privatize` returned.
            table: ``(k, m)``, changed in place; wide enough for the reports of any row.
        """

    @abstractmethod
    def _supporters_among(self, reports: Reports, candidates: Values) -> Tally:
        """Return `tally` from each report and candidate; O(n c)."""

    def tally(self, reports: Reports, candidates: Values) -> Tally:
        """Return how many reports support each candidate; by way of their sketch if many."""
        if len(reports) * len(candidates) > self.aggregate_size:
            return super().tally(reports, candidates)
        candidates = self.check_values(candidates, "candidates")
        return self._supporters_among(np.ascontiguousarray(reports, dtype=np.int64), candidates)

    @abstractmethod
    def mean_sketch(self, sketch: Sketch) -> Floats:
        """Return the paper's matrix M, ``(k, m) float64``, from the integer sums."""

    @abstractmethod
    def published_variance(self, true_counts: Values) -> Floats:
        """Return the variance that the paper states for every value of a histogram.

        The paper prints it as an equality; it bounds `exact_variance` from above.

        Args:
            true_counts: ``(c,) int64``, summing to n.

        Returns:
            ``(c,) float64``.
        """

    def _published_variance(self, true_counts: Values, per_report: float) -> Floats:
        """Return ``(m/(m-1))**2 [per_report n + sum f*^2 / (k m)]``, f* the others' counts."""
        counts = np.asarray(true_counts, dtype=np.float64)
        squares = counts**2
        collisions = (squares.sum() - squares) / (self.num_hashes * self.num_cells)
        scale = (self.num_cells / (self.num_cells - 1)) ** 2
        return np.asarray(scale * (per_report * counts.sum() + collisions), dtype=np.float64)
