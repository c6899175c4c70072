"""Sketching oracles of which each report is one noisy entry of a Hadamard matrix."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
import numpy.typing as npt
from annotated_types import Ge

from fedhh.arrays import Floats, Ints
from fedhh.kernels.sketches import hadamard_rows
from fedhh.oracles.base import Reports, Tally, Values
from fedhh.oracles.families import CellOracle, Table
from fedhh.oracles.hashed import SketchOracle
from fedhh.validation import InputError


@dataclass(frozen=True, kw_only=True)
class HadamardSign(CellOracle):
    """One noisy entry of a cell's row of the Hadamard matrix: a coefficient l and a sign.

    The matrix has the entries H[l, cell] = (-1)**popcount(l & cell). The client draws a coefficient
    uniformly, and negates the entry with probability 1 / (e**epsilon + 1). A report supports the
    cells that have its sign: its own with probability p, any other one with q = 1/2.

    With ``signed``, a cell is a location and a sign, (cell // 2, (-1)**(cell & 1)), and says its
    sign times its location's entry: as if coefficients were odd, 2 l + 1. q = 1/2 for another
    location.

    A report is ``(2,) int64``: l, and -1 or +1. Reports add up to sums of signs by coefficient, and
    their number.
    """

    signed: bool = False

    @property
    def num_coefficients(self) -> int:
        return self.domain_size // (1 + self.signed)

    @property
    def p(self) -> float:
        return 1 / (1 + math.exp(-self.epsilon))

    @property
    def q(self) -> float:
        return 0.5

    @property
    def aggregate_size(self) -> int:
        return self.num_coefficients + 1

    @property
    def report_bits(self) -> float:
        return 1 + math.log2(self.num_coefficients)

    def _entries(self, coefficients: Values, cells: Values) -> Values:
        return hadamard_entries((1 + self.signed) * coefficients + self.signed, cells)

    def privatize(self, values: Values, *, rng: np.random.Generator) -> Reports:
        values = self._check_values(values)
        coefficients = rng.integers(self.num_coefficients, size=len(values))
        signs = self._entries(coefficients, values)
        signs[rng.random(len(values)) >= self.p] *= -1
        return np.stack([coefficients, signs], axis=1)

    def log_prob(self, reports: Reports, value: int | Values) -> Floats:
        entries = self._entries(reports[:, 0].astype(np.int64), np.asarray(value))
        log_p = math.log(self.p) - math.log(self.num_coefficients)
        return np.where(entries == reports[:, 1], log_p, log_p - self.epsilon)

    def report_space(self) -> Reports:
        space = itertools.product(range(self.num_coefficients), (-1, 1))
        return np.array(list(space), dtype=np.int64)

    def add_rows(self, rows: Values, reports: Reports, table: Table) -> None:
        places = rows * table.shape[1] + reports[:, 0]
        np.add.at(table.reshape(-1), places, reports[:, 1].astype(table.dtype))
        table[:, -1] += np.bincount(rows, minlength=len(table)).astype(table.dtype)

    def _add_reports(self, reports: Reports, out: Tally) -> None:
        self.add_rows(np.zeros(len(reports), dtype=np.int64), reports, out[None])

    def _support(self, aggregates: Tally, candidates: Values | None) -> Tally:
        numbers = aggregates[:, -1:]
        agreement = aggregates[:, :-1].copy()
        hadamard_rows(agreement)
        if self.signed:
            agreement = np.stack([agreement, -agreement], axis=-1).reshape(len(aggregates), -1)
        agreement += numbers
        agreement >>= 1
        return agreement if candidates is None else agreement[:, candidates]

    def sample_aggregate(self, counts: Tally, *, rng: np.random.Generator) -> Tally:
        """Return the sums of reports of clients with these cells, drawn exactly.

        The clients of one cell spread uniformly over the coefficients; those that landed on one
        keep or negate its sign independently.
        """
        sums = np.zeros(self.aggregate_size, dtype=np.int64)
        chances = np.full(self.num_coefficients, 1 / self.num_coefficients)
        coefficients = np.arange(self.num_coefficients)
        for cell in np.flatnonzero(counts).tolist():
            landed = rng.multinomial(counts[cell], chances)
            kept = 2 * rng.binomial(landed, self.p) - landed
            sums[:-1] += self._entries(coefficients, np.full(len(coefficients), cell)) * kept
        sums[-1] = counts.sum()
        return sums

    def scores(self, loads: Tally) -> Tally:
        agreement = loads[:, ::2] - loads[:, 1::2] if self.signed else loads.copy()
        hadamard_rows(agreement)
        return np.stack([-agreement, agreement], axis=2).reshape(len(loads), -1)


def hadamard_entries(rows: Values, columns: Values) -> Ints:
    """Return entries of the Hadamard matrix, (-1)**popcount(row & column)."""
    return 1 - 2 * parity(rows & columns)


def parity(numbers: Values) -> Ints:
    """Return whether each number has an odd number of ones: 1, else 0."""
    for shift in (32, 16, 8, 4, 2, 1):
        numbers = numbers ^ (numbers >> shift)
    return numbers & 1


@dataclass(frozen=True, kw_only=True)
class HadamardSketch(SketchOracle):
    """A sketch whose clients draw a row j of k, and send a `HadamardSign` of their cell there.

    The noise never falls below one per report, however large epsilon is: one bit cannot say more.
    A report is ``(3,) int64``: row, coefficient, and -1 or +1. A sketch is k rows of m sums of
    signs by coefficient, the Hadamard transform of what reports say of cells, and their number.

    Report size: 1 + log2 k + log2 m bits. Cost: O(1) per report. Guarantees are those of `Hashed`.

    Attributes:
        num_cells: m, a power of two.
    """

    num_cells: Annotated[int, Ge(1)] = 1024

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_cells & (self.num_cells - 1):
            raise InputError(
                f"Expected num_cells to be a power of two for a sketch of Hadamard entries, got "
                f"num_cells={self.num_cells}; use {2 ** self.num_cells.bit_length()}."
            )


@dataclass(frozen=True, kw_only=True)
class HadamardCountMeanSketch(HadamardSketch):
    """Hadamard Count Mean Sketch (Apple 2017, Algorithms 5 to 7).

    The client draws a row j of k and a coefficient l of m, takes the entry H[l, h_j(value)] of the
    Hadamard matrix of +-1, (-1)**popcount(l & cell), and negates it with probability
    1 / (1 + e**epsilon). It sends the sign, j and l.

    A report supports a value if its sign is H[l, h_j(value)]. p is the chance that the sign is
    kept and, over the draw of the functions, q = p/m + (1 - 1/m)/2. The paper's estimate is
    (support - n q) / (p - q); its Theorem 4.4 bounds `exact_variance` from above. Reports, sizes
    and costs are those of `HadamardSketch`.

    References:
        Differential Privacy Team, Apple (2017), "Learning with privacy at scale", section 4.2 and
        appendix B.
    """

    num_cells: Annotated[int, Ge(2)] = 1024

    @cached_property
    def inner(self) -> HadamardSign:
        return HadamardSign(epsilon=self.epsilon, domain_size=self.num_cells)


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
    and less error where the sketch is large: for normal noise, the median's variance is pi / 2
    times as much. In a sketch as small as 8 rows of 256, collisions with the most frequent value
    outweigh the noise, and the median is ahead.

    Reports, sizes and costs are those of `HadamardSketch`, with signed cells for cells.

    References:
        Bassily, Nissim, Stemmer, Thakurta (2017), "Practical locally private heavy hitters",
        NeurIPS (arXiv:1707.04982), section 4 and its algorithm Hashtogram; numbering not verified.
    """

    num_hashes: Annotated[int, Ge(1)] = 64
    num_cells: Annotated[int, Ge(1)] = 4096

    @cached_property
    def inner(self) -> HadamardSign:
        return HadamardSign(epsilon=self.epsilon, domain_size=2 * self.num_cells, signed=True)

    @property
    def q(self) -> float:
        return 0.5

    def collision_variance(self, count: npt.ArrayLike) -> Floats:
        """Return ``c (c - 1) / (k m)``: pairs that share a row, and their location with others.

        See `exact_variance`: two clients who hold one other value agree on a third value's sign
        together if they share the row and the location, and are independent otherwise.
        """
        count = np.asarray(count, dtype=np.float64)
        pairs = count * np.maximum(count - 1, 0)
        return np.asarray(pairs / (self.num_hashes * self.num_cells), dtype=np.float64)
