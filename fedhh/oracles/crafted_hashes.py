"""Reports that a fake client makes up, for oracles whose reports speak of values by public codes.

A report names a hash function and a cell, a point, a coefficient and its sign. Which values it
supports is public, so a fake client looks for the report that supports the most of those it wants.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

import numpy as np

from fedhh.kernels.sketches import hadamard_rows
from fedhh.oracles.base import Reports, Tally, Values
from fedhh.oracles.codes import HadamardResponse, ProjectiveGeometryResponse
from fedhh.oracles.count_mean_sketch import CountMeanSketch
from fedhh.oracles.crafted_reports import CraftedReports, Oracle, bits_with, in_turn
from fedhh.oracles.hadamard_sketches import HadamardSketch
from fedhh.oracles.hashed_response import HashedResponseOracle
from fedhh.oracles.local_hashing import LocalHashing

HASH_FUNCTIONS = 1000
"""Hash functions that a fake client of local hashing tries for a report, unless told otherwise."""

_HASHES_AT_ONCE = 2**21


class CraftedHashes(CraftedReports[LocalHashing]):
    """Local hashing: of some random functions, the one that sends the most wanted values together.

    A report is that function and their cell. Some functions send all values to one cell: those
    with multipliers of 0, which a server would notice. They are the report that none surpasses.
    """

    num_functions: int = HASH_FUNCTIONS

    def uniform(self, count: int, *, rng: np.random.Generator) -> Reports:
        reports = self._functions(count, rng)
        reports[:, 3] = rng.integers(self.oracle.num_cells, size=count)
        return reports

    def supporting(self, wanted: Values, count: int, *, rng: np.random.Generator) -> Reports:
        return self._searched(wanted, 1, count, rng)

    def opposing(self, unwanted: Values, count: int, *, rng: np.random.Generator) -> Reports:
        return self._searched(unwanted, -1, count, rng)

    def best(self, wanted: Values) -> Reports:
        return np.zeros((1, 4), dtype=np.int64)

    def _functions(self, count: int, rng: np.random.Generator) -> Reports:
        reports = np.zeros((count, 4), dtype=np.int64)
        words = reports.view(np.uint64)
        words[:, :3] = rng.integers(0, 2**64, size=(count, 3), dtype=np.uint64)
        return reports

    def _searched(self, values: Values, sign: int, count: int, rng: np.random.Generator) -> Reports:
        # Any function has a cell for one value, and an empty one where values are fewer than cells.
        is_sure = len(values) == 1 if sign > 0 else len(values) < self.oracle.num_cells
        tries = 1 if is_sure else self.num_functions
        step = max(1, _HASHES_AT_ONCE // (tries * len(values)))
        reports = np.empty((count, 4), dtype=np.int64)
        for start in range(0, count, step):
            some = reports[start : start + step]
            some[:] = self._best_of(values, sign, tries, len(some), rng)
        return reports

    def _best_of(
        self, values: Values, sign: int, tries: int, count: int, rng: np.random.Generator
    ) -> Reports:
        """Return ``(count, 4)`` reports, each the best of so many functions, cells included."""
        functions = self._functions(count * tries, rng)
        words = functions.view(np.uint64)
        cells = np.sort(self.oracle._cells(words[:, :, None], values), axis=1)
        find = self._fullest if sign > 0 else self._emptiest
        loads, functions[:, 3] = find(cells, rng)
        best = np.argmax(sign * loads.reshape(count, tries), axis=1)
        return np.asarray(functions.reshape(count, tries, 4)[np.arange(count), best])

    def _fullest(self, cells: Values, rng: np.random.Generator) -> tuple[Values, Values]:
        """Return the most values that share a cell in each row of ascending cells, and the cell."""
        run = np.ones(len(cells), dtype=np.int64)
        loads, fullest = run.copy(), cells[:, 0].copy()
        for place in range(1, cells.shape[1]):
            run = np.where(cells[:, place] == cells[:, place - 1], run + 1, 1)
            # Where several cells are as full, the last one: functions are random anyway.
            fuller = run >= loads
            loads[fuller], fullest[fuller] = run[fuller], cells[fuller, place]
        return loads, fullest

    def _emptiest(self, cells: Values, rng: np.random.Generator) -> tuple[Values, Values]:
        """Return the fewest values of any cell, by row, and one such cell at random."""
        num_rows, g = len(cells), self.oracle.num_cells
        if cells.shape[1] >= g:
            places = cells + g * np.arange(num_rows)[:, None]
            counts = np.bincount(places.ravel(), minlength=num_rows * g).reshape(num_rows, g)
            emptiest = np.argmin(counts + rng.random(counts.shape), axis=1)
            return counts[np.arange(num_rows), emptiest], emptiest
        drawn = rng.integers(g, size=num_rows)
        while (full := np.flatnonzero((cells == drawn[:, None]).any(axis=1))).size:
            drawn[full] = rng.integers(g, size=full.size)
        return np.zeros(num_rows, dtype=np.int64), drawn


class CraftedSymbols(CraftedReports[Oracle]):
    """Oracles with few enough reports to look at each: one of those with the best score, at random.

    A report's score is what it adds to the support of the wanted values.
    """

    @property
    @abstractmethod
    def num_symbols(self) -> int:
        """Number of possible reports."""

    @abstractmethod
    def scores(self, values: Values) -> Tally:
        """Return ``(num_symbols,)``: what each report adds to the support of values in all."""

    @abstractmethod
    def reports(self, symbols: Values) -> Reports:
        """Return the reports with these numbers."""

    def uniform(self, count: int, *, rng: np.random.Generator) -> Reports:
        return self.reports(rng.integers(self.num_symbols, size=count))

    def supporting(self, wanted: Values, count: int, *, rng: np.random.Generator) -> Reports:
        scores = self.scores(wanted)
        return self.reports(rng.choice(np.flatnonzero(scores == scores.max()), size=count))

    def opposing(self, unwanted: Values, count: int, *, rng: np.random.Generator) -> Reports:
        scores = self.scores(unwanted)
        return self.reports(rng.choice(np.flatnonzero(scores == scores.min()), size=count))


class CraftedCells(CraftedSymbols[HashedResponseOracle]):
    """Randomized response to a hash: the row and its cell that hold the most wanted values."""

    @property
    def num_symbols(self) -> int:
        return self.oracle.num_hashes * self.oracle.row_size

    def scores(self, values: Values) -> Tally:
        rows = np.repeat(np.arange(self.oracle.num_hashes), len(values))
        cells = self.oracle.hashes.cells(rows, np.tile(values, self.oracle.num_hashes))
        return np.bincount(rows * self.oracle.row_size + cells, minlength=self.num_symbols)

    def reports(self, symbols: Values) -> Reports:
        return np.stack(np.divmod(symbols, self.oracle.row_size), axis=1)


class CraftedSigns(CraftedSymbols[HadamardSketch]):
    """Sketches of Hadamard entries: row, coefficient and sign that the most wanted values have.

    In a Hadamard Count Mean Sketch, coefficient 0 with +1 supports all values there are.
    """

    @property
    def num_symbols(self) -> int:
        return 2 * self.oracle.num_hashes * self.oracle.num_cells

    def scores(self, values: Values) -> Tally:
        oracle, size = self.oracle, self.oracle.num_cells
        rows = np.repeat(np.arange(oracle.num_hashes), len(values))
        cells = oracle.hashes.cells(rows, np.tile(values, oracle.num_hashes))
        # A value's signs are its cell's row of the matrix, times its sign at coefficient 0.
        table = np.zeros((oracle.num_hashes, size), dtype=np.int64)
        places = rows, cells * size // oracle.row_size
        np.add.at(table, places, oracle.signs(np.zeros_like(cells), cells))
        hadamard_rows(table)
        agreement = table.ravel()
        return (len(values) + np.stack([-agreement, agreement], axis=1).ravel()) // 2

    def reports(self, symbols: Values) -> Reports:
        entries, signs = np.divmod(symbols, 2)
        rows, coefficients = np.divmod(entries, self.oracle.num_cells)
        return np.stack([rows, coefficients, 2 * signs - 1], axis=1)


class CraftedHalfBlocks(CraftedSymbols[HadamardResponse]):
    """Hadamard response: the symbol in the most wanted values' halves of their blocks."""

    @property
    def num_symbols(self) -> int:
        return self.oracle.aggregate_size

    def scores(self, values: Values) -> Tally:
        scores = np.zeros(self.num_symbols, dtype=np.int64)
        scores[self.oracle.symbols[values]] = 1
        hadamard_rows(scores.reshape(-1, self.oracle.block_size))
        return scores

    def reports(self, symbols: Values) -> Reports:
        return symbols


class CraftedPoints(CraftedSymbols[ProjectiveGeometryResponse]):
    """Projective geometry response: the point orthogonal to the most wanted ones."""

    @property
    def num_symbols(self) -> int:
        return self.oracle.aggregate_size

    def scores(self, values: Values) -> Tally:
        # Orthogonality is symmetric: ask for every point's support by the wanted ones.
        points = replace(self.oracle, domain_size=self.num_symbols)
        sent = np.zeros(self.num_symbols, dtype=np.int64)
        sent[values] = 1
        return points.support(sent)

    def reports(self, symbols: Values) -> Reports:
        return symbols


class CraftedVectors(CraftedReports[CountMeanSketch]):
    """Count Mean Sketch: in a random row, the wanted values' cells are +1.

    Every row takes all wanted values. Others are +1 up to what an honest report expects of them,
    rounded down.
    """

    def uniform(self, count: int, *, rng: np.random.Generator) -> Reports:
        rows = rng.integers(self.oracle.num_hashes, size=count)
        vectors = rng.integers(2, size=(count, self.oracle.num_cells), dtype=np.uint8)
        return self.oracle.pack(rows, vectors.astype(np.bool_))

    def supporting(self, wanted: Values, count: int, *, rng: np.random.Generator) -> Reports:
        return self._vectors(wanted, 1, count, rng)

    def opposing(self, unwanted: Values, count: int, *, rng: np.random.Generator) -> Reports:
        return self._vectors(unwanted, 0, count, rng)

    def _vectors(self, values: Values, bit: int, count: int, rng: np.random.Generator) -> Reports:
        oracle = self.oracle
        expected = int(oracle.p + (oracle.num_cells - 1) * oracle.flip_probability)
        rows = np.sort(in_turn(rng.permutation(oracle.num_hashes), count, rng=rng))
        vectors = np.empty((count, oracle.num_cells), dtype=np.uint8)
        for row in np.unique(rows).tolist():
            own = np.flatnonzero(rows == row)
            cells = np.unique(oracle.hashes.cells(np.full(len(values), row), values))
            vectors[own] = bits_with(
                oracle.num_cells, cells, bit=bit, ones=expected, count=len(own), rng=rng
            )
        return oracle.pack(rows, vectors.astype(np.bool_))
