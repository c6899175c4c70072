"""Frequency oracles: a local randomizer and the estimator that belongs to it, in one object.

A client runs `privatize`; the server runs `tally` and `estimate`. Both halves read the same frozen
parameters, so p and q exist once.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from fedhh.validation import InputError, require_at_least, require_epsilon

Values = npt.NDArray[np.int64]
Reports = npt.NDArray[np.integer[Any]]
Tally = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

LARGEST_TALLY = 2**32 - 1
"""Most values that one tally counts: kernels number them, and one spare, with 32 bits."""

LARGEST_REPORT_SPACE = 2**22
"""Most numbers that all possible reports together may have, to be enumerated."""


class ServerWork(NamedTuple):
    """What a server does, in numbers that it adds up or looks at.

    Where all values are decoded together, a candidate's is its share of that.

    Attributes:
        report: Order of the work on a report, such as "d".
        per_report: Its number.
        candidate: Order of the work on a candidate, once all n reports are in.
        per_candidate: Its number, but for what each report adds to it.
        per_candidate_and_report: What a candidate needs for each report again; 0 where reports add
            up.
    """

    report: str
    per_report: float
    candidate: str
    per_candidate: float
    per_candidate_and_report: float = 0.0


def as_numbers(values: npt.ArrayLike, name: str = "values") -> Values:
    """Return one axis of integers as a contiguous ``(n,) int64`` array, or raise InputError."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(
            f"Expected {name} as one axis of integers, got shape {array.shape} of {array.dtype}; "
            f"pass each client's value as its number."
        )
    return np.ascontiguousarray(array, dtype=np.int64)


def require_in_domain(numbers: Values, domain_size: int, name: str = "values") -> None:
    """Raise InputError unless all of ``(n,) int64`` are in [0, domain_size)."""
    # One pass over the memory: as unsigned words, negative numbers are the largest.
    if numbers.size and numbers.view(np.uint64).max() >= domain_size:
        raise InputError(
            f"Expected {name} in [0, {domain_size}), got {name} from {numbers.min()} to "
            f"{numbers.max()}; they are numbers of values in the oracle's domain."
        )


@runtime_checkable
class SamplesTally(Protocol):
    """An oracle that can draw a tally from a histogram, without reports, with the exact law."""

    def sample_tally(
        self, true_counts: Values, num_reports: int, *, rng: np.random.Generator
    ) -> Tally:
        """Return ``(domain_size,) int64``, as `FrequencyOracle.privatize_and_tally` would.

        Args:
            true_counts: ``(domain_size,) int64``: clients that hold each value; they sum to
                ``num_reports``.
            num_reports: Number of reports.
            rng: Source of the clients' coins.
        """


@runtime_checkable
class SamplesHits(Protocol):
    """An oracle of fixed aggregate whose noise can be drawn afterwards, with the exact law.

    Hits are the aggregate that the same reports would have without their noise: what of a report
    does not depend on its noise, such as its row of a sketch, is drawn with them.
    """

    def add_hits(
        self, values: Values, *, rng: np.random.Generator, out: Tally | None = None
    ) -> Tally:
        """Return the ``(aggregate_size,) int64`` hits of some clients; additive.

        Args:
            values: ``(n,) int64`` in [0, domain_size).
            rng: Source of the coins that are not noise.
            out: ``(aggregate_size,) int64`` to add to; a new array if None.
        """

    def sample_aggregate(self, hits: Tally, *, rng: np.random.Generator) -> Tally:
        """Return what `FrequencyOracle.privatize_and_aggregate` would, given the sum of all hits.

        Args:
            hits: ``(aggregate_size,) int64``.
            rng: Source of the clients' noise.
        """


@dataclass(frozen=True, kw_only=True)
class FrequencyOracle(ABC):
    """A local randomizer over the values 0 .. domain_size - 1, and its unbiased estimator.

    Fields are public parameters; data and randomness are arguments.

    Attributes:
        epsilon: Local privacy of one report: for any two values, any report's probabilities
            differ by a factor of at most e**epsilon.
        domain_size: Number of values, at least 2; a protocol's dummy is one of them.
        has_public_coins: Whether a report shows coins drawn independently of the value, such as
            the seed of a hash function. `log_prob` and `report_space` are then given those.
        has_fixed_aggregate: Whether the aggregate's size does not depend on the domain's, so that
            reports can be added up over a domain too large to count value by value.
    """

    epsilon: float
    domain_size: int

    has_public_coins: ClassVar[bool] = False
    has_fixed_aggregate: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self._check_epsilon()
        require_at_least(2, domain_size=self.domain_size)

    def _check_epsilon(self) -> None:
        require_epsilon(epsilon=self.epsilon)

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
        out = self._tally_of_all(out)
        out += self.tally(self.privatize(values, rng=rng), np.arange(self.domain_size))
        return out

    @property
    def aggregate_size(self) -> int:
        """Number of integers that reports add up to: one count per value, unless overridden."""
        return self.domain_size

    def aggregate(self, reports: Reports) -> Tally:
        """Return the ``(aggregate_size,) int64`` sums of some reports (run by the server)."""
        return self.tally(reports, np.arange(self.domain_size))

    def privatize_and_aggregate(
        self, values: Values, *, rng: np.random.Generator, out: Tally | None = None
    ) -> Tally:
        """Return the aggregate of fresh reports, which need not be stored.

        The law is that of ``aggregate(privatize(values))``; the bits drawn from ``rng`` may differ.

        Args:
            values: ``(n,) int64`` in [0, domain_size).
            rng: Source of the clients' coins.
            out: ``(aggregate_size,) int64`` to add to, contiguous; a new array if None.

        Returns:
            ``(aggregate_size,) int64``, ``out`` if it was given.
        """
        return self.privatize_and_tally(values, rng=rng, out=out)

    def support(self, aggregate: Tally, candidates: Values) -> Tally:
        """Return how many of an aggregate's reports support each candidate (run by the server).

        Args:
            aggregate: ``(aggregate_size,) int64``.
            candidates: ``(c,) int64`` in [0, domain_size).

        Returns:
            ``(c,) int64``, ready for `estimate`.
        """
        return aggregate[self.check_values(candidates, "candidates")]

    def support_of_all(self, aggregates: Tally) -> Tally:
        """Return the support of every value in each of ``(t, aggregate_size)`` aggregates.

        Returns:
            ``(t, domain_size) int64``; perhaps the argument itself.
        """
        return aggregates

    def cells(self, aggregate: Tally) -> Tally | Floats | None:
        """Return what values share in an aggregate; None if each has a count of its own.

        Returns:
            ``(k, m)``: a value's `support` is a sum over k rows, of the cell of each that a public
            random function sends it to.
        """
        return None

    def collision_variance(self, count: npt.ArrayLike) -> Floats:
        """Return what equal values add to the variance of every other value's estimate.

        Args:
            count: ``(c,)``: how many clients hold one and the same value.

        Returns:
            ``(c,) float64``; 0 where no two values share a cell.
        """
        return np.zeros(np.shape(count))

    def nanoseconds_saved(self, num_reports: int) -> float:
        """Return about how much faster so many reports' sum is drawn at once than one by one.

        It follows from sizes, never from a clock: the choice that rests on it is part of a result.

        Returns:
            Nanoseconds of one core, negative if reports one by one are faster; 0 for oracles that
            are neither `SamplesTally` nor `SamplesHits`.
        """
        return 0.0

    @property
    def server_work(self) -> ServerWork | None:
        """What adding up and decoding cost the server; None if the oracle does not say."""
        return None

    @property
    def values_per_report(self) -> int | None:
        """d, where a report is a set of d values (Subset Selection); None otherwise."""
        return None

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
        """Return every possible report, first axis one per report; for tiny domains only.

        Raises:
            InputError: They have more than `LARGEST_REPORT_SPACE` numbers in all.
        """

    @property
    @abstractmethod
    def report_bits(self) -> float:
        """Bits that one report needs on the wire, under the encoding the subclass states."""

    def check_values(self, values: npt.ArrayLike, name: str = "values") -> Values:
        """Return ``values`` as a contiguous ``(n,) int64`` array, or raise InputError."""
        numbers = as_numbers(values, name)
        require_in_domain(numbers, self.domain_size, name)
        return numbers

    def _check_report_space(self, log2_reports: float, *, width: int = 1) -> None:
        """Raise InputError if so many reports of ``width`` numbers each are too many to list."""
        if log2_reports + math.log2(width) > math.log2(LARGEST_REPORT_SPACE):
            raise InputError(
                f"Expected at most {LARGEST_REPORT_SPACE:,} numbers in all possible reports, got "
                f"2**{log2_reports:.1f} reports of {width:,} numbers each of {type(self).__name__} "
                f"with domain_size={self.domain_size}; enumerate a smaller domain."
            )

    def _tally_of_all(self, out: Tally | None) -> Tally:
        """Return ``out`` if it can hold a tally of all values, zeros if it is None."""
        if self.domain_size > LARGEST_TALLY:
            raise InputError(
                f"Expected domain_size <= {LARGEST_TALLY} for a tally of all values, got "
                f"domain_size={self.domain_size}; privatize, then tally some candidates."
            )
        if out is None:
            return np.zeros(self.domain_size, dtype=np.int64)
        if out.shape != (self.domain_size,) or out.dtype != np.int64:
            raise InputError(
                f"Expected out of shape ({self.domain_size},) and int64, got {out.shape} and "
                f"{out.dtype}; leave it out for a new array."
            )
        return out

    def _check_true_counts(self, true_counts: npt.ArrayLike, num_reports: int) -> Values:
        """Return ``(domain_size,) int64`` non-negative counts that sum to ``num_reports``."""
        counts = np.ascontiguousarray(true_counts, dtype=np.int64)
        if counts.shape != (self.domain_size,) or counts.min() < 0:
            raise InputError(
                f"Expected {self.domain_size} true_counts >= 0, one per value, got shape "
                f"{counts.shape} with minimum {counts.min() if counts.size else None}."
            )
        if counts.sum() != num_reports:
            raise InputError(
                f"Expected true_counts to sum to num_reports={num_reports}, got {counts.sum()}; "
                f"every report has a value, the dummy's count included."
            )
        return counts


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
