"""Bloom filters in cohorts, and RAPPOR's randomized response to their bits.

Source: Erlingsson, Pihur, Korolova (2014), "RAPPOR: randomized aggregatable privacy-preserving
ordinal response", CCS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Self

import numpy as np
import numpy.typing as npt
from annotated_types import Ge

from fedhh.arrays import Floats
from fedhh.hashing import HashFamily
from fedhh.kernels.votes import add_distinct
from fedhh.oracles.base import Tally, Values
from fedhh.oracles.families import sum_of_bits
from fedhh.settings import Chance, Seed, Settings
from fedhh.validation import InputError, require_at_least, require_between, require_epsilon

Bits = npt.NDArray[np.bool_]

NOTHING = -1
"""The key of a client without a value, whose Bloom filter is empty."""

_BITS_AT_ONCE = 2**20
_LARGEST_LOG = 700.0
_LARGEST_OF_BIT = 30.0


@dataclass(frozen=True, kw_only=True)
class BloomFilters(Settings):
    """Bloom filters of k bits with h hash functions; each of m cohorts has functions of its own.

    The functions are public. What a client's cohort is does not depend on its value.

    Attributes:
        num_bits: k.
        num_hashes: h; functions of a cohort may agree, and then set fewer bits.
        num_cohorts: m.
        hash_seed: The functions' seed.
    """

    num_bits: Annotated[int, Ge(2)]
    num_hashes: Annotated[int, Ge(1)]
    num_cohorts: Annotated[int, Ge(1)]
    hash_seed: Seed

    @cached_property
    def _hashes(self) -> HashFamily:
        return HashFamily.draw(
            num_hashes=self.num_cohorts * self.num_hashes,
            num_cells=self.num_bits,
            seed=self.hash_seed,
        )

    def positions(self, cohorts: Values, keys: Values) -> Values:
        """Return ``(n, h) int64``: the bits that keys set in their cohorts; some may be alike.

        Cohorts are ``(n,) int64`` in [0, m), keys in [0, `fedhh.hashing.NUM_KEYS`).
        """
        functions = cohorts[:, None] * self.num_hashes + np.arange(self.num_hashes)
        spread = np.repeat(keys, self.num_hashes)
        return self._hashes.cells(functions.ravel(), spread).reshape(len(keys), self.num_hashes)

    def cells(self, keys: Values) -> Values:
        """Return ``(c, m, h) int64``: the bits that keys set in every cohort, cohort * k + bit."""
        cohorts = np.tile(np.arange(self.num_cohorts), len(keys))
        bits = self.positions(cohorts, np.repeat(keys, self.num_cohorts))
        bits += cohorts[:, None] * self.num_bits
        return bits.reshape(len(keys), self.num_cohorts, self.num_hashes)

    def filters(self, cohorts: Values, keys: Values) -> Bits:
        """Return ``(n, k) bool``: the filter of each key; an empty one for `NOTHING`."""
        filters = np.zeros((len(keys), self.num_bits), dtype=np.bool_)
        (held,) = np.nonzero(keys != NOTHING)
        positions = self.positions(cohorts[held], keys[held])
        filters[np.repeat(held, self.num_hashes), positions.ravel()] = True
        return filters


@dataclass(frozen=True, kw_only=True)
class BitResponse(Settings):
    """What RAPPOR does to each bit: a permanent response, kept for good, then one per report.

    Permanent (PRR): 1 with chance f/2, 0 with chance f/2, the bit itself otherwise. Instantaneous
    (IRR), drawn anew for every report: 1 with chance q if the permanent response is 1, else with
    chance p. With p = 0 and q = 1 there is no second step: the paper's one-time RAPPOR.

    Attributes:
        f: Of the permanent response, above 0 and below 1.
        p: Chance of a 1 for a permanent 0, at least 0.
        q: Chance of a 1 for a permanent 1, above p, at most 1.
    """

    f: Chance
    p: Chance = 0.0
    q: Chance = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (0 < self.f < 1 and self.p < self.q):
            raise InputError(
                f"Expected 0 < f < 1 and p < q, got f={self.f!r}, p={self.p!r}, q={self.q!r}."
            )

    @classmethod
    def of_one_report(
        cls, epsilon: float, *, num_hashes: int, p: float = 0.0, q: float = 1.0
    ) -> Self:
        """Return the response with this `epsilon_of_one_report`.

        Raises:
            InputError: p and q alone give more privacy than that, whatever f is.
        """
        require_epsilon(epsilon=epsilon)
        require_at_least(1, num_hashes=num_hashes)
        require_between(0, 1, p=p, q=q)
        if not p < q:
            raise InputError(f"Expected p < q, got p={p!r} and q={q!r}.")
        # With x = f (q - p) / 2, the odds (q - x)(1 - p - x) / ((p + x)(1 - q + x)) are to be 1/t.
        t = math.exp(-epsilon / num_hashes)
        left = q * (1 - p) * t - p * (1 - q)
        if left <= 0:
            odds = q * (1 - p) / (p * (1 - q)) if p * (1 - q) else math.exp(_LARGEST_LOG)
            raise InputError(
                f"Expected epsilon < {num_hashes * math.log(odds):.4g}, which p={p!r} and q={q!r} "
                f"alone give with {num_hashes} hashes, got epsilon={epsilon!r}; lower p, raise q, "
                "or lower epsilon."
            )
        slope = (1 + q - p) * t + (1 - q + p)
        x = 2 * left / (slope + math.sqrt(slope**2 - 4 * math.expm1(-epsilon / num_hashes) * left))
        # Rounding must not cost privacy.
        return cls(f=2 * x / (q - p) * (1 + 1e-12), p=p, q=q)

    @classmethod
    def of_all_reports(
        cls, epsilon: float, *, num_hashes: int, p: float = 0.0, q: float = 1.0
    ) -> Self:
        """Return the response with this `epsilon_of_all_reports`."""
        require_epsilon(epsilon=epsilon)
        require_at_least(1, num_hashes=num_hashes)
        if epsilon > 2 * num_hashes * _LARGEST_OF_BIT:
            raise InputError(
                f"Expected epsilon <= {2 * num_hashes * _LARGEST_OF_BIT:g}, "
                f"{_LARGEST_OF_BIT:g} for each of 2 * {num_hashes} bits, got epsilon={epsilon!r}."
            )
        # Rounding must not cost privacy.
        return cls(f=2 * (1 + 1e-12) / (1 + math.exp(epsilon / (2 * num_hashes))), p=p, q=q)

    @property
    def one(self) -> float:
        """q*: the chance that a 1 is reported as 1."""
        return self.q - self.f / 2 * (self.q - self.p)

    @property
    def zero(self) -> float:
        """p*: the chance that a 0 is reported as 1."""
        return self.p + self.f / 2 * (self.q - self.p)

    @property
    def bit_variance(self) -> float:
        """Variance of the estimate of a bit's count per report, where nobody sets the bit."""
        return self.zero * (1 - self.zero) / (self.one - self.zero) ** 2

    def epsilon_of_one_report(self, num_hashes: int) -> float:
        """Return the privacy of a value that one report is about: the paper's epsilon_1.

        It is h ln(q*(1 - p*) / (p*(1 - q*))): two values differ in at most 2 h bits, h of them set
        by either one. It is attained wherever they differ in so many; tests enumerate it.
        """
        odds = self.one * (1 - self.zero) / (self.zero * (1 - self.one))
        return num_hashes * math.log(odds)

    def epsilon_of_all_reports(self, num_hashes: int) -> float:
        """Return what bounds any number of reports about one value: the paper's epsilon_infinity.

        It is 2 h ln((1 - f/2) / (f/2)), of the permanent response, which all of them are made
        from.
        """
        return 2 * num_hashes * math.log((1 - self.f / 2) / (self.f / 2))

    def answer(self, bits: Bits, *, rng: np.random.Generator) -> Bits:
        """Return a report's bits for each true one, both steps in one coin."""
        return np.asarray(rng.random(bits.shape) < np.where(bits, self.one, self.zero))


@dataclass(frozen=True, kw_only=True)
class BloomReports:
    """RAPPOR's reports about values that have keys, one per value, and their sums.

    A report is a cohort, drawn uniformly, and the noisy bits of the value's filter there. Reports
    add up to a tally: how many had a 1, by cohort and bit, then how many there were, by cohort.

    Attributes:
        filters: Which bits a value sets.
        response: What happens to them.
    """

    filters: BloomFilters
    response: BitResponse

    @property
    def epsilon(self) -> float:
        """Local privacy of a value, from the one report about it."""
        return self.response.epsilon_of_one_report(self.filters.num_hashes)

    @property
    def report_bits(self) -> float:
        """k, and log2 m for the cohort."""
        return self.filters.num_bits + math.log2(self.filters.num_cohorts)

    @property
    def tally_size(self) -> int:
        """A count for each bit of each cohort, and one for each cohort: m (k + 1)."""
        return self.filters.num_cohorts * (self.filters.num_bits + 1)

    def split(self, tally: Tally) -> tuple[Tally, Tally]:
        """Return views of a tally: ones ``(m, k)``, and reports ``(m,)``."""
        cohorts = self.filters.num_cohorts
        return tally[:-cohorts].reshape(cohorts, -1), tally[-cohorts:]

    def privatize(self, keys: Values, *, rng: np.random.Generator) -> tuple[Values, Bits]:
        """Return one report per key or `NOTHING`: ``(n,) int64`` cohorts, ``(n, k) bool`` bits."""
        cohorts = rng.integers(self.filters.num_cohorts, size=len(keys))
        return cohorts, self.response.answer(self.filters.filters(cohorts, keys), rng=rng)

    def add_reports(self, keys: Values, *, rng: np.random.Generator, out: Tally) -> None:
        """Add fresh reports to a tally, ``(tally_size,) int64``; none is stored."""
        ones, reports = self.split(out)
        step = max(1, _BITS_AT_ONCE // self.filters.num_bits)
        for start in range(0, len(keys), step):
            cohorts, bits = self.privatize(keys[start : start + step], rng=rng)
            for cohort in np.unique(cohorts):
                ones[cohort] += np.count_nonzero(bits[cohorts == cohort], axis=0)
            reports += np.bincount(cohorts, minlength=len(reports))

    def add_noise_free_counts(self, keys: Values, *, rng: np.random.Generator, out: Tally) -> None:
        """Add what `add_reports` would if no bit were flipped."""
        ones, reports = self.split(out)
        cohorts = rng.integers(self.filters.num_cohorts, size=len(keys))
        reports += np.bincount(cohorts, minlength=len(reports))
        held = keys != NOTHING
        positions = self.filters.positions(cohorts[held], keys[held])
        positions += cohorts[held, None] * self.filters.num_bits
        # Functions that agree set one bit.
        add_distinct(positions, ones.reshape(-1))

    def sample_aggregate(self, counts: Tally, *, rng: np.random.Generator) -> Tally:
        """Return the tally of reports with these noise-free counts, exactly distributed; O(m k)."""
        held, reports = self.split(counts)
        one, zero = self.response.one, self.response.zero
        ones = sum_of_bits(held, reports[:, None], one=one, zero=zero, rng=rng)
        return np.concatenate([ones.ravel(), reports])

    def estimate_bits(self, tally: Tally) -> Floats:
        """Return ``(m, k) float64``: unbiased estimates of how many reports' values set each bit.

        The paper's t_ij: (ones - p* reports) / (q* - p*).
        """
        ones, reports = self.split(tally)
        response = self.response
        return np.asarray(
            (ones - response.zero * reports[:, None]) / (response.one - response.zero)
        )

    def bit_variances(self, tally: Tally) -> Floats:
        """Return ``(m, k) float64``: the estimates' variances, given how many values set a bit.

        Their number is taken as estimated.
        """
        _, reports = self.split(tally)
        response = self.response
        held = np.clip(self.estimate_bits(tally), 0, reports[:, None])
        spread = held * response.one * (1 - response.one)
        spread += (reports[:, None] - held) * response.zero * (1 - response.zero)
        return np.asarray(spread / (response.one - response.zero) ** 2)
