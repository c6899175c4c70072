"""Reports that a fake client makes up, for oracles whose reports speak of values directly.

A device that does not follow its randomizer may send any report of the oracle's report space. Its
reports support the values it wants, as many as one report can; what is left of a report is drawn at
random, so that it has the shape of an honest one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

import numpy as np

from fedhh.kernels.reports import draw_subsets
from fedhh.oracles.base import FrequencyOracle, PureOracle, Reports, Tally, Values
from fedhh.oracles.bits import DBitFlip, UnaryEncoding
from fedhh.oracles.histogram_encoding import HistogramEncoding
from fedhh.oracles.subset_selection import SubsetSelection, add_subset_votes
from fedhh.plugin_returns import ChecksReturns
from fedhh.random import kernel_state

Oracle = TypeVar("Oracle", bound=FrequencyOracle)


_BITS_AT_ONCE = 2**25


def aggregate_in_parts(
    oracle: FrequencyOracle, make: Callable[[int], Reports], count: int, out: Tally
) -> None:
    """Add reports to ``(aggregate_size,) int64``, made in parts that fit the memory.

    Args:
        oracle: What they are for.
        make: Makes so many.
        count: How many in all.
        out: Changed in place.
    """
    step = max(1, int(_BITS_AT_ONCE // max(oracle.report_bits, 64)))
    for start in range(0, count, step):
        oracle.aggregate(make(min(step, count - start)), out=out)


class CraftedReports(ChecksReturns, ABC, Generic[Oracle]):
    """What a device that makes its reports up may send to an oracle of one family.

    Args:
        oracle: The randomizer that honest devices run.
    """

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle

    @abstractmethod
    def uniform(self, count: int, *, rng: np.random.Generator) -> Reports:
        """Return ``count`` reports, uniform over the report space."""

    @abstractmethod
    def supporting(self, wanted: Values, count: int, *, rng: np.random.Generator) -> Reports:
        """Return reports that raise the estimates of ``(r,)`` distinct, ascending values."""

    @abstractmethod
    def opposing(self, unwanted: Values, count: int, *, rng: np.random.Generator) -> Reports:
        """Return reports that lower the estimates of ``(r,)`` distinct, ascending values."""

    def effect(self, reports: Reports, values: Values) -> float:
        """Return what one of the reports adds, in the mean, to the values' estimates in all."""
        support = self.oracle.support(reports=reports, candidates=values)
        return float(self.oracle.estimate(support, len(reports)).sum()) / len(reports)

    def add_supporting(
        self, wanted: Values, count: int, out: Tally, *, rng: np.random.Generator
    ) -> None:
        """Add so many of `supporting` reports to ``(aggregate_size,) int64``, in place."""
        make = partial(self.supporting, wanted, rng=rng)
        aggregate_in_parts(self.oracle, make, count, out)

    def best(self, wanted: Values) -> Reports:
        """Return one report that no other one surpasses in what it adds to the estimates.

        All that `supporting` returns are as good, unless a family says otherwise.
        """
        return self.supporting(wanted, 1, rng=np.random.default_rng(0))


def random_subsets(size: int, members: int, count: int, *, rng: np.random.Generator) -> Values:
    """Return ``(count, members) int64``: uniform subsets of [0, size), in no order."""
    subsets = np.empty((count, members), dtype=np.int64)
    if members == size:
        subsets[:] = np.arange(size)
    elif members:
        # A subset that holds a uniform value and uniform others is uniform.
        first = rng.integers(size, size=count)
        draw_subsets(first, size, np.uint64(0), subsets, kernel_state(rng))
    return subsets


def other_values(numbers: Values, taken: Values) -> Values:
    """Return, for numbers from 0, which values these are among those not in ascending ``taken``."""
    before = np.searchsorted(taken - np.arange(len(taken)), numbers.ravel(), side="right")
    return np.asarray(numbers + before.reshape(numbers.shape), dtype=np.int64)


def in_turn(values: Values, count: int, *, rng: np.random.Generator) -> Values:
    """Return ``(count,)`` of the values, each as often as any other but for one."""
    return np.asarray(values[(np.arange(count) + rng.integers(len(values))) % len(values)])


class CraftedValues(CraftedReports[PureOracle]):
    """Randomized response: a report is a value, a wanted one."""

    def uniform(self, count: int, *, rng: np.random.Generator) -> Reports:
        return rng.integers(self.oracle.domain_size, size=count)

    def supporting(self, wanted: Values, count: int, *, rng: np.random.Generator) -> Reports:
        return in_turn(wanted, count, rng=rng)

    def opposing(self, unwanted: Values, count: int, *, rng: np.random.Generator) -> Reports:
        rest = self.oracle.domain_size - len(unwanted)
        if not rest:
            return self.uniform(count, rng=rng)
        return other_values(rng.integers(rest, size=count), unwanted)


class CraftedSubsets(CraftedReports[SubsetSelection]):
    """Subset Selection: a report holds all wanted values, or d of them, and others at random."""

    def uniform(self, count: int, *, rng: np.random.Generator) -> Reports:
        return np.sort(
            random_subsets(self.oracle.domain_size, self.oracle.d, count, rng=rng), axis=1
        )

    def supporting(self, wanted: Values, count: int, *, rng: np.random.Generator) -> Reports:
        inside = min(len(wanted), self.oracle.d)
        return self._mixed(wanted, inside, count, rng)

    def add_supporting(
        self, wanted: Values, count: int, out: Tally, *, rng: np.random.Generator
    ) -> None:
        if len(wanted) > 1:
            super().add_supporting(wanted, count, out, rng=rng)
        else:
            # An honest report that never lacks its value; none is stored.
            values = np.repeat(wanted, count)
            add_subset_votes(values, out, subset_size=self.oracle.d, miss=np.uint64(0), rng=rng)

    def opposing(self, unwanted: Values, count: int, *, rng: np.random.Generator) -> Reports:
        rest = self.oracle.domain_size - len(unwanted)
        return self._mixed(unwanted, max(0, self.oracle.d - rest), count, rng)

    def _mixed(self, values: Values, inside: int, count: int, rng: np.random.Generator) -> Reports:
        """Return subsets with so many of the values, and the rest of d from the others."""
        own = values[random_subsets(len(values), inside, count, rng=rng)]
        rest = self.oracle.domain_size - len(values)
        others = random_subsets(rest, self.oracle.d - inside, count, rng=rng)
        return np.sort(np.concatenate([own, other_values(others, values)], axis=1), axis=1)


def bits_with(
    size: int, values: Values, *, bit: int, ones: int, count: int, rng: np.random.Generator
) -> Reports:
    """Return ``(count, size) uint8``: this bit at some values, ones elsewhere up to a number."""
    bits = np.zeros((count, size), dtype=np.uint8)
    bits[:, values] = bit
    rest = size - len(values)
    others = random_subsets(rest, min(max(ones - bit * len(values), 0), rest), count, rng=rng)
    np.put_along_axis(bits, other_values(others, values), 1, axis=1)
    return bits


class CraftedBits(CraftedReports[UnaryEncoding]):
    """Unary encodings: the wanted bits are 1; a report has as many ones as an honest one expects.

    That is p + (s - 1) q, rounded down, as Cao, Jia, Gong (2021) pad; more if more are wanted.
    """

    def uniform(self, count: int, *, rng: np.random.Generator) -> Reports:
        return rng.integers(2, size=(count, self.oracle.domain_size), dtype=np.uint8)

    def supporting(self, wanted: Values, count: int, *, rng: np.random.Generator) -> Reports:
        return self._bits(wanted, 1, count, rng)

    def opposing(self, unwanted: Values, count: int, *, rng: np.random.Generator) -> Reports:
        return self._bits(unwanted, 0, count, rng)

    def _bits(self, values: Values, bit: int, count: int, rng: np.random.Generator) -> Reports:
        oracle = self.oracle
        ones = int(oracle.p + (oracle.domain_size - 1) * oracle.q)
        return bits_with(oracle.domain_size, values, bit=bit, ones=ones, count=count, rng=rng)


class CraftedEntries(CraftedReports[HistogramEncoding]):
    """Histogram encodings: the wanted entries are the largest that a report may have.

    All others are those of an honest report of a random value.
    """

    def uniform(self, count: int, *, rng: np.random.Generator) -> Reports:
        low, high = self._ends
        return rng.integers(low, high, size=(count, self.oracle.domain_size), endpoint=True)

    def supporting(self, wanted: Values, count: int, *, rng: np.random.Generator) -> Reports:
        return self._entries(wanted, self._ends[1], count, rng)

    def opposing(self, unwanted: Values, count: int, *, rng: np.random.Generator) -> Reports:
        return self._entries(unwanted, self._ends[0], count, rng)

    @property
    def _ends(self) -> tuple[int, int]:
        return -self.oracle.margin, self.oracle.steps + self.oracle.margin

    def _entries(self, values: Values, entry: int, count: int, rng: np.random.Generator) -> Reports:
        held = rng.integers(self.oracle.domain_size, size=count)
        reports = self.oracle.privatize(held, rng=rng)
        reports[:, values] = entry
        return reports


class CraftedSampledBits(CraftedReports[DBitFlip]):
    """dBitFlip: a report draws all wanted values, or d of them, each with a 1.

    Other values that it draws have the bits of values that the client does not hold.
    """

    def uniform(self, count: int, *, rng: np.random.Generator) -> Reports:
        oracle = self.oracle
        drawn = random_subsets(oracle.domain_size, oracle.d, count, rng=rng)
        return np.sort(2 * drawn + rng.integers(2, size=drawn.shape), axis=1)

    def supporting(self, wanted: Values, count: int, *, rng: np.random.Generator) -> Reports:
        return self._drawn(wanted, 1, count, rng)

    def opposing(self, unwanted: Values, count: int, *, rng: np.random.Generator) -> Reports:
        return self._drawn(unwanted, 0, count, rng)

    def _drawn(self, values: Values, bit: int, count: int, rng: np.random.Generator) -> Reports:
        oracle = self.oracle
        inside = min(len(values), oracle.d)
        own = values[random_subsets(len(values), inside, count, rng=rng)]
        rest = oracle.domain_size - len(values)
        others = other_values(random_subsets(rest, oracle.d - inside, count, rng=rng), values)
        bits = rng.random(others.shape) < oracle.flip_probability
        return np.sort(np.concatenate([2 * own + bit, 2 * others + bits], axis=1), axis=1)
