"""Local hashing: randomized response on a hash of the value, under a function of the report."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fedhh.kernels.reports import count_supports
from fedhh.oracles.attack import random_subsets
from fedhh.oracles.base import Reports, Tally, Values
from fedhh.oracles.hashed import Hashed
from fedhh.oracles.values import GeneralizedRandomizedResponse
from fedhh.random import GOLDEN
from fedhh.validation import InputError

FUNCTIONS_TRIED = 1000
"""Hash functions that a device tries for a crafted report."""

_HASHES_AT_ONCE = 2**21

HASH_RANGE = 2**32
"""Hashes of a fresh function, of which cells are made."""

_HALF = np.uint64(32)
_LOW = np.uint64(HASH_RANGE - 1)


@dataclass(frozen=True, kw_only=True)
class LocalHashing(Hashed):
    """Local hashing: a fresh public hash function for every report, into g cells.

    The report is the function and the true cell with probability p = E / (E + g - 1), else each
    other cell with probability 1 / (E + g - 1), where E = e**epsilon. It may be tallied for any
    candidates, also such as were unknown when it was made. Subclasses choose g.

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
          quite: functions are pairwise independent, and so no distribution of a whole tally is
          known.

    Cost: O(1) per report on the client, O(n c) for a tally of c candidates. A report is
    ``(4,) int64``: the low and high multipliers and the offset as 64-bit words, and the cell.

    References:
        Wang, Blocki, Li, Jha (2017), "Locally differentially private protocols for frequency
        estimation", USENIX Security, section 4.
        Thorup (2015), "High speed hashing for integers and strings", arXiv:1504.06804.
    """

    @property
    @abstractmethod
    def num_cells(self) -> int:
        """Number of cells g, at least 2."""

    @cached_property
    def inner(self) -> GeneralizedRandomizedResponse:
        return GeneralizedRandomizedResponse(epsilon=self.epsilon, domain_size=self.num_cells)

    @property
    def functions(self) -> Values:
        """One function, whose multiplier spreads small values over all cells."""
        return np.array([[GOLDEN, 0, 0]], dtype=np.uint64).view(np.int64)

    @property
    def function_bits(self) -> float:
        """64 bits for each word that the domain needs."""
        return 64.0 * (3 if self.domain_size > HASH_RANGE else 2)

    def _draw_functions(self, count: int, rng: np.random.Generator) -> Values:
        return rng.integers(0, 2**64, size=(count, 3), dtype=np.uint64).view(np.int64)

    def _cells(self, functions: Values, values: Values) -> Values:
        words, numbers = functions.view(np.uint64), values.astype(np.uint64)
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

    def _craft(self, values: Values, sign: int, count: int, rng: np.random.Generator) -> Reports:
        """Return reports, each with the best of `FUNCTIONS_TRIED` random functions.

        Some functions send all values to one cell: those with multipliers of 0, which a server
        would notice; see `best_report`.
        """
        # Any function has a cell for one value, and an empty one where values are fewer than cells.
        is_sure = len(values) == 1 if sign > 0 else len(values) < self.num_cells
        tries = 1 if is_sure else FUNCTIONS_TRIED
        step = max(1, _HASHES_AT_ONCE // (tries * (len(values) + 1)))
        numbers = [min(step, count - start) for start in range(0, count, step)]
        parts = [self._best_of(values, sign, tries, number, rng) for number in numbers]
        return np.concatenate([np.empty((0, 4), dtype=np.int64), *parts])

    def _best_of(
        self, values: Values, sign: int, tries: int, count: int, rng: np.random.Generator
    ) -> Reports:
        """Return reports, each the best of so many functions and their cells."""
        g, num_functions = self.num_cells, count * tries
        functions = self._draw_functions(num_functions, rng)
        cells = self._cells(functions[:, :, None], values)
        # Of so many cells of a function, one at least has no value, or as few as any.
        more = min(g, len(values) + 1) if sign <= 0 else 0
        others = random_subsets(g, more, num_functions, rng=rng)
        places = np.concatenate([cells, others], axis=1) + g * np.arange(num_functions)[:, None]
        unique, numbers = np.unique(places, return_inverse=True)
        held = np.tile(np.arange(places.shape[1]) < len(values), num_functions)
        loads = np.bincount(numbers.ravel(), weights=held)
        first = np.searchsorted(unique, g * tries * np.arange(count))
        # Chance decides between equals.
        scores = sign * loads + rng.random(len(loads))
        best = [first[i] + np.argmax(part) for i, part in enumerate(np.split(scores, first[1:]))]
        chosen = unique[np.array(best, dtype=np.int64)]
        return np.concatenate([functions[chosen // g], (chosen % g)[:, None]], axis=1)

    def best_report(self, values: npt.ArrayLike) -> Reports:
        return np.zeros((1, 4), dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class OptimizedLocalHashing(LocalHashing):
    """Optimized local hashing: local hashing into g = round(e**epsilon) + 1 cells.

    With E = e**epsilon, the report is a fresh public hash function and the value's cell under it,
    with probability p = E / (E + g - 1), or one of the others; q = 1/g. Functions, guarantees,
    costs and references are those of `LocalHashing`.

    V0 = q(1-q) / (p-q)**2, which is 4 E / (E - 1)**2 at g = E + 1: that of optimized unary
    encoding, in a report whose size does not depend on the domain's.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epsilon > math.log(HASH_RANGE // 2):
            raise InputError(
                f"Expected epsilon <= {math.log(HASH_RANGE // 2):.2f} for local hashing, got "
                f"epsilon={self.epsilon!r}; its cells would outnumber its hashes, use grr or ss."
            )

    @property
    def num_cells(self) -> int:
        return round(math.exp(self.epsilon)) + 1


@dataclass(frozen=True, kw_only=True)
class BinaryLocalHashing(LocalHashing):
    """Binary local hashing: local hashing into g = 2 cells.

    With E = e**epsilon, the report is a fresh public hash function to one bit and the value's bit
    under it, flipped with probability 1 / (E + 1): p = E / (E + 1), q = 1/2. Functions, guarantees
    and costs are those of `LocalHashing`.

    V0 = (E + 1)**2 / (E - 1)**2, never below 1 however large epsilon is: one bit cannot say more.
    It is that of Bassily and Smith's oracle without its collisions, since no two clients share a
    function.

    References:
        Bassily, Smith (2015), "Local, private, efficient protocols for succinct histograms", STOC.
    """

    @property
    def num_cells(self) -> int:
        return 2
