"""Aggregate-level sampling: an aggregate drawn from noise-free counts, without making reports.

A simulator does this, never a device: the privacy of clients rests on reports that each have their
own noise.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fedhh.kernels.subset_tally import count_into
from fedhh.oracles.base import FrequencyOracle, Tally, Values
from fedhh.validation import InputError


@dataclass(frozen=True, kw_only=True)
class SampledAggregates(FrequencyOracle):
    """An oracle whose aggregate can be drawn from noise-free counts, with the exact distribution.

    Noise-free counts are the aggregate that reports would have without their noise. Where an
    aggregate counts each value, they are how many clients hold it; a sketch overrides
    `noise_free_counts`, since what of a report is no noise, such as its row, is drawn with them.

    Attributes:
        counts_values: Whether noise-free counts are those of values, for oracles that are no
            sketch: not where coins that are no noise say which numbers a report adds to.
    """

    counts_values: ClassVar[bool] = True

    def noise_free_counts(
        self, values: Values, *, rng: np.random.Generator, out: Tally | None = None
    ) -> Tally:
        """Return the ``(aggregate_size,) int64`` noise-free counts of some clients; additive.

        Args:
            values: ``(n,) int64`` in [0, domain_size).
            rng: Source of the coins that are not noise.
            out: ``(aggregate_size,) int64`` to add to, contiguous; a new array if None.
        """
        out = self._sums(out)
        count_into(self._check_values(values), out)
        return out

    @abstractmethod
    def sample_aggregate(self, counts: Tally, *, rng: np.random.Generator) -> Tally:
        """Return what `aggregate` would of the reports behind these noise-free counts.

        Args:
            counts: ``(aggregate_size,) int64``, at least 0, of all clients.
            rng: Source of the clients' noise.

        Returns:
            ``(aggregate_size,) int64``, another array.
        """

    def _check_counts(self, counts: npt.ArrayLike) -> Tally:
        """Return ``(domain_size,) int64`` counts of values, or raise InputError."""
        numbers = np.ascontiguousarray(counts, dtype=np.int64)
        if numbers.shape != (self.domain_size,) or numbers.min() < 0:
            raise InputError(
                f"Expected {self.domain_size} counts >= 0, one per value, got shape "
                f"{numbers.shape} with minimum {numbers.min() if numbers.size else None}."
            )
        return numbers


def sum_of_bits(
    held: Tally, num_reports: Tally | int, *, one: float, zero: float, rng: np.random.Generator
) -> Tally:
    """Return how many reports have a 1, for bits that are answered independently of each other.

    Of n reports, a bit that c of them set has Bin(c, ``one``) + Bin(n - c, ``zero``) ones.
    """
    ones = rng.binomial(held, one)
    return np.asarray(ones + rng.binomial(num_reports - held, zero), dtype=np.int64)
