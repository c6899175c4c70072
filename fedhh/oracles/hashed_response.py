"""Randomized response on the cell of a value, under one of k public hash functions."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedhh.oracles.base import Floats, Reports, ServerWork, Tally, Values
from fedhh.oracles.sketch import Sketch, SketchOracle


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
        values = self.check_values(values)
        rows = self._draw_rows(len(values), rng)
        cells = self.hashes.cells(rows, values)
        # One of the other cells: a uniform step from the own one, around the row.
        steps = rng.integers(1, self.row_size, size=len(values))
        steps[rng.random(len(values)) < self.p] = 0
        return np.stack([rows, (cells + steps) % self.row_size], axis=1)

    def aggregate(self, reports: Reports) -> Sketch:
        """Return the number of reports by row and cell."""
        return self._add(reports, np.zeros(self.aggregate_size, dtype=np.int64))

    def privatize_and_aggregate(
        self, values: Values, *, rng: np.random.Generator, out: Sketch | None = None
    ) -> Sketch:
        """Return the sketch of fresh reports; a report is two numbers, so they are made."""
        out = self._sketch_of(out)
        return self._add(self.privatize(values, rng=rng), out)

    def sample_sketch(self, true_counts: Values, *, rng: np.random.Generator) -> Sketch:
        """Return a sketch drawn without reports; exact. Cost O(k (m + c)) and the cells held."""
        held = self._cell_counts(true_counts, rng)
        other = (1 - self.p) / (self.row_size - 1)
        table = np.zeros_like(held)
        for row, cell in zip(*np.nonzero(held), strict=True):
            chances = np.full(self.row_size, other)
            chances[cell] = self.p
            table[row] += rng.multinomial(held[row, cell], chances)
        return table.ravel()

    def support(self, sketch: Sketch, candidates: Values) -> Tally:
        """Return how many reports sent each candidate's cell of their row."""
        supporters: Tally = self._row_sums(self._tables(sketch[None]), candidates)[0]
        return supporters

    def cells(self, sketch: Sketch) -> Tally:
        """Return the numbers of reports, ``(k, m) int64``."""
        cells: Tally = self._tables(sketch[None])[0]
        return cells

    def support_of_all(self, sketches: Sketch) -> Tally:
        """Return the support of every value in each of ``(t, aggregate_size)`` sketches."""
        return self._row_sums_of_all(self._tables(sketches))

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
    def server_work(self) -> ServerWork:
        """One cell; a candidate is a cell of each row."""
        return ServerWork("1", 1, "k", self.num_hashes)

    @property
    def report_bits(self) -> float:
        """log2 k for the row, and log2 m for the cell."""
        return math.log2(self.num_hashes) + math.log2(self.row_size)

    def _tables(self, sketches: Sketch) -> Sketch:
        return sketches.reshape(-1, self.num_hashes, self.row_size)

    def _add(self, reports: Reports, sketch: Sketch) -> Sketch:
        np.add.at(self._tables(sketch)[0], (reports[:, 0], reports[:, 1]), 1)
        return sketch
