"""RAPPOR over many days: a permanent response to each value, an instantaneous one every day.

Source: Erlingsson, Pihur, Korolova (2014), "RAPPOR: randomized aggregatable privacy-preserving
ordinal response", CCS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedhh.longitudinal.memoization.bits import BitPair, Bits, Classes, MemoizedBits
from fedhh.longitudinal.memoization.daily import Floats, Public
from fedhh.oracles.base import as_numbers, require_in_domain
from fedhh.oracles.bloom import NOTHING, BitResponse, BloomFilters
from fedhh.validation import InputError, require_at_least


@dataclass(frozen=True, kw_only=True)
class OwnBits:
    """A bit of its own for each value, as in the paper's basic RAPPOR.

    Attributes:
        num_bits: k, the number of values.
    """

    num_bits: int
    num_hashes: int = 1
    num_cohorts: int = 1

    def __post_init__(self) -> None:
        require_at_least(2, num_bits=self.num_bits)
        if (self.num_hashes, self.num_cohorts) != (1, 1):
            raise InputError("Expected num_hashes=1 and num_cohorts=1: a value has its own bit.")

    def filters(self, cohorts: Classes, keys: Classes) -> Bits:
        """Return ``(n, k) bool``: each key's bit; none for `NOTHING`."""
        require_in_domain(np.ascontiguousarray(keys + 1), self.num_bits + 1, "values + 1")
        return np.asarray(keys[:, None] == np.arange(self.num_bits))


@dataclass(frozen=True, kw_only=True)
class MemoizedRappor(MemoizedBits):
    """RAPPOR with permanent and instantaneous responses.

    A device draws its cohort once. For each value that it ever reports it draws a permanent
    response to the value's Bloom filter, once; every day it sends an instantaneous response to
    that. With ``p = 0`` and ``q = 1`` the permanent response itself is sent (one-time RAPPOR), and
    with `OwnBits` there is no filter (basic RAPPOR).

    Formal guarantees:
        * One report: h ln(q*(1 - p*) / (p*(1 - q*))), the paper's epsilon_1 (Theorem 2).
        * All reports about one value: 2 h ln((1 - f/2) / (f/2)), the paper's epsilon_infinity
          (Theorem 1). Both are attained where two values share no bit.
        * When a value changes, all k permanent bits are drawn anew, those too that neither value
          sets: a change can be seen far better than what it was. Theorem 1 is about a value that
          does not change; `fedhh.longitudinal.memoization` says what is left.

    Attributes:
        filters: Which bits a value sets.
        response: f of the permanent response, p and q of the instantaneous one.
    """

    filters: BloomFilters | OwnBits
    response: BitResponse

    @property
    def num_bits(self) -> int:
        return self.filters.num_bits

    @property
    def daily_one(self) -> float:
        return self.response.q

    @property
    def daily_zero(self) -> float:
        return self.response.p

    @property
    def public_bits(self) -> float:
        """The cohort's, log2 m."""
        return math.log2(self.filters.num_cohorts)

    def draw_public(self, num_devices: int, *, rng: np.random.Generator) -> Public:
        """Return ``(n, 1) int64``: cohorts."""
        return rng.integers(self.filters.num_cohorts, size=(num_devices, 1))

    def thresholds(self, values: npt.ArrayLike) -> tuple[Classes, Floats]:
        """Return values as they are: a key each, or `fedhh.oracles.bloom.NOTHING`."""
        keys = as_numbers(values)
        if keys.size and keys.min() < NOTHING:
            raise InputError(f"Expected values >= {NOTHING}, got values={int(keys.min())}.")
        return keys, np.ones(len(keys))

    def chances(self, public: Public, classes: Classes) -> Floats:
        half = self.response.f / 2
        return np.where(self.filters.filters(public[:, 0], classes), 1 - half, half)

    @property
    def farthest(self) -> tuple[BitPair, ...]:
        """Bits of two values that share none: h each, and what neither sets."""
        half = self.response.f / 2
        hashes = self.filters.num_hashes
        neither = self.num_bits - 2 * hashes
        if neither < 0:
            raise InputError(
                f"Expected num_bits >= 2 num_hashes={2 * hashes}, for values that share no bit, "
                f"got num_bits={self.num_bits}."
            )
        pairs = BitPair(1 - half, half, hashes), BitPair(half, 1 - half, hashes)
        return (*pairs, BitPair(half, half, neither)) if neither else pairs

    def estimate(self, reports: Bits, public: Public) -> Floats:
        """Return ``(m, k) float64``: unbiased counts of devices whose value sets each bit.

        By cohort; the paper's t_ij, which its regression decodes (`fedhh.server.rappor_decoding`).
        """
        cohorts = public[:, 0]
        devices = np.bincount(cohorts, minlength=self.filters.num_cohorts)
        parts = np.split(np.argsort(cohorts, kind="stable"), np.cumsum(devices)[:-1])
        ones = np.array([np.count_nonzero(reports[part], axis=0) for part in parts])
        response = self.response
        return np.asarray(
            (ones - response.zero * devices[:, None]) / (response.one - response.zero)
        )
