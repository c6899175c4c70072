"""Frequency oracles: a local randomizer and the estimator that belongs to it, in one object.

A client runs `privatize`; the server runs `aggregate`, `support` and `estimate`. Both halves read
the same frozen parameters, so p and q exist once.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
from annotated_types import Ge

from fedhh.arrays import Floats
from fedhh.settings import ReportEpsilon, Settings
from fedhh.validation import InputError

Values = npt.NDArray[np.int64]
Reports = npt.NDArray[np.integer[Any]]
Tally = npt.NDArray[np.int64]


LARGEST_TALLY = 2**32 - 1
"""Most numbers of an aggregate: kernels number values, and one spare, with 32 bits."""

LARGEST_REPORT_SPACE = 2**22
"""Most numbers that all possible reports together may have, to be enumerated."""


def require_countable(domain_size: int, oracle: str) -> None:
    """Raise InputError if an oracle cannot count every value of a domain in one tally."""
    if domain_size > LARGEST_TALLY:
        raise InputError(
            f"Expected domain_size <= {LARGEST_TALLY} for {oracle}, got "
            f"domain_size={domain_size}; use an oracle that hashes, such as olh."
        )


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


@dataclass(frozen=True, kw_only=True)
class FrequencyOracle(Settings, ABC):
    """A local randomizer over the values 0 .. domain_size - 1, and its unbiased estimator.

    Fields are public parameters; data and randomness are arguments.

    A subclass states what is abstract. How its reports add up stands in `_add_reports` and, for
    speed, `_add_values`; how a sum answers, in `_support` and `_support_of_reports`. `aggregate`
    and `support` call these with checked arguments. Oracles whose aggregate can be drawn without
    reports are `fedhh.oracles.families.SampledAggregates`.

    Attributes:
        epsilon: Local privacy of one report: for any two values, any report's probabilities
            differ by a factor of at most e**epsilon.
        domain_size: Number of values, at least 2; a protocol's dummy is one of them.
        has_public_coins: Whether a report shows coins drawn independently of the value, such as
            the seed of a hash function. `log_prob` and `report_space` are then given those.
        is_sketch: Whether reports add up to numbers that values share, as many for any domain, so
            that it may be too large to count value by value.
    """

    epsilon: ReportEpsilon
    domain_size: Annotated[int, Ge(2)]

    has_public_coins: ClassVar[bool] = False
    is_sketch: ClassVar[bool] = False

    @abstractmethod
    def privatize(self, values: Values, *, rng: np.random.Generator) -> Reports:
        """Return one report per value (run by the client).

        Args:
            values: ``(n,) int64`` in [0, domain_size).
            rng: Source of the client's coins.

        Returns:
            Reports, first axis n; the other axes are the oracle's own.
        """

    @property
    def aggregate_size(self) -> int:
        """Number of integers that reports add up to: one count per value, unless overridden."""
        return self.domain_size

    def aggregate(
        self,
        reports: Reports | None = None,
        *,
        values: Values | None = None,
        rng: np.random.Generator | None = None,
        out: Tally | None = None,
    ) -> Tally:
        """Return the sums of some reports, or of fresh reports of some values.

        The distribution of ``aggregate(values=v, rng=rng)`` is that of
        ``aggregate(privatize(v, rng=rng))``; no report need be stored, and the bits drawn from
        ``rng`` may differ.

        Args:
            reports: What `privatize` returned (run by the server).
            values: ``(n,) int64`` in [0, domain_size), in place of reports (run by the client).
            rng: Source of the clients' coins, with values.
            out: ``(aggregate_size,) int64`` to add to, contiguous; a new array if None.

        Returns:
            ``(aggregate_size,) int64``, ``out`` if it was given.

        Raises:
            InputError: Values lie outside the domain, or ``out`` has another form.
        """
        sums = self._sums(out)
        if reports is not None and values is None:
            self._add_reports(reports, sums)
        elif reports is None and values is not None and rng is not None:
            self._add_values(self._check_values(values), sums, rng=rng)
        else:
            raise TypeError("Expected reports, or values with an rng, to aggregate.")
        return sums

    def support(
        self,
        aggregate: Tally | None = None,
        candidates: Values | None = None,
        *,
        reports: Reports | None = None,
    ) -> Tally:
        """Return how many reports support each candidate (run by the server).

        Args:
            aggregate: ``(aggregate_size,) int64``, or ``(t, aggregate_size)``: t of them.
            candidates: ``(c,) int64`` in [0, domain_size); every value if None.
            reports: What `privatize` returned, in place of an aggregate: for few reports, or for
                domains too large for an aggregate.

        Returns:
            ``(c,) int64``, or ``(t, c)``, ready for `estimate`; perhaps the aggregate itself.

        Raises:
            InputError: Candidates lie outside the domain, or all values are too many to ask about.
        """
        if candidates is not None:
            candidates = self._check_values(candidates, "candidates")
        if aggregate is not None and reports is None:
            supports = self._support(np.atleast_2d(aggregate), candidates)
            return supports if aggregate.ndim > 1 else np.asarray(supports[0])
        if aggregate is None and reports is not None:
            everything = np.arange(self.domain_size) if candidates is None else candidates
            return self._support_of_reports(reports, everything)
        raise TypeError("Expected an aggregate, or reports, to look for support in.")

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

    def log_probs(self, reports: Reports, values: Values) -> Floats:
        """Return ``(n, c) float64``: `log_prob` of each report, given each of ``(c,)`` values."""
        return np.stack([self.log_prob(reports, int(value)) for value in values], axis=1)

    @abstractmethod
    def report_space(self) -> Reports:
        """Return every possible report, first axis one per report; for tiny domains only.

        Raises:
            InputError: They have more than `LARGEST_REPORT_SPACE` numbers in all.
        """

    def craft(
        self, values: npt.ArrayLike, *, sign: int, count: int, rng: np.random.Generator
    ) -> Reports:
        """Return reports that change the estimates of values as much as one report can.

        A device sends them that does not follow its randomizer; see `fedhh.oracles.attack`. What
        is left of a report is drawn at random, as honest reports have it.

        Args:
            values: ``(r,) int64`` in [0, domain_size), at least one; repeated ones count once.
            sign: 1 to raise the sum of their estimates, -1 to lower it; 0 for reports that are
                uniform over the report space, for no values.
            count: How many reports.
            rng: Source of the attacker's coins.

        Raises:
            InputError: Values are none, or outside the domain.
        """
        distinct = np.unique(as_numbers(values))
        if not sign:
            distinct = distinct[:0]
        elif not len(distinct):
            raise InputError("Expected at least one value to craft reports for, got none.")
        require_in_domain(distinct, self.domain_size)
        return self._craft(distinct, sign, count, rng)

    def best_report(self, values: npt.ArrayLike) -> Reports:
        """Return one report that no other one surpasses in what it adds to the values' estimates.

        It is what `craft` returns, where that need not search.
        """
        return self.craft(values, sign=1, count=1, rng=np.random.default_rng(0))

    def effect(self, reports: Reports, values: Values) -> float:
        """Return what one of the reports adds, in the mean, to the values' estimates in all."""
        support = self.support(reports=reports, candidates=values)
        return float(self.estimate(support, len(reports)).sum()) / len(reports)

    @property
    @abstractmethod
    def report_bits(self) -> float:
        """Bits that one report needs on the wire, under the encoding the subclass states."""

    @property
    def report_draws(self) -> int:
        """Random numbers that a report takes; 0 if "auto" should never sample an aggregate."""
        return 0

    @abstractmethod
    def _add_reports(self, reports: Reports, out: Tally) -> None:
        """Add reports to ``(aggregate_size,) int64``, which is changed in place."""

    def _add_values(self, values: Values, out: Tally, *, rng: np.random.Generator) -> None:
        """Add fresh reports of values to ``out``, as `_add_reports` does; for speed.

        Args:
            values: ``(n,) int64`` in [0, domain_size), contiguous.
            out: ``(aggregate_size,) int64``, contiguous, changed in place.
            rng: Source of the clients' coins.
        """
        self._add_reports(self.privatize(values, rng=rng), out)

    def _craft(self, values: Values, sign: int, count: int, rng: np.random.Generator) -> Reports:
        """Return what `craft` does for ascending values, none with sign 0; here the best of all."""
        space = self.report_space()
        effects = [self.effect(space[i : i + 1], values) for i in range(len(space))]
        return np.asarray(space[best_of(sign * np.array(effects), count, rng=rng)])

    def _support(self, aggregates: Tally, candidates: Values | None) -> Tally:
        """Return the support of candidates, or of every value, in ``(t, aggregate_size)`` sums."""
        return aggregates if candidates is None else aggregates[:, candidates]

    def _support_of_reports(self, reports: Reports, candidates: Values) -> Tally:
        """Return the support of ``(c,) int64`` candidates, unless overridden by an aggregate."""
        return self.support(self.aggregate(reports), candidates)

    def _check_values(self, values: npt.ArrayLike, name: str = "values") -> Values:
        """Return ``values`` as a contiguous ``(n,) int64`` array, or raise InputError."""
        numbers = as_numbers(values, name)
        require_in_domain(numbers, self.domain_size, name)
        return numbers

    def _check_counts(self, counts: npt.ArrayLike) -> Tally:
        """Return ``(domain_size,) int64`` counts of values, or raise InputError."""
        numbers = np.ascontiguousarray(counts, dtype=np.int64)
        if numbers.shape != (self.domain_size,) or numbers.min() < 0:
            raise InputError(
                f"Expected {self.domain_size} counts >= 0, one per value, got shape "
                f"{numbers.shape} with minimum {numbers.min() if numbers.size else None}."
            )
        return numbers

    def _check_report_space(self, log2_reports: float, *, width: int = 1) -> None:
        """Raise InputError if so many reports of ``width`` numbers each are too many to list."""
        if log2_reports + math.log2(width) > math.log2(LARGEST_REPORT_SPACE):
            raise InputError(
                f"Expected at most {LARGEST_REPORT_SPACE:,} numbers in all possible reports, got "
                f"2**{log2_reports:.1f} reports of {width:,} numbers each of {type(self).__name__} "
                f"with domain_size={self.domain_size}; enumerate a smaller domain."
            )

    def _sums(self, out: Tally | None) -> Tally:
        """Return ``out`` if it can hold an aggregate, zeros if it is None."""
        size = self.aggregate_size
        if size > LARGEST_TALLY:
            raise InputError(
                f"Expected domain_size <= {LARGEST_TALLY} to count every value, got "
                f"domain_size={self.domain_size}; look for some candidates in reports."
            )
        if out is None:
            return np.zeros(size, dtype=np.int64)
        if out.shape != (size,) or out.dtype != np.int64 or not out.data.contiguous:
            raise InputError(
                f"Expected out as ({size},) contiguous int64, got {out.shape} of {out.dtype}; "
                "leave it out for a new array."
            )
        return out


def best_of(scores: Floats | Tally, count: int, *, rng: np.random.Generator) -> Values:
    """Return ``(count,) int64``: the places of largest scores, each drawn at random."""
    ties = np.flatnonzero(scores >= scores.max() - 1e-9 * abs(scores.max()))
    return np.asarray(rng.choice(ties, size=count))


class PureVotes(ABC):
    """Independent votes: one for a held value with probability p, for any other with q.

    The estimate is (tally - n q) / (p - q), its variance for a true count c
    [c p (1 - p) + (n - c) q (1 - q)] / (p - q)**2: Wang, Blocki, Li, Jha (2017), "Locally
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
        return np.asarray((tally - num_reports * self.q) / (self.p - self.q), dtype=np.float64)

    def variance(self, count: npt.ArrayLike, num_reports: int) -> Floats:
        count = np.asarray(count, dtype=np.float64)
        held = count * self.p * (1 - self.p)
        others = (num_reports - count) * self.q * (1 - self.q)
        return np.asarray((held + others) / (self.p - self.q) ** 2, dtype=np.float64)


class PureOracle(PureVotes, FrequencyOracle):
    """An oracle whose report supports a held value with probability p, any other with q."""

    def supported_values(self, reports: Reports) -> Reports:
        """Return ``(n, w)`` integers: the distinct values that each report supports.

        Raises:
            InputError: Reports of this oracle have no list of so many values.
        """
        raise InputError(
            "Expected an oracle whose reports list the values that they support for "
            f"votes_per_client='one', got {type(self).__name__}; use ss or grr."
        )
