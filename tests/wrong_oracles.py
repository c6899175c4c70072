"""Oracles that break their promise, which an audit must catch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedhh.oracles import SubsetSelection


@dataclass(frozen=True, kw_only=True)
class KeepsItsValueTooOften(SubsetSelection):
    """Subset Selection whose reports hold their value 5 % more often than it states."""

    def privatize(self, values, *, rng):
        reports = super().privatize(values, rng=rng)
        # Of the reports that lack the value, enough are given it, in place of a random member.
        lacking = np.flatnonzero(~(reports == values[:, None]).any(axis=1))
        given = lacking[rng.random(lacking.size) < 0.05 * self.p / (1 - self.p)]
        reports[given, rng.integers(self.d, size=given.size)] = values[given]
        return reports
