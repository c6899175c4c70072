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
        return np.sort(reports, axis=1)


@dataclass(frozen=True, kw_only=True)
class TellsTheTruthInTallies(SubsetSelection):
    """Subset Selection whose fused path always has the client's value in its report."""

    def _add_values(self, values, out, *, rng):
        for value in values:
            others = rng.choice(self.domain_size - 1, size=self.d - 1, replace=False)
            out[value] += 1
            out[others + (others >= value)] += 1


class SupportsItsValue:
    """An oracle of which a share of reports is drawn again until they support their value."""

    def __init__(self, oracle, share):
        self._oracle = oracle
        self._share = share

    @classmethod
    def with_epsilon(cls, oracle, epsilon):
        """Raise the odds of support, and so the privacy loss, from the oracle's to another one."""
        odds = oracle.p / (1 - oracle.p) * np.exp(epsilon - oracle.epsilon)
        return cls(oracle, (odds / (1 + odds) - oracle.p) / (1 - oracle.p))

    def __getattr__(self, name):
        return getattr(self._oracle, name)

    def privatize(self, values, *, rng):
        reports = self._oracle.privatize(values, rng=rng)
        wrong = np.flatnonzero(rng.random(len(values)) < self._share)
        while wrong.size:
            held = values[wrong]
            reports[wrong] = again = self._oracle.privatize(held, rng=rng)
            logs = np.stack([self.log_prob(again, value) for value in range(self.domain_size)])
            supports = logs[held, np.arange(held.size)] == logs.max(axis=0)
            # Where all values are as likely, none need be supported.
            wrong = wrong[~supports | (logs.max(axis=0) == logs.min(axis=0))]
        return reports


class SendsInstead:
    """An oracle of which a share of reports is replaced by what a function of values returns."""

    def __init__(self, oracle, share, sent):
        self._oracle = oracle
        self._share = share
        self._sent = sent

    def __getattr__(self, name):
        return getattr(self._oracle, name)

    def privatize(self, values, *, rng):
        reports = self._oracle.privatize(values, rng=rng)
        wrong = np.flatnonzero(rng.random(len(values)) < self._share)
        reports[wrong] = self._sent(reports[wrong], values[wrong])
        return reports


@dataclass(frozen=True, kw_only=True)
class TellsByItsLength(SubsetSelection):
    """Subset Selection whose report alone is longer for larger values, in their upper half."""

    def privatize(self, values, *, rng):
        reports = super().privatize(values, rng=rng)
        more = int(values.max() >= self.domain_size // 2) if len(values) == 1 else 0
        return np.pad(reports, ((0, 0), (0, more)), constant_values=self.domain_size)
