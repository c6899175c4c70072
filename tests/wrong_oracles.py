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


@dataclass(frozen=True, kw_only=True)
class TellsTheTruthInTallies(SubsetSelection):
    """Subset Selection whose fused path always has the client's value in its report."""

    def privatize_and_tally(self, values, *, rng, out=None):
        out = self._tally_of_all(out)
        for value in values:
            others = rng.choice(self.domain_size - 1, size=self.d - 1, replace=False)
            out[value] += 1
            out[others + (others >= value)] += 1
        return out
