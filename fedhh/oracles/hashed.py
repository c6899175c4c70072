"""Hashing oracles: a public hash of the value into few cells, and a randomizer over the cells.

Over the draw of the functions such an oracle is pure: a report supports all values that its
function sends to the cells that the randomizer's report supports, its client's value with
probability p and any other value with probability q. Functions are k that all reports share, whose
sums are a sketch, or a fresh one for every report: `fedhh.oracles.local_hashing`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Le

from fedhh.arrays import Floats
from fedhh.hashing import NUM_KEYS, HashFamily
from fedhh.kernels.sketches import sum_cells
from fedhh.oracles.base import PureOracle, Reports, Tally, Values, best_of
from fedhh.oracles.families import CellOracle, Table
from fedhh.settings import Seed
from fedhh.validation import InputError

Sketch = npt.NDArray[np.int64]

_LARGEST_ENUMERATION = 2**28
_LARGEST_SKETCH = 2**30


@dataclass(frozen=True, kw_only=True)
class Hashed(PureOracle):
    """What hashing oracles share: a public function's name, and what `inner` says of its cell.

    Formal guarantees:
        * Those of `inner`, for any functions: the function does not depend on the value.
        * Estimates are unbiased over the draw of the functions, not for given ones.

    `log_prob` and `report_space` are for the functions at hand. A report is ``(w,) int64``: the
    function, and the report of `inner`.
    """

    has_public_coins: ClassVar[bool] = True

    @property
    @abstractmethod
    def inner(self) -> CellOracle:
        """The randomizer over cells."""

    @property
    @abstractmethod
    def functions(self) -> Values:
        """The functions at hand, ``(t, f) int64``: those of `report_space`."""

    @property
    def num_functions(self) -> int:
        """t, how many these are; 1 unless overridden."""
        return 1

    @property
    @abstractmethod
    def function_bits(self) -> float:
        """Bits of a function's name."""

    @abstractmethod
    def _draw_functions(self, count: int, rng: np.random.Generator) -> Values:
        """Return ``(count, f) int64`` functions."""

    @abstractmethod
    def _cells(self, functions: Values, values: Values) -> Values:
        """Return ``(n,) int64``: the cell of each value under the function beside it."""

    @property
    def row_size(self) -> int:
        """m, the number of cells that a function maps to."""
        return self.inner.domain_size

    @property
    def p(self) -> float:
        return self.inner.p

    @property
    def q(self) -> float:
        return self.inner.q + (self.inner.p - self.inner.q) / self.row_size

    def _draw_cells(self, values: Values, rng: np.random.Generator) -> tuple[Values, Values]:
        """Return each client's function, drawn at random, and the cell of its value."""
        values = self._check_values(values)
        functions = self._draw_functions(len(values), rng)
        return functions, self._cells(functions, values)

    def privatize(self, values: Values, *, rng: np.random.Generator) -> Reports:
        functions, cells = self._draw_cells(values, rng)
        return np.column_stack([functions, self.inner.privatize(cells, rng=rng)])

    def log_prob(self, reports: Reports, value: int) -> Floats:
        functions, sent = np.split(reports.astype(np.int64), [self.functions.shape[1]], axis=1)
        cells = self._cells(functions, np.full(len(reports), value))
        return np.asarray(self.inner.log_prob(sent, cells) - math.log(self.num_functions))

    def report_space(self) -> Reports:
        self._check_report_space(math.log2(self.num_functions) + self.inner.report_bits, width=2)
        sent = self.inner.report_space()
        functions = np.repeat(self.functions, len(sent), axis=0)
        return np.column_stack([functions, np.concatenate([sent] * self.num_functions)])

    @property
    def report_bits(self) -> float:
        return self.function_bits + self.inner.report_bits


@dataclass(frozen=True, kw_only=True)
class SketchOracle(Hashed):
    """Hashing by k functions that all reports share, with an aggregate of fixed size.

    The aggregate has, for each function, a row of the sums that reports of `inner` add up to. A
    value that shares cells with a frequent one is overestimated, in every round alike. `variance`
    is exact over draw and coins if no two other clients hold the same value; `exact_variance` has
    what equal values add. `sample_sketch` draws from the distribution of the sketch of fresh
    reports.

    Cost: O(k) per candidate, memory O(k m); per report that of `inner`.

    Attributes:
        num_hashes: k.
        hash_seed: Seed of the functions; clients and server must agree on it.
    """

    is_sketch: ClassVar[bool] = True

    domain_size: Annotated[int, Ge(2), Le(NUM_KEYS)]
    num_hashes: Annotated[int, Ge(1)] = 2048
    hash_seed: Seed = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.aggregate_size > _LARGEST_SKETCH:
            raise InputError(
                f"Expected a sketch of at most {_LARGEST_SKETCH:,} numbers, got "
                f"{self.num_hashes:,} rows of {self.row_size:,} cells; lower num_hashes."
            )

    @cached_property
    def hashes(self) -> HashFamily:
        """The public hash functions, the same for every oracle with these parameters."""
        return HashFamily.draw(
            num_hashes=self.num_hashes, num_cells=self.row_size, seed=self.hash_seed
        )

    @cached_property
    def functions(self) -> Values:
        return np.arange(self.num_hashes)[:, None]

    @property
    def num_functions(self) -> int:
        return self.num_hashes

    @property
    def function_bits(self) -> float:
        return math.log2(self.num_hashes)

    def _draw_functions(self, count: int, rng: np.random.Generator) -> Values:
        return rng.integers(self.num_hashes, size=(count, 1))

    def _cells(self, functions: Values, values: Values) -> Values:
        return self.hashes.cells(functions.ravel(), values)

    @property
    def aggregate_size(self) -> int:
        return self.num_hashes * self.inner.aggregate_size

    def add_to_table(self, reports: Reports, table: Table) -> None:
        """Add reports to ``(k, a)`` rows, whose numbers may be narrower than a sketch's.

        Args:
            reports: What `privatize` returned.
            table: Changed in place, contiguous; wide enough for the reports of any row.
        """
        numbers = np.asarray(reports, dtype=np.int64)
        self.inner.add_rows(numbers[:, 0], numbers[:, 1:], table)

    def _add_reports(self, reports: Reports, out: Sketch) -> None:
        self.add_to_table(reports, out.reshape(self.num_hashes, -1))

    def cells(self, sketches: Sketch) -> Tally:
        """Return ``(t, k, m)``, of t sketches: what reports say of each cell of each row.

        A value's support is the sum over rows j of entry (j, h_j(value)).
        """
        supports = self.inner.support(sketches.reshape(-1, self.inner.aggregate_size))
        return supports.reshape(-1, self.num_hashes, self.row_size)

    def _support(self, aggregates: Sketch, candidates: Values | None) -> Tally:
        return self.row_sums(self.cells(aggregates), candidates, np.arange(self.num_hashes))

    def row_sums(self, tables: Sketch, candidates: Values | None, rows: Values) -> Tally:
        """Return ``(t, c) int64``: for each of ``(t, r, m)`` tables, a candidate's cells summed.

        The tables have these r rows of the sketch. Every value is a candidate if None; cost O(c r).
        """
        if candidates is None:
            if self.domain_size > _LARGEST_ENUMERATION:
                raise InputError(
                    f"Expected domain_size <= {_LARGEST_ENUMERATION} to ask a sketch about all "
                    f"values, got domain_size={self.domain_size}; ask about candidates."
                )
            candidates = np.arange(self.domain_size)
        sums: Tally = sum_cells(self.hashes.coefficients[rows], tables, candidates)
        return sums

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

    def _noisy(self, held: Sketch, rng: np.random.Generator) -> Sketch:
        """Return ``(k, a)``: the rows of reports of clients whose cells are ``(k, m)`` counts."""
        return np.stack([self.inner.sample_aggregate(row, rng=rng) for row in held])

    def sample_sketch(self, true_counts: Values, *, rng: np.random.Generator) -> Sketch:
        """Return ``(aggregate_size,) int64``, distributed as the sketch of some clients' reports.

        ``true_counts``, ``(domain_size,) int64``, says how many clients hold each value.
        """
        true_counts = self._check_counts(true_counts)
        held = np.zeros((self.num_hashes, self.row_size), dtype=np.int64)
        chances = np.full(self.num_hashes, 1 / self.num_hashes)
        rows = np.arange(self.num_hashes)
        for value in np.flatnonzero(true_counts).tolist():
            cells = self.hashes.cells(rows, np.full(self.num_hashes, value))
            held[rows, cells] += rng.multinomial(int(true_counts[value]), chances)
        return self._noisy(held, rng).ravel()

    def _craft(self, values: Values, sign: int, count: int, rng: np.random.Generator) -> Reports:
        rows = np.repeat(np.arange(self.num_hashes), len(values))
        cells = self.hashes.cells(rows, np.tile(values, self.num_hashes))
        size = self.num_hashes * self.row_size
        loads = np.bincount(rows * self.row_size + cells, minlength=size)
        scores = self.inner.scores(loads.reshape(self.num_hashes, -1))
        best = best_of(sign * scores.ravel(), count, rng=rng)
        chosen, symbols = np.divmod(best, scores.shape[1])
        return np.column_stack([chosen, self.inner.report_space()[symbols]])
