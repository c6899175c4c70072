"""Residues to several moduli: their choice, and the least-squares equations that they lead to.

A value x in [0, s) has the residues x mod m_j to l pairwise coprime moduli. With B_j[x, y] = 1
where x and y are congruent modulo m_j, otherwise 0, the sum T of all B_j is what residue counts
make of a histogram when each value is given the counts of all its residues. T is symmetric, and
Toeplitz, since B_j depends on x - y alone.

T has an inverse if and only if sum m_j - l + 1 >= s. Sequences with period m_j are those that
satisfy the recurrence z**m_j - 1; the lcm of these polynomials has the degree on the left, and so
many consecutive terms of a sequence in the sum of these spaces are free, no more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy import fft

from fedhh.oracles.base import Floats

MOST_NOISE = 1.25
"""How much larger than with all residues apart the variance may be, on the domain of the search."""

_MOST_NOISE_OF_DOMAIN = 1.3

_SEARCHED_SIZE = 512
_SPREADS = (1.1, 1.2, 1.3, 1.5, 1.7)
_STEP = 0.97

_PRECISION = 1e-15
_MOST_STEPS = 2_000


@dataclass(frozen=True, kw_only=True)
class Traces:
    """What the variance of least-squares estimates needs of X, the inverse of T.

    All are sums over values x, in arrays one entry per modulus; z is X times ones.

    Attributes:
        squares: ``(l,)``: trace of X B_j X.
        pairs: ``(l,)``: the sum of all squared entries of B_j X.
        own: ``(l,)``: that of the squared diagonal.
        levels: Sum of z_x**2.
        level_pairs: ``(l,)``: sum of z_x (B_j X)[v, x], over all v, too.
        own_levels: ``(l,)``: of z_x (B_j X)[x, x].
    """

    squares: Floats
    pairs: Floats
    own: Floats
    levels: float
    level_pairs: Floats
    own_levels: Floats


@dataclass(frozen=True, kw_only=True)
class ResidueSystem:
    """Pairwise coprime moduli for the values of a domain.

    The inverse X of T is known from its first column u by the formula of Gohberg and Semencul: with
    Z the shift down and r_i = u_{s-i}, r_0 = 0, X - Z X Z' = (u u' - r r') / u_0.

    Attributes:
        domain_size: s.
        moduli: m_j, pairwise coprime, sum m_j - l + 1 >= s.
    """

    domain_size: int
    moduli: tuple[int, ...]

    def class_sums(self, modulus: int, numbers: Floats) -> Floats:
        """Return ``(m,)``: the sum of ``(s,)`` numbers over each class of congruent values."""
        whole = self.domain_size // modulus * modulus
        sums = numbers[:whole].reshape(-1, modulus).sum(axis=0)
        sums[: self.domain_size - whole] += numbers[whole:]
        return np.asarray(sums)

    def add_to_classes(self, sums: Floats, out: Floats) -> None:
        """Add ``(m,)`` numbers of classes to ``(s,)`` numbers of their values, in place."""
        whole = self.domain_size // len(sums) * len(sums)
        rows = out[:whole].reshape(-1, len(sums))
        rows += sums
        out[whole:] += sums[: self.domain_size - whole]

    def product(self, numbers: Floats) -> Floats:
        """Return T times ``(s,) float64``; O(s l)."""
        out = np.zeros(self.domain_size)
        for modulus in self.moduli:
            self.add_to_classes(self.class_sums(modulus, numbers), out)
        return out

    @cached_property
    def first_column(self) -> Floats:
        """u, ``(s,) float64``, by conjugate gradients; NaN where these do not converge."""
        left = np.zeros(self.domain_size)
        left[0] = 1.0
        found = np.zeros(self.domain_size)
        direction, size = left.copy(), 1.0
        for _ in range(_MOST_STEPS):
            image = self.product(direction)
            # numpy's own sums, not those of a linear algebra library: the same bits everywhere.
            step = size / float((direction * image).sum())
            found += step * direction
            left -= step * image
            before, size = size, float((left * left).sum())
            if size <= _PRECISION**2:
                return found
            direction *= size / before
            direction += left
        return np.full(self.domain_size, np.nan)

    @cached_property
    def _reversed(self) -> Floats:
        """r, ``(s,) float64``."""
        return np.concatenate([[0.0], self.first_column[:0:-1]])

    @cached_property
    def _spectra(self) -> tuple[int, Floats, Floats]:
        """Length of transforms, and those of u and r."""
        length = fft.next_fast_len(2 * self.domain_size, real=True)
        return length, fft.rfft(self.first_column, length), fft.rfft(self._reversed, length)

    def _inverse_product(self, numbers: Floats) -> Floats:
        length, first, second = self._spectra
        size = self.domain_size
        backwards = fft.rfft(numbers[::-1], length)
        parts = [fft.irfft(each * backwards, length)[:size][::-1] for each in (first, second)]
        transform = first * fft.rfft(parts[0], length) - second * fft.rfft(parts[1], length)
        return np.asarray(fft.irfft(transform, length)[:size] / self.first_column[0])

    def solve(self, numbers: Floats) -> Floats:
        """Return X times ``(s,) float64``; O(s log s) after the first."""
        found = self._inverse_product(numbers)
        return np.asarray(found + self._inverse_product(numbers - self.product(found)))

    def inverse_diagonal(self, offset: int) -> Floats:
        """Return ``(s - offset,)``: X[x, x + offset] for all x."""
        u, r = self.first_column, self._reversed
        last = self.domain_size - offset
        steps = u[:last] * u[offset:] - r[:last] * r[offset:]
        return np.asarray(np.cumsum(steps) / u[0])

    @property
    def noise(self) -> float:
        """The mean of X's diagonal, times l: how much the variance exceeds that of residues apart.

        1 at least, by Jensen's inequality: all diagonal entries of T are l.
        """
        mean = float(self.inverse_diagonal(0).mean())
        return len(self.moduli) * mean if math.isfinite(mean) else math.inf

    @cached_property
    def traces(self) -> Traces:
        """Exact sums over all values; O(l s log s).

        Those of X B_j X and X E_j X follow from what the shift leaves of them. For E symmetric,
        Z X - X Z = U V' with U = [u, r / u_0], V = [-w / u_0, J u], w_i = u_{i+1}, J the reversal;
        so with F = X E V, Y = X E X has

            Y - Z Y Z' = X (E - Z E Z') X - U (Z F)' - (Z F) U' + U V' E V U',

        and the trace of Y is the sum of its diagonal, entry i times s - i. What depends on F there
        is linear in E, so that two solutions serve for all of them. For a_c the indicator of class
        c, E - Z E Z' is a_0 e_0' + e_0 a_0' - e_0 e_0' for E = B_j, and a_0 a_0' - a_R a_R' for
        E_j, which is B_j among the R = s mod m_j classes that have one value more: B_j**2 =
        floor(s / m_j) B_j + E_j. X a_0 follows from X a_R, since J a_R is the last class and Z
        times that is a_0 - e_0.
        """
        size, u, r = self.domain_size, self.first_column, self._reversed
        weights = size - np.arange(size, dtype=np.float64)
        left = (u, r / u[0])
        right = (np.r_[-u[1:], 0.0] / u[0], u[::-1])
        # Z' of weighted U, and X of that.
        shifted = [self._inverse_product(np.r_[(weights * each)[1:], 0.0]) for each in left]
        gram = np.array([[(weights * a * b).sum() for b in left] for a in left])
        levels = self._inverse_product(np.ones(size))
        twice = self._inverse_product(levels)

        def of_shift(sums: list[Floats], against: list[Floats]) -> float:
            """Return what F and V' E V add to the trace."""
            linear = sum(float((a * b).sum()) for a, b in zip(against, sums, strict=True))
            square = np.array([[(a * b).sum() for b in sums] for a in sums])
            return float((square * gram).sum()) - 2 * linear

        found: dict[str, list[float]] = {
            name: [] for name in ("squares", "pairs", "own", "level_pairs", "own_levels")
        }
        for modulus in self.moduli:
            least, extra = divmod(size, modulus)
            sums = [self.class_sums(modulus, each) for each in right]
            against = [self.class_sums(modulus, each) for each in shifted]

            if extra:
                after = self._inverse_product(self._class(modulus, extra))
                first = u + np.r_[0.0, after[:0:-1]]
                for part, each in zip(left, sums, strict=True):
                    first -= part * each[-1]
            else:
                first = self._inverse_product(self._class(modulus, 0))
            squares = float((weights * (2 * first * u - u * u)).sum())
            squares += of_shift(sums, against)
            of_larger = 0.0
            if extra:
                of_larger = float((weights * (first * first - after * after)).sum())
                of_larger += of_shift([a[:extra] for a in sums], [a[:extra] for a in against])
            diagonal = self._own_entries(modulus)
            found["squares"].append(squares)
            found["pairs"].append(least * squares + of_larger)
            found["own"].append(float((diagonal**2).sum()))
            sizes = np.where(np.arange(modulus) < extra, least + 1.0, float(least))
            found["level_pairs"].append(float((self.class_sums(modulus, twice) * sizes).sum()))
            found["own_levels"].append(float((levels * diagonal).sum()))
        arrays = {name: np.array(each) for name, each in found.items()}
        return Traces(levels=float((levels**2).sum()), **arrays)

    def _class(self, modulus: int, residue: int) -> Floats:
        indicator = np.zeros(self.domain_size)
        indicator[residue::modulus] = 1.0
        return indicator

    def _own_entries(self, modulus: int) -> Floats:
        """Return ``(s,)``: the diagonal of B_j X, X[x, y] summed over all y in the class of x."""
        entries = self.inverse_diagonal(0)
        for offset in range(modulus, self.domain_size, modulus):
            there = self.inverse_diagonal(offset)
            entries[:-offset] += there
            entries[offset:] += there
        return entries


@lru_cache(maxsize=8)
def residue_system(domain_size: int, num_moduli: int) -> ResidueSystem:
    """Return moduli for a domain: few and small ones, whose equations are well-conditioned.

    Candidates are geometric rows of pairwise coprime numbers, as far as the domain, of several
    ratios of the largest to the smallest. Of those whose `noise` is at most `MOST_NOISE`, the one
    whose largest modulus is least is chosen: the longest report is shortest. Where the domain has
    no such rows of ``num_moduli``, it is fewer; the domain's size alone is always one.

    Above 512 values, a row is chosen for 512 and enlarged in proportion; where its noise is above
    1.3, by 3 percent more, as often as it takes.
    """
    searched = min(domain_size, _SEARCHED_SIZE)
    chosen = next(
        found
        for count in range(min(num_moduli, searched), 0, -1)
        if (found := _shortest(searched, count)) is not None
    )
    scale = domain_size / searched
    if scale == 1:
        return chosen
    while row := _coprime([each * scale for each in chosen.moduli], domain_size):
        system = ResidueSystem(domain_size=domain_size, moduli=row)
        if _has_inverse(system) and system.noise <= _MOST_NOISE_OF_DOMAIN:
            return system
        scale /= _STEP
    return ResidueSystem(domain_size=domain_size, moduli=(domain_size,))


def _shortest(domain_size: int, count: int) -> ResidueSystem | None:
    if count == 1:
        return ResidueSystem(domain_size=domain_size, moduli=(domain_size,))
    found = [each for spread in _SPREADS if (each := _smallest(domain_size, count, spread))]
    return min(found, key=lambda each: max(each.moduli), default=None)


def _smallest(domain_size: int, count: int, spread: float) -> ResidueSystem | None:
    """Return the smallest row of a spread before the first that is too noisy."""
    found = None
    for row in _rows(domain_size, count, spread):
        system = ResidueSystem(domain_size=domain_size, moduli=row)
        if not _has_inverse(system) or system.noise > MOST_NOISE:
            break
        found = system
    return found


def _rows(domain_size: int, count: int, spread: float) -> Iterator[tuple[int, ...]]:
    """Yield geometric rows of coprime numbers in [2, domain_size], falling."""
    largest = float(domain_size)
    while largest > 2:
        row = _coprime([largest * spread ** (-i / (count - 1)) for i in range(count)], domain_size)
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


def _has_inverse(system: ResidueSystem) -> bool:
    return sum(system.moduli) - len(system.moduli) + 1 >= system.domain_size
