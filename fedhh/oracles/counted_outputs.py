"""Oracles with so few outputs that a server counts how many reports are each."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from fedhh.oracles.base import FrequencyOracle, Reports, Tally, Values


@dataclass(frozen=True, kw_only=True)
class CountedOutputs(FrequencyOracle):
    """An oracle whose reports are whole numbers below K; what the server keeps is a count of each.

    The tally of any values follows from those counts (`support`), so that its cost does not grow
    with reports times values.
    """

    @property
    @abstractmethod
    def aggregate_size(self) -> int:
        """Number of outputs, K."""

    def aggregate(self, reports: Reports) -> Tally:
        """Return ``(K,) int64``: how many reports are each output."""
        return np.bincount(reports, minlength=self.aggregate_size).astype(np.int64, copy=False)

    def privatize_and_aggregate(
        self, values: Values, *, rng: np.random.Generator, out: Tally | None = None
    ) -> Tally:
        """Return how many fresh reports are each output; adding them up is O(n + K)."""
        if out is None:
            out = np.zeros(self.aggregate_size, dtype=np.int64)
        out += self.aggregate(self.privatize(values, rng=rng))
        return out

    def tally(self, reports: Reports, candidates: Values) -> Tally:
        """Return each candidate's support, by way of the reports' aggregate."""
        return self.support(self.aggregate(reports), candidates)

    def privatize_and_tally(
        self, values: Values, *, rng: np.random.Generator, out: Tally | None = None
    ) -> Tally:
        """Return every value's support over fresh reports, counted by output first."""
        out = self._tally_of_all(out)
        out += self.support_of_all(self.privatize_and_aggregate(values, rng=rng)[None])[0]
        return out

    def report_space(self) -> Reports:
        """Return all K outputs."""
        self._check_report_space(math.log2(self.aggregate_size))
        return np.arange(self.aggregate_size)
