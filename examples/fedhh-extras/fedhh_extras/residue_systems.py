"""Residues to several moduli: their choice, and the least-squares equations that they lead to.

Values have l moduli m_j. With B_j[x, y] = 1 where x and y are congruent modulo m_j, otherwise 0,
the sum T of all B_j is what residue counts make of a histogram when each value is given the counts
of all its residues.

The moduli are multiples m_j = g k_j of one number g, the k_j pairwise coprime. Values that are not
congruent modulo g share no residue, so that T falls apart into one matrix for each residue modulo
g: for the values b, b + g, b + 2 g and so on, it is that of the numbers 0, 1, 2, ... with the
moduli k_j. g is such that these are at most `LARGEST_PART`: equations are small for any domain.

For s' numbers the matrix is symmetric and Toeplitz. It has an inverse if and only if
sum k_j - l + 1 >= s'. Sequences with period k_j are those that satisfy the recurrence z**k_j - 1;
the lcm of these polynomials has the degree on the left, and so many consecutive terms of a sequence
in the sum of these spaces are free, no more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.linalg import solve_toeplitz, toeplitz

from fedhh.arrays import Floats

LARGEST_PART = 512
"""Most numbers that equations are solved for together."""

MOST_NOISE = 1.25
"""How much larger than with all residues apart the variance may be."""

_SPREADS = (1.1, 1.2, 1.3, 1.5, 1.7)
_STEP = 0.97


@dataclass(frozen=True, kw_only=True)
class Traces:
    """What the variance of least-squares estimates needs of X, the inverse of T.

    All are sums over values x, in arrays one entry per modulus; z is X times ones.

    Attributes:
        squares: ``(l,)``: trace of X B_j X.
        pairs: ``(l,)``: the sum of all squared entries of B_j X.
        own: ``(l,)``: that of the squared diagonal.
        levels: ``(l,)``, all alike: sum of z_x**2.
        level_pairs: ``(l,)``: sum of z_x (B_j X)[v, x], over all v, too.
        own_levels: ``(l,)``: of z_x (B_j X)[x, x].
    """

    squares: Floats
    pairs: Floats
    own: Floats
    levels: Floats
    level_pairs: Floats
    own_levels: Floats


@dataclass(frozen=True, kw_only=True)
class CoprimeSystem:
    """Pairwise coprime moduli for the numbers 0 .. size - 1.

    Attributes:
        size: s'.
        moduli: k_j, pairwise coprime.
    """

    size: int
    moduli: tuple[int, ...]

    @property
    def has_inverse(self) -> bool:
        """Whether T has one."""
        return sum(self.moduli) - len(self.moduli) + 1 >= self.size

    @property
    def first_column(self) -> Floats:
        """``(s',)``: how many moduli divide each number, T's first column."""
        column = np.zeros(self.size)
        for modulus in self.moduli:
            column[::modulus] += 1
        return column

    @property
    def noise(self) -> float:
        """The mean of X's diagonal, times l: how much the variance exceeds that of residues apart.

        1 at least, by Jensen's inequality: all diagonal entries of T are l. By the formula of
        Gohberg and Semencul, of X's first column u: with r_i = u_{s'-i} and r_0 = 0, the diagonal
        rises by (u_i**2 - r_i**2) / u_0.
        """
        column = solve_toeplitz(self.first_column, np.eye(1, self.size)[0])
        turned = np.concatenate([[0.0], column[:0:-1]])
        diagonal = np.cumsum(column**2 - turned**2) / column[0]
        return float(diagonal.mean()) * len(self.moduli)

    @cached_property
    def inverse(self) -> Floats:
        """X, ``(s', s') float64``."""
        return np.asarray(np.linalg.inv(toeplitz(self.first_column)))

    @cached_property
    def traces(self) -> Traces:
        """Exact sums over all numbers."""
        inverse, levels = self.inverse, self.inverse.sum(axis=1)
        rows = []
        for modulus in self.moduli:
            residues = np.arange(self.size) % modulus
            shares = (residues[:, None] == residues) @ inverse
            own = np.diag(shares)
            rows.append(
                (
                    (inverse * shares).sum(),
                    (shares**2).sum(),
                    (own**2).sum(),
                    (levels**2).sum(),
                    (shares * levels).sum(),
                    (own * levels).sum(),
                )
            )
        return Traces(
            **dict(
                zip(
                    ("squares", "pairs", "own", "levels", "level_pairs", "own_levels"),
                    np.array(rows).T,
                    strict=True,
                )
            )
        )


@dataclass(frozen=True, kw_only=True)
class ResidueSystem:
    """Moduli for the values of a domain: g times those of its parts.

    Attributes:
        domain_size: s.
        num_parts: g, at most s.
        larger: The equations of the first s mod g parts, or of all if that is 0.
        smaller: Those of all others, whose values are one fewer.
    """

    domain_size: int
    num_parts: int
    larger: CoprimeSystem
    smaller: CoprimeSystem

    @property
    def moduli(self) -> tuple[int, ...]:
        """The moduli m_j = g k_j."""
        return tuple(self.num_parts * each for each in self.larger.moduli)

    @property
    def num_larger(self) -> int:
        """How many parts have the larger number of values, 1 to g."""
        return self.domain_size - self.num_parts * (self.larger.size - 1)

    def solve(self, numbers: Floats) -> Floats:
        """Return X times ``(s,) float64``; O(s s')."""
        padded = np.zeros(self.larger.size * self.num_parts)
        padded[: self.domain_size] = numbers
        columns, most = padded.reshape(self.larger.size, self.num_parts), self.num_larger
        columns[:, :most] = self.larger.inverse @ columns[:, :most]
        if most < self.num_parts:
            columns[:-1, most:] = self.smaller.inverse @ columns[:-1, most:]
        return padded[: self.domain_size]

    @cached_property
    def traces(self) -> Traces:
        """Exact sums over all values."""
        rest = self.num_parts - self.num_larger
        larger = vars(self.larger.traces)
        smaller = vars(self.smaller.traces) if rest else larger
        return Traces(
            **{name: self.num_larger * larger[name] + rest * smaller[name] for name in larger}
        )


@lru_cache(maxsize=32)
def residue_system(domain_size: int, num_moduli: int) -> ResidueSystem:
    """Return the moduli of a domain."""
    num_parts = -(-domain_size // LARGEST_PART)
    larger = coprime_system(-(-domain_size // num_parts), num_moduli)
    return ResidueSystem(
        domain_size=domain_size,
        num_parts=num_parts,
        larger=larger,
        smaller=CoprimeSystem(size=larger.size - 1, moduli=larger.moduli),
    )


@lru_cache(maxsize=32)
def coprime_system(size: int, num_moduli: int) -> CoprimeSystem:
    """Return moduli for some numbers: small ones, whose equations are well-conditioned.

    Candidates are geometric rows of pairwise coprime numbers, as far as the size, of several ratios
    of the largest to the smallest. Of those whose `noise` is at most `MOST_NOISE`, the one whose
    largest modulus is least is chosen: the longest report is shortest. Where there are no such rows
    of ``num_moduli``, it is fewer; the size alone is always one.
    """
    for count in range(min(num_moduli, size), 1, -1):
        found = [each for spread in _SPREADS if (each := _smallest(size, count, spread))]
        if found:
            return min(found, key=lambda each: max(each.moduli))
    return CoprimeSystem(size=size, moduli=(size,))


def _smallest(size: int, count: int, spread: float) -> CoprimeSystem | None:
    """Return the smallest row of a spread before the first that is too noisy."""
    found = None
    for row in _rows(size, count, spread):
        system = CoprimeSystem(size=size, moduli=row)
        if not system.has_inverse or system.noise > MOST_NOISE:
            break
        found = system
    return found


def _rows(size: int, count: int, spread: float) -> Iterator[tuple[int, ...]]:
    """Yield geometric rows of coprime numbers in [2, size], falling."""
    largest = float(size)
    while largest > 2:
        row = _coprime([largest * spread ** (-i / (count - 1)) for i in range(count)], size)
        if row is None:
            return
        yield row
        largest *= _STEP


def _coprime(aims: list[float], most: int) -> tuple[int, ...] | None:
    """Return pairwise coprime numbers in [2, most], each the nearest to its aim that is left."""
    row: list[int] = []
    for aim in aims:
        around = round(aim)
        near = (around + sign * step for step in range(most) for sign in (-1, 1))
        fits = (
            each
            for each in near
            if 2 <= each <= most and all(math.gcd(each, other) == 1 for other in row)
        )
        found = next(fits, None)
        if found is None:
            return None
        row.append(found)
    return tuple(row)
