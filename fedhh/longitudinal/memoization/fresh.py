"""Fresh noise every day, to compare memoised answers with."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedhh.longitudinal.memoization.daily import DailyAnswer, Floats, Memo, Public, Reports, as_days
from fedhh.oracles.base import FrequencyOracle, as_numbers
from fedhh.validation import require_at_least


@dataclass(frozen=True, kw_only=True)
class FreshAnswer(DailyAnswer):
    """Any frequency oracle, asked again every day: nothing is remembered, and losses add up.

    Formal guarantees:
        * t reports: t epsilon, whatever the values do (basic composition), attained wherever the
          oracle attains its epsilon.
        * That a value changed on a day: epsilon, if nothing else differs.

    Attributes:
        oracle: What randomizes each report.
    """

    oracle: FrequencyOracle

    def begin(self, num_devices: int, *, rng: np.random.Generator) -> Memo:
        require_at_least(0, num_devices=num_devices)
        return Memo(
            np.empty((num_devices, 0), dtype=np.int64),
            np.zeros(num_devices),
            np.zeros(num_devices, dtype=np.uint64),
        )

    def answer(self, memo: Memo, values: npt.ArrayLike, *, rng: np.random.Generator) -> Reports:
        return self.oracle.privatize(as_numbers(values), rng=rng)

    def log_prob(self, reports: Reports, values: npt.ArrayLike, public: Public) -> Floats:
        days = as_numbers(as_days(values, reports.shape[1]))
        total = np.zeros(len(reports))
        for day, value in enumerate(days.tolist()):
            total += self.oracle.log_prob(reports[:, day], value)
        return total

    def estimate(self, reports: Reports, public: Public) -> Floats:
        return self.oracle.estimate(self.oracle.support(reports=reports), len(reports))

    def epsilon_after(self, days: int) -> float:
        require_at_least(1, days=days)
        return days * self.oracle.epsilon

    @property
    def epsilon_forever(self) -> float:
        return math.inf

    def epsilon_of_same_pattern(self, width: int) -> float:
        require_at_least(1, width=width)
        return math.inf
