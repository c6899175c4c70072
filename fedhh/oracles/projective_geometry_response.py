"""Projective geometry response: Subset Selection's noise from a report of one symbol."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fedhh.kernels.projective import (
    draw_projective_responses,
    inverses_modulo,
    spread_over_multiples,
    sum_orthogonal,
)
from fedhh.oracles.base import Floats, Reports, Tally, Values
from fedhh.oracles.families import CountedOutputs, PureOracle
from fedhh.random import kernel_state
from fedhh.validation import InputError

_MOST_POINTS = 2**26

# A transform of more numbers does not fit a small machine; and it takes about so many nanoseconds
# for each, against one point looked up for a candidate.
_LARGEST_TRANSFORM = 2**25
_TRANSFORM_NS = 60.0
_LOOK_UP_NS = 100.0


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
        if self.aggregate_size > _MOST_POINTS:
            raise InputError(
                f"Expected a projective space of at most {_MOST_POINTS:,} points for pgr, got "
                f"{self.aggregate_size:,} over the field of {self.field_size:,} for domain_size="
                f"{self.domain_size:,} at epsilon={self.epsilon!r}; use ss."
            )

    def _check_epsilon(self) -> None:
        super()._check_epsilon()
        if self.epsilon > math.log(_MOST_POINTS):
            raise InputError(
                f"Expected epsilon <= {math.log(_MOST_POINTS):.2f} for pgr, got "
                f"epsilon={self.epsilon!r}; its field would be too large, use grr or ss."
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

    @cached_property
    def _geometry(self) -> tuple[Values, Values]:
        """What kernels know of it: see `fedhh.kernels.projective`."""
        return self._firsts, inverses_modulo(self.field_size)

    def privatize(self, values: Values, *, rng: np.random.Generator) -> Reports:
        values = self._check_values(values)
        reports = np.empty(len(values), dtype=np.int64)
        # A report is free, uniform over all points, or bound to those that support its value.
        bound = -math.expm1(-self.epsilon) * self.p
        size = self.aggregate_size
        draw_projective_responses(values, *self._geometry, size, bound, reports, kernel_state(rng))
        return reports

    def _support(self, aggregates: Tally, candidates: Values | None) -> Tally:
        # The cost is the class's, c for s.
        if candidates is None:
            candidates = np.arange(self.domain_size)
        if self.transforms(len(candidates)):
            supports = [self._transformed(each, candidates) for each in aggregates]
        else:
            supports = [sum_orthogonal(each, candidates, *self._geometry) for each in aggregates]
        return np.array(supports, dtype=np.int64).reshape(len(aggregates), len(candidates))

    def transforms(self, num_candidates: int) -> bool:
        """Return whether a transform is faster for so many candidates; by sizes, never by clock."""
        vectors = self.field_size**self.num_coordinates
        look_ups_ns = num_candidates * self.num_supporting * _LOOK_UP_NS
        return bool(vectors <= _LARGEST_TRANSFORM and vectors * _TRANSFORM_NS < look_ups_ns)

    def _transformed(self, aggregate: Tally, candidates: Values) -> Tally:
        """Return the support by a Fourier transform over all vectors of the field.

        With a count at each multiple but 0 of its point, the transform at a candidate is r times
        its support, less all reports: the multiples' characters add up to r - 1 where point and
        candidate are orthogonal, to -1 elsewhere. It is right to the last report up to about
        10**12 reports.
        """
        r, t = self.field_size, self.num_coordinates
        spread = np.zeros(r**t)
        spread_over_multiples(aggregate, self._firsts, r, spread)
        spectrum = np.fft.rfftn(spread.reshape((r,) * t)).real
        coordinates = self._coordinates(candidates)
        # A vector and its negative have the same value, and the transform keeps one of the two.
        kept = np.where(coordinates[-1] > r // 2, -coordinates, coordinates) % r
        supporters = (spectrum[tuple(kept)] + aggregate.sum()) / r
        return np.asarray(np.rint(supporters), dtype=np.int64)

    def _coordinates(self, numbers: Values) -> npt.NDArray[np.int64]:
        """Return ``(t, c) int64``: the coordinates of points."""
        after = np.searchsorted(self._firsts, numbers, side="right") - 1
        # Read in base r, a point is its coordinates after the 1, and the 1.
        vectors = numbers - self._firsts[after] + self.field_size**after
        places = self.field_size ** np.arange(self.num_coordinates)[::-1]
        return np.asarray(vectors // places[:, None] % self.field_size, dtype=np.int64)

    def log_prob(self, reports: Reports, value: int) -> Floats:
        products = self._coordinates(np.array([value])) * self._coordinates(
            reports.astype(np.int64)
        )
        supporting = products.sum(axis=0) % self.field_size == 0
        return np.where(supporting, 0.0, -self.epsilon) - math.log(self._weight)


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % each for each in range(2, math.isqrt(number) + 1))
