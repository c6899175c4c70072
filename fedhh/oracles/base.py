"""Frequency oracles: a local randomizer and the estimator that belongs to it, in one object.

A client runs `privatize`; the server runs `tally` and `estimate`. Both halves read the same frozen
parameters, so p and q exist once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedhh.validation import InputError, require_at_least, require_positive

Values = npt.NDArray[np.int64]
Reports = npt.NDArray[np.int64]
Tally = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class FrequencyOracle(ABC):
    """A local randomizer over the values 0 .. domain_size - 1, and its unbiased estimator.

    Fields are public parameters; data and randomness are arguments.

    Attributes:
        epsilon: Local privacy of one report: for any two values, any report's probabilities
            differ by a factor of at most e**epsilon.
        domain_size: Number of values, at least 2; a protocol's dummy is one of them.
    """

    epsilon: float
    domain_size: int

    def __post_init__(self) -> None:
        self._check_epsilon()
        require_at_least(2, domain_size=self.domain_size)

    def _check_epsilon(self) -> None:
        require_positive(epsilon=self.epsilon)

    @abstractmethod
    def privatize(self, values: Values, *, rng: np.random.Generator) -> Reports:
        """Return one report per value (run by the client).

        Args:
            values: ``(n,) int64`` in [0, domain_size).
            rng: Source of the client's coins.

        Returns:
            Reports, first axis n; the other axes are the oracle's own.
        """

    @abstractmethod
    def tally(self, reports: Reports, candidates: Values) -> Tally:
        """Return how many reports support each candidate (run by the server).

        Args:
            reports: What `privatize` returned.
            candidates: ``(c,) int64`` in [0, domain_size).

        Returns:
            ``(c,) int64``.
        """

    def privatize_and_tally(
        self, values: Values, *, rng: np.random.Generator, out: Tally | None = None
    ) -> Tally:
        """Return the tally of all values over fresh reports, which need not be stored.

        The law is that of ``tally(privatize(values), arange(domain_size))``; the bits drawn from
        ``rng`` may differ. Fast paths override this.

        Args:
            values: ``(n,) int64`` in [0, domain_size).
            rng: Source of the clients' coins.
            out: ``(domain_size,) int64`` to add to; a new array if None.

        Returns:
            ``(domain_size,) int64``, ``out`` if it was given.
        """
        if out is None:
            out = np.zeros(self.domain_size, dtype=np.int64)
        out += self.tally(self.privatize(values, rng=rng), np.arange(self.domain_size))
        return out

    @abstractmethod
    def estimate(self, tally: Tally, num_reports: int) -> Floats:
        """Return unbiased estimates of true counts; they may be negative.

        Args:
            tally: ``(c,) int64`` support counts.
            num_reports: Number of reports behind the tally, dummies included.

        Returns:
            ``(c,) float64``.
        """

    @abstractmethod
    def variance(self, count: npt.ArrayLike, num_reports: int) -> Floats:
        """Return the exact variance of the estimate of a true ``count`` among ``num_reports``."""

    @abstractmethod
    def log_prob(self, reports: Reports, value: int) -> Floats:
        """Return ``(n,) float64``: the log-probability of each report, given the true value."""

    @abstractmethod
    def report_space(self) -> Reports:
        """Return every possible report, first axis one per report; for tiny domains only."""

    @property
    @abstractmethod
    def report_bits(self) -> float:
        """Bits that one report needs on the wire, under the encoding the subclass states."""

    def _check_values(self, values: Values) -> None:
        if values.size and not (values.min() >= 0 and values.max() < self.domain_size):
            raise InputError(
                f"Expected values in [0, {self.domain_size}), got values from {values.min()} to "
                f"{values.max()}."
            )


class PureOracle(FrequencyOracle):
    """An oracle whose report supports a held value with probability p, any other with q.

    Estimate and variance follow from p and q alone: Wang, Blocki, Li, Jha (2017), "Locally
    differentially private protocols for frequency estimation", USENIX Security, section 3.
    """

    @property
    @abstractmethod
    def p(self) -> float:
        """Probability that a report supports the value that its client holds."""

    @property
    @abstractmethod
    def q(self) -> float:
        """Probability that a report supports a given value that its client does not hold."""

    def estimate(self, tally: Tally, num_reports: int) -> Floats:
        """Return ``(tally - n q) / (p - q)``; see `FrequencyOracle.estimate`."""
        return np.asarray((tally - num_reports * self.q) / (self.p - self.q), dtype=np.float64)

    def variance(self, count: npt.ArrayLike, num_reports: int) -> Floats:
        """Return ``[c p (1 - p) + (n - c) q (1 - q)] / (p - q)**2``."""
        count = np.asarray(count, dtype=np.float64)
        held = count * self.p * (1 - self.p)
        others = (num_reports - count) * self.q * (1 - self.q)
        return np.asarray((held + others) / (self.p - self.q) ** 2, dtype=np.float64)

    def approximate_sample_tally(
        self, true_counts: Values, num_reports: int, *, rng: np.random.Generator
    ) -> Tally:
        """Return a tally drawn without reports: an independent Binomial pair for each value.

        Every entry has its exact marginal law, Bin(c, p) + Bin(n - c, q). What is lost is the
        dependence between entries, where the oracle's reports have any.

        Args:
            true_counts: ``(domain_size,) int64``, summing to at most ``num_reports``.
            num_reports: Number of reports n, dummies included.
            rng: Source of randomness.
        """
        true_counts = np.asarray(true_counts, dtype=np.int64)
        return rng.binomial(true_counts, self.p) + rng.binomial(num_reports - true_counts, self.q)
