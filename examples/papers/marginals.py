"""Marginals of binary attributes from one Hadamard coefficient of each client.

Source: Cormode, Kulkarni, Srivastava (2018), "Marginal release under local differential privacy",
SIGMOD, the protocol InpHT.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt

from fedhh.arrays import Floats, Ints
from fedhh.oracles.hadamard import parity
from fedhh.settings import Count, ReportEpsilon, Settings
from fedhh.validation import InputError

Attributes = npt.NDArray[np.bool_]

_MOST_ATTRIBUTES = 62
_MOST_COEFFICIENTS = 2**24


@dataclass(frozen=True, kw_only=True)
class HadamardMarginals(Settings):
    """All marginals of up to k of d binary attributes, with one bit of each client (InpHT).

    A client with attributes x draws one of the T sets a of 1 to k attributes, uniformly, and sends
    it with the sign (-1)^<a, x>, which is negated with probability 1 / (e**epsilon + 1). The mean
    sign of all clients for a is the Hadamard coefficient theta_a of their joint distribution, and a
    marginal over j attributes is made of the 2**j coefficients of their subsets.

    Formal guarantees:
        * epsilon-local differential privacy of all attributes of a client: the set that it draws
          does not depend on them, and the factor e**epsilon is reached by any two that differ.
        * Coefficients are unbiased where a client drew them. Of n clients' means, theta_a has the
          variance (1 / (2 p - 1)**2 - theta_a**2) / n with p = e**epsilon / (e**epsilon + 1).

    Cost: O(1) per report on the client, O(n + T) for all coefficients; a report is log2 T + 1 bits.

    Attributes:
        epsilon: Local privacy of a client's attributes.
        num_attributes: d, from 1 to 62.
        order: k, most attributes of a marginal, at most d.

    >>> marginals = HadamardMarginals(epsilon=3.0, num_attributes=4, order=2)
    >>> rng = np.random.default_rng(0)
    >>> smokes = rng.random(200_000) < 0.3
    >>> coughs = rng.random(200_000) < np.where(smokes, 0.6, 0.1)
    >>> rows = np.stack([smokes, coughs, rng.random(200_000) < 0.5, ~smokes], axis=1)
    >>> counts = marginals.aggregate(marginals.privatize(rows, rng=rng))
    >>> marginals.marginal(counts, [0, 1]).round(1)  # [neither, smokes, coughs, both]
    array([0.6, 0.1, 0.1, 0.2])
    """

    epsilon: ReportEpsilon
    num_attributes: Count
    order: Count

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.order <= self.num_attributes <= _MOST_ATTRIBUTES:
            raise InputError(
                f"Expected order <= num_attributes <= {_MOST_ATTRIBUTES}, got order={self.order} "
                f"and num_attributes={self.num_attributes}."
            )
        if self.num_coefficients > _MOST_COEFFICIENTS:
            raise InputError(
                f"Expected at most {_MOST_COEFFICIENTS:,} coefficients, got "
                f"{self.num_coefficients:,} of order={self.order} and "
                f"num_attributes={self.num_attributes}; lower one of them."
            )

    @property
    def num_coefficients(self) -> int:
        """T: the sets of 1 to k attributes."""
        return sum(math.comb(self.num_attributes, size) for size in range(1, self.order + 1))

    @cached_property
    def coefficients(self) -> Ints:
        """The sets of attributes, ``(T,) int64``: bit i of a number is attribute i."""
        return np.array(
            [
                sum(1 << attribute for attribute in chosen)
                for size in range(1, self.order + 1)
                for chosen in combinations(range(self.num_attributes), size)
            ],
            dtype=np.int64,
        )

    @property
    def p(self) -> float:
        return 1 / (1 + math.exp(-self.epsilon))

    def privatize(self, rows: Attributes, *, rng: np.random.Generator) -> Ints:
        """Return one report of each client, whose attributes are a row of ``(n, d) bool``.

        Returns:
            ``(n, 2) int64``: the place of a set in `coefficients`, and 1 for a sign of +1, else 0.

        Raises:
            InputError: The rows do not have d columns.
        """
        values = np.asarray(rows, dtype=np.bool_)
        if values.ndim != 2 or values.shape[1] != self.num_attributes:
            raise InputError(
                f"Expected rows of {self.num_attributes} attributes, got shape {values.shape}."
            )
        numbers = values @ (1 << np.arange(self.num_attributes))
        places = rng.integers(self.num_coefficients, size=len(values))
        is_even = parity(self.coefficients[places] & numbers) == 0
        kept = rng.random(len(values)) < self.p
        return np.stack([places, is_even == kept], axis=1).astype(np.int64)

    def aggregate(self, reports: Ints) -> Ints:
        """Return ``(T, 2) int64``: the reports of each set with sign -1 and +1; additive."""
        cells = np.bincount(reports[:, 0] * 2 + reports[:, 1], minlength=2 * self.num_coefficients)
        return cells.reshape(-1, 2)

    def estimate(self, counts: Ints) -> Floats:
        """Return ``(T,) float64``: each coefficient's estimate; 0 where nobody drew it."""
        reports = counts.sum(axis=1)
        signs = (counts[:, 1] - counts[:, 0]) / np.maximum(reports, 1)
        return np.asarray(signs / (2 * self.p - 1))

    def variance(self, counts: Ints) -> Floats:
        """Return ``(T,) float64``: at most the variance of each estimate, infinite without reports.

        It is 1 / ((2 p - 1)**2 n) for n reports, exact for a coefficient of 0.
        """
        with np.errstate(divide="ignore"):
            return np.asarray(1 / ((2 * self.p - 1) ** 2 * counts.sum(axis=1)))

    def marginal(self, counts: Ints, attributes: Sequence[int]) -> Floats:
        """Return the estimated joint distribution of some attributes.

        It sums to 1, and is neither clipped nor made consistent with other marginals.

        Args:
            counts: ``(T, 2) int64``, from `aggregate`.
            attributes: At most k distinct attributes.

        Returns:
            ``(2**j,) float64``: entry g is the share of clients whose i-th attribute of these is
            bit i of g.

        Raises:
            InputError: An attribute is unknown or repeated, or they are too many.
        """
        chosen = list(attributes)
        if len(set(chosen)) != len(chosen) or not set(chosen) <= set(range(self.num_attributes)):
            raise InputError(
                f"Expected distinct attributes in [0, {self.num_attributes}), got {chosen}."
            )
        if not 1 <= len(chosen) <= self.order:
            raise InputError(f"Expected from 1 to {self.order} attributes, got {len(chosen)}.")
        values = dict(zip(self.coefficients.tolist(), self.estimate(counts).tolist(), strict=True))
        cells = np.arange(2 ** len(chosen))
        shares = np.ones(len(cells))
        for subset in range(1, len(cells)):
            name = sum(1 << chosen[i] for i in range(len(chosen)) if subset >> i & 1)
            shares += values[name] * (1 - 2 * parity(cells & subset))
        return np.asarray(shares / len(cells))
