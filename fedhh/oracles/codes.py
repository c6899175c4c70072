"""A report is one symbol of a public code: Hadamard response, projective geometry response."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from fedhh.arrays import Floats, Ints
from fedhh.kernels.sketches import hadamard_rows
from fedhh.oracles.base import LARGEST_TALLY, PureOracle, Reports, Tally, Values
from fedhh.oracles.families import CountedOutputs, Moments, ScoredOracle
from fedhh.oracles.hadamard import hadamard_entries, parity
from fedhh.random import Stream, generator
from fedhh.settings import Seed
from fedhh.validation import InputError


@dataclass(frozen=True, kw_only=True)
class HadamardResponse(CountedOutputs, ScoredOracle):
    """Hadamard response (Acharya, Sun, Zhang 2019, section 5).

    With E = e**epsilon and s values, outputs lie in blocks of b, a power of two. Each value has a
    row of the Hadamard matrix of order b, not the first, in one of the blocks; a block holds b - 1
    values. The report is an output y with probability E / Z if y is in the half of the value's
    block where its row is +1, otherwise 1 / Z; Z = (b/2) (E - 1) + K for K outputs in all. b is the
    least power of two above s / B + 1, B = 2**floor(log2 min(E, 2 s)), about s / E: the half-block
    then gets a constant share of all probability. Up to E = 2 there is one block.

    The server scores a value +1 for reports in its half of its block, -1 for those in the other
    half, 0 for all others: all scores follow from one Walsh-Hadamard transform of each block.

    Formal guarantees:
        * epsilon-local differential privacy: E is reached.
        * Estimates are unbiased, wherever values have their rows.
        * `exact_variance` is the variance for the rows at hand: reports of values in the same block
          make (b/2) (E + 1) / b times as much noise as those of other blocks. So no variance
          follows from a value's count alone, and p and q do not exist. `variance` is the exact mean
          over the public random placement of values in rows.

    V0 is 1.5 to 2.8 times Subset Selection's for epsilon from 1 to 10 and s from 100 to 10**6,
    mostly about twice; below epsilon ln 2 it is that of one bit, (E + 1)**2 / (E - 1)**2.

    Report size: log2 K bits. Cost: O(1) per report, O(K log b) for all values, O(s) memory.

    Attributes:
        placement_seed: Seed of the public placement of values in rows; clients and server must
            agree on it.

    References:
        Acharya, Sun, Zhang (2019), "Hadamard response: estimating distributions privately,
        efficiently, and with little communication", AISTATS, Algorithms 1 and 2.
    """

    has_public_coins: ClassVar[bool] = True

    placement_seed: Seed = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.aggregate_size > LARGEST_TALLY:
            raise InputError(
                f"Expected at most {LARGEST_TALLY} outputs of hadamard response, got "
                f"{self.aggregate_size} for domain_size={self.domain_size}; use olh."
            )

    @cached_property
    def block_size(self) -> int:
        """Outputs of a block, b."""
        # Beyond 2 s, e**epsilon says no more, and might not be a float.
        most = math.log2(2 * self.domain_size)
        blocks = 2 ** math.floor(min(self.epsilon / math.log(2), most))
        return int(2 ** math.ceil(math.log2(self.domain_size / blocks + 1)))

    @property
    def aggregate_size(self) -> int:
        return self.block_size * -(-self.domain_size // (self.block_size - 1))

    @property
    def _own_share(self) -> float:
        """Share of a report's distribution that is uniform over its value's half-block."""
        half, outputs = self.block_size / 2, self.aggregate_size
        bound = half * -math.expm1(-self.epsilon)
        return bound / (bound + outputs * math.exp(-self.epsilon))

    @cached_property
    def symbols(self) -> Values:
        """The public placement, ``(s,) int64``: b times each value's block, and its row."""
        rng = generator(self.placement_seed, Stream.HASHING, self.domain_size, self.block_size)
        places = rng.permutation(self.domain_size)
        blocks, rows = np.divmod(places, self.block_size - 1)
        return np.asarray(blocks * self.block_size + rows + 1, dtype=np.int64)

    @property
    def held(self) -> Moments:
        share = self._own_share
        in_block = share + (1 - share) * self.block_size / self.aggregate_size
        return Moments(mean=share, variance=in_block - share**2)

    @property
    def other(self) -> Moments:
        """Moments of a report's score of another value, over the placement; its mean is 0."""
        full, rest = divmod(self.domain_size, self.block_size - 1)
        others = full * (self.block_size - 1) * (self.block_size - 2) + rest * (rest - 1)
        together = others / (self.domain_size * (self.domain_size - 1))
        free = (1 - self._own_share) * self.block_size / self.aggregate_size
        return Moments(mean=0.0, variance=free + self._own_share * together)

    def exact_variance(self, true_counts: Values) -> Floats:
        """Return the exact variance of every value's estimate, for the placement at hand.

        ``true_counts``, ``(domain_size,) int64``, says how many clients hold each value.
        """
        counts = np.asarray(true_counts, dtype=np.float64)
        blocks = self.symbols // self.block_size
        together = np.bincount(blocks, weights=counts)[blocks] - counts
        free = (1 - self._own_share) * self.block_size / self.aggregate_size
        scores = counts * self.held.variance + (counts.sum() - counts) * free
        return np.asarray((scores + together * self._own_share) / self.held.mean**2)

    def privatize(self, values: Values, *, rng: np.random.Generator) -> Reports:
        symbols = self.symbols[self._check_values(values)]
        n, rows = len(symbols), symbols % self.block_size
        columns = rng.integers(self.block_size, size=n)
        # Columns of the wrong sign and of the right one differ in a bit that the row has.
        columns ^= parity(rows & columns) * (rows & -rows)
        free = rng.integers(self.aggregate_size, size=n)
        return np.where(rng.random(n) < self._own_share, symbols - rows + columns, free)

    def _support(self, aggregates: Tally, candidates: Values | None) -> Tally:
        # A value's score: reports in its half of its block, less those in the other half.
        symbols = self.symbols if candidates is None else self.symbols[candidates]
        scores = aggregates.copy()
        hadamard_rows(scores.reshape(-1, self.block_size))
        return np.asarray(scores[:, symbols])

    def scores(self, loads: Tally) -> Tally:
        # The matrix is symmetric.
        scores = np.zeros((len(loads), self.aggregate_size), dtype=np.int64)
        scores[:, self.symbols] = loads
        hadamard_rows(scores.reshape(-1, self.block_size))
        return scores

    def log_prob(self, reports: Reports, value: int) -> Floats:
        block, row = divmod(int(self.symbols[value]), self.block_size)
        columns = (reports % self.block_size).astype(np.int64)
        entries = hadamard_entries(np.full(len(reports), row), columns)
        in_half = (reports // self.block_size == block) & (entries == 1)
        half, outputs = self.block_size / 2, self.aggregate_size
        # ln Z, less epsilon.
        total = math.log(half * -math.expm1(-self.epsilon) + outputs * math.exp(-self.epsilon))
        return np.where(in_half, 0.0, -self.epsilon) - total


_MOST_POINTS = 2**26

_LARGEST_TRANSFORM = 2**25
"""Of numbers; more do not fit a small machine."""

_POINTS_AT_ONCE = 2**16


@dataclass(frozen=True, kw_only=True)
class ProjectiveGeometryResponse(CountedOutputs, PureOracle):
    """Projective geometry response (Feldman, Nelson, Nguyen, Talwar 2022, section 3).

    With E = e**epsilon, let r be the prime nearest to E + 1 and t the least dimension for which
    the projective space over the field of r elements has K = (r**t - 1) / (r - 1) >= s points.
    Values are points, and the report is a point: each of the c = (r**(t-1) - 1) / (r - 1) ones
    orthogonal to the client's with probability E / Z, each other with 1 / Z, Z = c E + K - c. It
    supports the values orthogonal to it. Any two values have c' = (r**(t-2) - 1) / (r - 1) of these
    in common, so p = c E / Z and q = (c' E + c - c') / Z.

    The paper allows prime powers, which have other arithmetic; primes alone are used here.

    Formal guarantees:
        * epsilon-local differential privacy, exactly: E is reached.
        * The estimate is unbiased; V0 = q(1-q) / (p-q)**2, within 10 percent of Subset
          Selection's where s is at least ten times E, within 5 percent from thirty times.

    Where it does not fit: at t = 2 every point is orthogonal to one point alone, so it is
    randomized response over r + 1 symbols; if s is below r + 1, `grr` is better. And K grows
    by steps of r: beyond 2**26 points the oracle is refused. At epsilon 10, r = 22027, 22,028
    values fit, and the next dimension has 485,210,757 points.

    Report size: log2 K bits. Cost: O(t) per report; for all values O(n + r**t log K), by one
    Fourier transform over the field's vectors, or O(n + s c) where that is less.

    A report is one int64, the point's number; an aggregate is how often each of K points was sent.

    References:
        Feldman, Nelson, Nguyen, Talwar (2022), "Private frequency estimation via projective
        geometry", ICML, section 3. Its server adds up by dynamic programming; the sums are the
        same.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epsilon > math.log(_MOST_POINTS):
            raise InputError(
                f"Expected epsilon <= {math.log(_MOST_POINTS):.2f} for pgr, got "
                f"epsilon={self.epsilon!r}; its field would be too large, use grr or ss."
            )
        if self.aggregate_size > _MOST_POINTS:
            raise InputError(
                f"Expected a projective space of at most {_MOST_POINTS:,} points for pgr, got "
                f"{self.aggregate_size:,} over the field of {self.field_size:,} for domain_size="
                f"{self.domain_size:,} at epsilon={self.epsilon!r}; use ss."
            )

    @cached_property
    def field_size(self) -> int:
        """r, the prime nearest to e**epsilon + 1, the smaller of two."""
        aim = math.exp(self.epsilon) + 1
        below = next(each for each in itertools.count(math.floor(aim), -1) if _is_prime(each))
        above = next(each for each in itertools.count(math.floor(aim) + 1) if _is_prime(each))
        # Rounding must not decide between two that are equally near.
        return below if aim - below <= above - aim + 1e-9 else above

    @cached_property
    def num_coordinates(self) -> int:
        """t, at least 2."""
        return next(t for t in itertools.count(2) if self._points_of(t) >= self.domain_size)

    def _points_of(self, num_coordinates: int) -> int:
        r = self.field_size
        return int((r**num_coordinates - 1) // (r - 1))

    @cached_property
    def aggregate_size(self) -> int:
        """K, the number of points."""
        return self._points_of(self.num_coordinates)

    @cached_property
    def num_supporting(self) -> int:
        """c, how many reports support a value."""
        return self._points_of(self.num_coordinates - 1)

    @property
    def _weight(self) -> float:
        others = self.aggregate_size - self.num_supporting
        return self.num_supporting + others * math.exp(-self.epsilon)

    @property
    def p(self) -> float:
        return self.num_supporting / self._weight

    @property
    def q(self) -> float:
        common = self._points_of(self.num_coordinates - 2)
        lone = (self.num_supporting - common) * math.exp(-self.epsilon)
        return (common + lone) / self._weight

    @cached_property
    def _firsts(self) -> Values:
        """``(t,) int64``: the least number of a point with m coordinates after its 1."""
        return np.array([self._points_of(m) for m in range(self.num_coordinates)], dtype=np.int64)

    @property
    def _shape(self) -> tuple[int, ...]:
        """Of an array of the field's vectors: r, t times."""
        return (self.field_size,) * self.num_coordinates

    @cached_property
    def _inverses(self) -> Values:
        """``(r,) int64``: inverses modulo r, by Fermat's little theorem; 0 for 0."""
        inverses, power = np.ones((2, self.field_size), dtype=np.int64)
        power *= np.arange(self.field_size)
        for bit in reversed(f"{self.field_size - 2:b}"):
            inverses = inverses * power % self.field_size if bit == "1" else inverses
            power = power * power % self.field_size
        return inverses

    def privatize(self, values: Values, *, rng: np.random.Generator) -> Reports:
        points = self._coordinates(self._check_values(values))
        # A report is free, uniform over all points, or bound to those that support its value.
        choices = rng.integers(self.num_supporting, size=len(values))
        bound = self._orthogonal(points, self._coordinates(choices))
        free = rng.integers(self.aggregate_size, size=len(values))
        is_bound = rng.random(len(values)) < -math.expm1(-self.epsilon) * self.p
        return np.where(is_bound, bound, free)

    def _orthogonal(self, points: Values, choices: Values) -> Values:
        """Return the numbers of points orthogonal to some, one for each of c choices.

        All coordinates but one are those of the choice, whose first one is 0: of a point of one
        dimension less. The one left out is where the given point has its 1, so it follows. Both
        are coordinates, ``(t, ...) int64``, that broadcast.
        """
        places = np.arange(self.num_coordinates).reshape(-1, *(1,) * (choices.ndim - 1))
        first = (points != 0).argmax(axis=0)
        own = places == first
        # Close the gap at the front: what comes before the left-out coordinate moves to the left.
        others = np.where(places < first, np.roll(choices, -1, axis=0), np.where(own, 0, choices))
        others = np.where(own, -(others * points).sum(axis=0) % self.field_size, others)
        lead = (others != 0).argmax(axis=0)
        scale = self._inverses[np.take_along_axis(others, lead[None], axis=0)]
        after = self.num_coordinates - 1 - lead
        vectors = np.ravel_multi_index(tuple(others * scale % self.field_size), self._shape)
        return np.asarray(vectors - self.field_size**after + self._firsts[after], dtype=np.int64)

    def _support(self, aggregates: Tally, candidates: Values | None) -> Tally:
        # The cost is the class's, c for s.
        if candidates is None:
            candidates = np.arange(self.domain_size)
        if self.transforms(len(candidates)):
            supports = [self._transformed(each, candidates) for each in aggregates]
            return np.array(supports).reshape(len(aggregates), len(candidates))
        choices = self._coordinates(np.arange(self.num_supporting))[:, None]
        at_once = max(1, _POINTS_AT_ONCE // self.num_supporting)
        supports = [np.zeros((len(aggregates), 0), dtype=np.int64)]
        for start in range(0, len(candidates), at_once):
            points = self._coordinates(candidates[start : start + at_once])[:, :, None]
            supports.append(aggregates[:, self._orthogonal(points, choices)].sum(axis=2))
        return np.concatenate(supports, axis=1)

    def transforms(self, num_candidates: int) -> bool:
        """Return whether a transform has fewer numbers than so many candidates have supporters."""
        vectors = math.prod(self._shape)
        return bool(vectors <= min(_LARGEST_TRANSFORM, num_candidates * self.num_supporting))

    def _transformed(self, aggregate: Tally, candidates: Values) -> Tally:
        """Return the support by a Fourier transform over all vectors of the field.

        With a count at each multiple but 0 of its point, the transform at a candidate is r times
        its support, less all reports: the multiples' characters add up to r - 1 where point and
        candidate are orthogonal, to -1 elsewhere. It is right to the last report up to about
        10**12 reports.
        """
        r, spread = self.field_size, np.zeros(self._shape)
        (sent,) = np.nonzero(aggregate)
        points = self._coordinates(sent)
        for factor in range(1, r):
            spread[tuple(points * factor % r)] = aggregate[sent]
        spectrum = np.fft.rfftn(spread).real
        coordinates = self._coordinates(candidates)
        # A vector and its negative have the same value, and the transform keeps one of the two.
        kept = np.where(coordinates[-1] > r // 2, -coordinates, coordinates) % r
        supporters = (spectrum[tuple(kept)] + aggregate.sum()) / r
        return np.asarray(np.rint(supporters), dtype=np.int64)

    def _coordinates(self, numbers: Values) -> Ints:
        """Return ``(t, c) int64``: the coordinates of points, by their numbers.

        A point is written with its first coordinate that is not 0 as 1. With m coordinates after
        that one, its number is (r**m - 1) / (r - 1) plus those, read in base r. So the numbers of
        t - 1 coordinates come first among those of t.
        """
        after = np.searchsorted(self._firsts, numbers, side="right") - 1
        # Read in base r, a point is its coordinates after the 1, and the 1.
        vectors = numbers - self._firsts[after] + self.field_size**after
        return np.stack(np.unravel_index(vectors, self._shape)).astype(np.int64)

    def scores(self, loads: Tally) -> Tally:
        # Orthogonality is symmetric: ask for every point's support by the values' points.
        padding = (0, 0), (0, self.aggregate_size - self.domain_size)
        return replace(self, domain_size=self.aggregate_size).support(np.pad(loads, padding))

    def log_prob(self, reports: Reports, value: int) -> Floats:
        products = self._coordinates(np.array([value])) * self._coordinates(
            reports.astype(np.int64)
        )
        supporting = products.sum(axis=0) % self.field_size == 0
        return np.where(supporting, 0.0, -self.epsilon) - math.log(self._weight)


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % each for each in range(2, math.isqrt(number) + 1))
