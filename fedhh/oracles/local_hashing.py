"""Local hashing: randomized response on a hash of the value, under a function of the report."""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fedhh.kernels.hashing import count_supports
from fedhh.oracles.base import Floats, PureOracle, Reports, Tally, Values
from fedhh.oracles.sketch import Sketch, SketchOracle
from fedhh.validation import InputError, require_between

HASH_RANGE = 2**32
"""Hashes, of which cells are made."""

_HALF = np.uint64(32)
_LOW = np.uint64(HASH_RANGE - 1)

_LARGEST_EPSILON = 20.0
"""Of Fast Local Hashing, whose table has about e**epsilon cells in a row."""

_Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, kw_only=True)
class LocalHashing(PureOracle):
    """What local hashing shares: a fresh public hash function for every report, into g cells.

    The report is the function and the true cell with probability p = E / (E + g - 1), else each
    other cell with probability 1 / (E + g - 1), where E = e**epsilon. A report supports all values
    that share its cell, so it may be tallied for any candidates, also such as were unknown when it
    was made. Subclasses choose g.

    The functions are multiply-add-shift over 64-bit words: the cell of x is
    floor(g h / 2**32), h the high half of ``low * x_low + high * x_high + offset``, with uniform
    multipliers and offset. h is uniform and pairwise independent: strong universality of the
    vector multiply-shift scheme, Thorup (2015).

    Formal guarantees:
        * epsilon-local differential privacy for every hash function: the ratio of two reports'
          probabilities is at most E.
        * Over the hash functions, a value that the client does not hold is supported with
          probability q = 1/g, up to g**2 / 2**64 of it (cells differ by one hash in 2**32), and
          the estimate is unbiased to that precision. For given functions it is not.
        * The counts of different reports are independent; those of different candidates are not
          quite: functions are pairwise independent, and so no law of a whole tally is known.

    Cost: O(1) per report on the client, O(n c) for a tally of c candidates. A report is
    ``(4,) int64``: the low and high multipliers and the offset as 64-bit words, and the cell.

    References:
        Wang, Blocki, Li, Jha (2017), "Locally differentially private protocols for frequency
        estimation", USENIX Security, section 4.
        Thorup (2015), "High speed hashing for integers and strings", arXiv:1504.06804.
    """

    has_public_coins: ClassVar[bool] = True

    @property
    @abstractmethod
    def num_cells(self) -> int:
        """Number of cells g, at least 2."""

    @property
    def p(self) -> float:
        """Probability that a report's cell is that of its client's value."""
        return 1 / (1 + (self.num_cells - 1) * math.exp(-self.epsilon))

    @property
    def q(self) -> float:
        """Probability, over the hash functions, that a given other value falls in the cell."""
        return 1 / self.num_cells

    def privatize(self, values: Values, *, rng: np.random.Generator) -> Reports:
        """Return ``(n, 4) int64`` reports: low and high multiplier, offset, cell."""
        values = self._check_values(values)
        reports = np.empty((len(values), 4), dtype=np.int64)
        words = reports.view(np.uint64)
        words[:, :3] = rng.integers(0, 2**64, size=(len(values), 3), dtype=np.uint64)
        true_cells = self._cells(words, values)
        others = rng.integers(0, self.num_cells - 1, size=len(values))
        others += others >= true_cells
        moved = rng.random(len(values)) < (self.num_cells - 1) * math.exp(-self.epsilon) * self.p
        reports[:, 3] = np.where(moved, others, true_cells)
        return reports

    def _cells(self, words: _Words, values: Values) -> Values:
        """Return the cell of each value under its report's hash function."""
        numbers = values.astype(np.uint64)
        hashes = words[:, 0] * (numbers & _LOW) + words[:, 1] * (numbers >> _HALF) + words[:, 2]
        cells = (hashes >> _HALF) * np.uint64(self.num_cells) >> _HALF
        return cells.astype(np.int64)

    def _add_reports(self, reports: Reports, out: Tally) -> None:
        out += self._support_of_reports(reports, np.arange(self.domain_size))

    def _support_of_reports(self, reports: Reports, candidates: Values) -> Tally:
        # O(n c); candidates may be in any order, repeated or not.
        words = reports.view(np.uint64)
        cells, g = words[:, 3], np.uint64(self.num_cells)
        # Cell y is made of the hashes in [ceil(y 2**32 / g), ceil((y + 1) 2**32 / g)).
        first = ((cells << _HALF) + g - np.uint64(1)) // g
        last = ((cells + np.uint64(1) << _HALF) + g - np.uint64(1)) // g
        tally: Tally = count_supports(
            np.ascontiguousarray(words[:, 0]),
            np.ascontiguousarray(words[:, 1]),
            words[:, 2] - (first << _HALF),
            last - first << _HALF,
            candidates,
            self.domain_size > HASH_RANGE,
        )
        return tally

    def log_prob(self, reports: Reports, value: int) -> Floats:
        """Return each report's log-probability, given the true value and the hash function."""
        words = reports.view(np.uint64)
        true_cells = self._cells(words, np.full(len(reports), value, dtype=np.int64))
        log_p = math.log(self.p)
        return np.where(reports[:, 3] == true_cells, log_p, log_p - self.epsilon)

    def report_space(self) -> Reports:
        """Return the reports of one hash function, one per cell: ``(g, 4) int64``."""
        self._check_report_space(math.log2(self.num_cells), width=4)
        reports = np.empty((self.num_cells, 4), dtype=np.int64)
        # The multiplier spreads small values over all cells.
        reports[:, :3] = -7046029254386353131, 0, 0
        reports[:, 3] = np.arange(self.num_cells)
        return reports

    @property
    def report_bits(self) -> float:
        """log2 of g, and 64 bits for each word of the hash function that the domain needs."""
        words = 3 if self.domain_size > HASH_RANGE else 2
        return 64 * words + math.log2(self.num_cells)


@dataclass(frozen=True, kw_only=True)
class OptimizedLocalHashing(LocalHashing):
    """Optimized local hashing: local hashing into g = round(e**epsilon) + 1 cells.

    With E = e**epsilon, the report is a fresh public hash function and the value's cell under it,
    with probability p = E / (E + g - 1), or one of the others; q = 1/g. Functions, guarantees and
    costs are those of `fedhh.oracles.local_hashing.LocalHashing`.

    V0 = q(1-q) / (p-q)**2, which is 4 E / (E - 1)**2 at g = E + 1: that of optimized unary
    encoding, in a report whose size does not depend on the domain's.

    References:
        Wang, Blocki, Li, Jha (2017), "Locally differentially private protocols for frequency
        estimation", USENIX Security, section 4.
    """

    def _check_epsilon(self) -> None:
        super()._check_epsilon()
        if self.epsilon > math.log(HASH_RANGE // 2):
            raise InputError(
                f"Expected epsilon <= {math.log(HASH_RANGE // 2):.2f} for local hashing, got "
                f"epsilon={self.epsilon!r}; its cells would outnumber its hashes, use grr or ss."
            )

    @property
    def num_cells(self) -> int:
        """Number of cells g: the whole number nearest to e**epsilon, plus 1."""
        return round(math.exp(self.epsilon)) + 1


@dataclass(frozen=True, kw_only=True)
class BinaryLocalHashing(LocalHashing):
    """Binary local hashing: local hashing into g = 2 cells.

    With E = e**epsilon, the report is a fresh public hash function to one bit and the value's bit
    under it, flipped with probability 1 / (E + 1): p = E / (E + 1), q = 1/2. Functions, guarantees
    and costs are those of `fedhh.oracles.local_hashing.LocalHashing`.

    V0 = (E + 1)**2 / (E - 1)**2, never below 1 however large epsilon is: one bit cannot say more.
    It is that of Bassily and Smith's oracle without its collisions, since no two clients share a
    function.

    References:
        Bassily, Smith (2015), "Local, private, efficient protocols for succinct histograms", STOC.
        Wang, Blocki, Li, Jha (2017), "Locally differentially private protocols for frequency
        estimation", USENIX Security, section 4, where it has its name.
    """

    @property
    def num_cells(self) -> int:
        """2, the values of a bit."""
        return 2


@dataclass(frozen=True, kw_only=True)
class HashedResponseOracle(SketchOracle):
    """A report is a row of k, drawn at random, and the value's cell of it, of m, or another cell.

    The cell is the value's own with probability p = e**epsilon / (e**epsilon + m - 1), otherwise
    one of the others. A sketch is k m numbers of reports. Subclasses choose m.
    """

    @property
    def aggregate_size(self) -> int:
        """Number of counts, k m."""
        return self.num_hashes * self.row_size

    @cached_property
    def p(self) -> float:
        """Chance that a client sends its value's own cell."""
        return 1 / (1 + (self.row_size - 1) * math.exp(-self.epsilon))

    @cached_property
    def q(self) -> float:
        """Chance that a report supports another value, over the draw of the hash functions."""
        return 1 / self.row_size

    def privatize(self, values: Values, *, rng: np.random.Generator) -> Reports:
        """Return ``(n, 2) int64``: row and cell."""
        values = self._check_values(values)
        rows = self._draw_rows(len(values), rng)
        cells = self.hashes.cells(rows, values)
        # One of the other cells: a uniform step from the own one, around the row.
        steps = rng.integers(1, self.row_size, size=len(values))
        steps[rng.random(len(values)) < self.p] = 0
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

    def cells(self, sketch: Sketch) -> Tally:
        """Return the numbers of reports, ``(k, m) int64``."""
        cells: Tally = self._tables(sketch[None])[0]
        return cells

    def log_prob(self, reports: Reports, value: int) -> Floats:
        """Return the log-probability of each report, for these hash functions."""
        rows, sent = reports.T
        cells = self.hashes.cells(rows, np.full(len(rows), value))
        log_p = math.log(self.p)
        own = np.where(sent == cells, log_p, log_p - self.epsilon)
        return own - math.log(self.num_hashes)

    def report_space(self) -> Reports:
        """Return all k m reports."""
        self._check_report_space(self.report_bits, width=2)
        space = itertools.product(range(self.num_hashes), range(self.row_size))
        return np.array(list(space), dtype=np.int64)

    @property
    def report_bits(self) -> float:
        """log2 k for the row, and log2 m for the cell."""
        return math.log2(self.num_hashes) + math.log2(self.row_size)

    def _tables(self, sketches: Sketch) -> Sketch:
        return sketches.reshape(-1, self.num_hashes, self.row_size)

    def _add_reports(self, reports: Reports, out: Sketch) -> None:
        np.add.at(self._tables(out)[0], (reports[:, 0], reports[:, 1]), 1)

    def _support(self, aggregates: Sketch, candidates: Values | None) -> Tally:
        return self._row_sums(self._tables(aggregates), candidates)


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

    Formal guarantees:
        * epsilon-local differential privacy, for any hash functions; the factor e**epsilon is
          reached wherever two values have different cells.
        * Estimates are unbiased over the draw of the functions, not for fixed ones.
        * `exact_variance` is the variance over draw and coins.
        * `sample_sketch` draws from the distribution of the sketch of fresh reports.

    Report size: log2 k + log2 m bits. Cost: O(1) per report, O(k) per candidate, memory O(k m).

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
        """Number of cells m: round(e**epsilon) + 1."""
        return round(math.exp(self.epsilon)) + 1
