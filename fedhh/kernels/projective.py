"""Points of a projective space over a prime field, numbered, and which are orthogonal to which.

A point of t coordinates modulo the prime r is written with its first coordinate that is not 0 as 1.
With m coordinates after that one, its number is (r**m - 1) / (r - 1) plus those, read in base r. So
the numbers of t - 1 coordinates come first among those of t.

A geometry is two arrays: ``firsts``, ``(t,) int64``, the least number with m coordinates after the
1 for each m; the last is also how many points are orthogonal to one. And ``inverses``,
``(r,) int64``, inverses modulo r, 0 for 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.kernels.cache import compiled, subroutine
from fedhh.kernels.prng import next_below, next_float

_Ints = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]
_State = npt.NDArray[np.uint64]


@compiled
def inverses_modulo(prime: int) -> _Ints:
    """Return ``(prime,) int64``: each number's inverse modulo a prime; 0 for 0."""
    inverses = np.zeros(prime, dtype=np.int64)
    inverses[1] = 1
    for number in range(2, prime):
        inverses[number] = (prime - prime // number) * inverses[prime % number] % prime
    return inverses


@subroutine
def _write_point(number: int, prime: int, firsts: _Ints, out: _Ints) -> int:
    """Write a point's coordinates, as many as ``out`` has, and return where its 1 is."""
    after = 0
    while after + 1 < len(firsts) and firsts[after + 1] <= number:
        after += 1
    rest = number - firsts[after]
    last = len(out) - 1
    for place in range(last, last - after, -1):
        out[place] = rest % prime
        rest //= prime
    out[last - after] = 1
    out[: last - after] = 0
    return last - after


@subroutine
def _orthogonal(
    choice: int, point: _Ints, first: int, firsts: _Ints, inverses: _Ints, other: _Ints
) -> Any:
    """Return the number of one of the points orthogonal to a point.

    All coordinates but one are those of ``choice``, of one dimension less; the one left out is
    where the given point has its 1, ``first``, so it follows. ``other``, ``(t,) int64``, is
    overwritten.
    """
    prime, size = len(inverses), len(point)
    lead = _write_point(choice, prime, firsts, other[1:])
    # Close the gap at the front: what comes before the left-out coordinate moves one to the left.
    for place in range(first):
        other[place] = other[place + 1]
    product = 0
    for place in range(first + 1, size):
        product += other[place] * point[place]
    own = (-product) % prime
    other[first] = own
    # The 1 of the chosen point, in its new place; the followed coordinate may come before it.
    lead = lead if lead < first else lead + 1
    scale = 1
    if own and first < lead:
        lead, scale = first, inverses[own]
    number = 0
    for place in range(lead + 1, size):
        number = number * prime + other[place] * scale % prime
    return firsts[size - 1 - lead] + number


@compiled
def draw_projective_responses(
    values: _Ints,
    firsts: _Ints,
    inverses: _Ints,
    num_points: int,
    own_share: float,
    out: _Ints,
    state: _State,
) -> None:
    """Fill in one report per point: one orthogonal to it, or with some chance any point.

    Args:
        values: ``(n,) int64`` numbers of points.
        firsts: Of the geometry.
        inverses: Likewise.
        num_points: How many there are.
        own_share: Chance of one of the orthogonal ones; otherwise uniform over all.
        out: ``(n,) int64``, overwritten.
    """
    point, other = np.empty_like(firsts), np.empty_like(firsts)
    num_orthogonal = firsts[len(firsts) - 1]
    for i in range(len(values)):
        if next_float(state) >= own_share:
            out[i] = np.int64(next_below(state, np.uint64(num_points)))
            continue
        choice = np.int64(next_below(state, np.uint64(num_orthogonal)))
        first = _write_point(values[i], len(inverses), firsts, point)
        out[i] = _orthogonal(choice, point, first, firsts, inverses, other)


@compiled
def sum_orthogonal(counts: _Ints, candidates: _Ints, firsts: _Ints, inverses: _Ints) -> _Ints:
    """Return ``(c,) int64``: for each candidate, the counts of points orthogonal to it, summed."""
    sums = np.zeros(len(candidates), dtype=np.int64)
    point, other = np.empty_like(firsts), np.empty_like(firsts)
    num_orthogonal = firsts[len(firsts) - 1]
    for i in range(len(candidates)):
        first = _write_point(candidates[i], len(inverses), firsts, point)
        for choice in range(num_orthogonal):
            sums[i] += counts[_orthogonal(choice, point, first, firsts, inverses, other)]
    return sums


@compiled
def spread_over_multiples(counts: _Ints, firsts: _Ints, prime: int, out: _Floats) -> None:
    """Write each point's count at all multiples of it but 0.

    In ``(r**t,) float64`` zeros, where a vector's place is its coordinates read in base r.
    """
    point = np.empty_like(firsts)
    for number in range(len(counts)):
        if counts[number] == 0:
            continue
        _write_point(number, prime, firsts, point)
        for factor in range(1, prime):
            place: Any = 0
            for coordinate in point:
                place = place * prime + coordinate * factor % prime
            out[place] = counts[number]
