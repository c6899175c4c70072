"""Oracles with so few outputs that a server counts how many reports are each."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedhh.oracles.base import AggregateForm, FrequencyOracle, Reports, Tally


@dataclass(frozen=True, kw_only=True)
class CountedOutputs(FrequencyOracle):
    """An oracle whose reports are whole numbers below K; what the server keeps is a count of each.

    The support of any values follows from those counts, at a cost that does not grow with reports
    times values.
    """

    aggregate_form: ClassVar[AggregateForm] = "outputs"

    @property
    @abstractmethod
    def aggregate_size(self) -> int:
        """Number of outputs, K."""

    def report_space(self) -> Reports:
        """Return all K outputs."""
        self._check_report_space(math.log2(self.aggregate_size))
        return np.arange(self.aggregate_size)

    def _add_reports(self, reports: Reports, out: Tally) -> None:
        out += np.bincount(reports, minlength=self.aggregate_size)
