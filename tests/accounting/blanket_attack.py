"""How tight the blanket bound of Subset Selection is: a lower bound to compare it with.

Reports are independent, and the hockey-stick divergence is
(1 / n) E[(V_1 + ... + V_n)_+] with V = L - x L', the likelihoods of a report under the victim's two
values relative to the distribution of the other reports. Replacing part of the sum by its
conditional expectation can only lower the result (Jensen), so delta computed here is never above
the truth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedhh.accounting.bounds.selection import Selection
from fedhh.accounting.bounds.shuffle_bound import check_delta, check_epsilon
from fedhh.arrays import Floats
from fedhh.privacy_loss.binomial import Lattice, binomial_excess, lattice, lower_tail, upper_tail
from tests.accounting.largest_epsilon import largest_epsilon_above

_TOLERANCE = 5e-5


@dataclass(frozen=True, kw_only=True)
class ShuffleLowerBound:
    """A lower bound on delta(epsilon) of a shuffle, from a few moments of the others' reports.

    Attributes:
        local_epsilon: Privacy of each report.
        num_reports: Reports in the shuffle.
        one: Probability that another report is of type (v, not v') and has likelihoods E, 1
            relative to its own distribution; the same for (v', not v). If 0, delta is bounded by 0
            only.
        echo: Probability that it is of such a type with likelihoods 1, 1 / E instead.
        rest: Mean relative likelihood of all other types, which tell nothing, per report.
    """

    local_epsilon: float
    num_reports: int
    one: float
    echo: float
    rest: float

    @cached_property
    def _pairs(self) -> Lattice:
        return lattice(self.num_reports - 1, 2 * self.one, tolerance=_TOLERANCE)

    @cached_property
    def _echoes(self) -> list[_Echoes]:
        others = self.num_reports - 1
        pairs = self._pairs
        most, fewest = others - pairs.first, others - pairs.last
        p = 2 * self.echo / (1 - 2 * self.one)
        center = float(fewest.mean()) * p
        deviation = math.sqrt(center * (1 - p))
        # Each range of counts is taken at its smallest. Narrow ranges pay where one wide range
        # would lose over 1 % of the variance, of which echoes make a share 1 / (1 + E**2).
        lost = 5 / math.sqrt(center + 1) / (1 + math.exp(2 * self.local_epsilon))
        marks = [-5.0] if lost < 0.01 else [-5.0, *np.arange(-2.5, 3.0, 0.5)]
        starts = sorted({max(0, math.floor(center + mark * deviation)) for mark in marks})
        step = max(0.2, 0.12 * math.exp(self.local_epsilon))
        ends = [*starts[1:], others + 1]
        return [
            _echoes(start, end, most=most, fewest=fewest, p=p, step=step)
            for start, end in zip(starts, ends, strict=True)
        ]

    def delta(self, epsilon: float) -> float:
        """Return a lower bound on the hockey-stick divergence at ``epsilon``."""
        check_epsilon(epsilon)
        if epsilon >= self.local_epsilon or self.one == 0:
            return 0.0
        inside = sum(self._given(echoes, epsilon) for echoes in self._echoes)
        slope = math.expm1(self.local_epsilon) * (1 + math.exp(epsilon))
        return 2 * self.one * slope * inside * (1 - 1e-8)

    def _given(self, echoes: _Echoes, epsilon: float) -> float:
        """Return E[(A - threshold)_+ / T; the number of echoes is in this range]."""
        growth = math.exp(self.local_epsilon)
        tilt = math.tanh(epsilon / 2) / math.expm1(self.local_epsilon)
        smallest, largest = self._pairs.first[:, None] + 1, self._pairs.last[:, None] + 1
        others = self.num_reports - smallest - echoes.mean
        rest = others * self.rest / (1 - 2 * self.one - 2 * self.echo)
        drift = tilt * (rest + echoes.mean * (growth + 1) / (2 * growth))
        push = echoes.nodes / growth - drift
        # What pushes down counts most at the bin's smallest T, what pushes up at its largest.
        share = largest * push / np.where(push < 0, smallest, largest)
        threshold = largest * (0.5 + tilt * (growth + 1) / 2) - share
        mean = binomial_excess(largest, threshold) @ echoes.weights / largest[:, 0]
        return float(np.dot(self._pairs.probability * echoes.probability, mean))

    def epsilon(self, delta: float) -> float:
        """Return an epsilon at which the shuffle is certainly not (epsilon, delta)-private.

        0.0 says nothing.
        """
        check_delta(delta)
        return largest_epsilon_above(self.delta, delta=delta, upper=self.local_epsilon)


@dataclass(frozen=True, kw_only=True)
class _Echoes:
    """The net number of echoes for v over v', given that the number of echoes is in a range.

    Attributes:
        nodes: ``(j,)``, conditional means of A - t / 2 in bins, A ~ Bin(t, 1/2), t the start of
            the range: the coins of t echoes are kept, those of further ones averaged out.
        weights: ``(j,)``, probabilities of the bins.
        mean: ``(m, 1)``, mean number of echoes in the range, for each bin of T.
        probability: ``(m,)``, of a number in the range.
    """

    nodes: Floats
    weights: Floats
    mean: Floats
    probability: Floats


def _echoes(
    start: int, end: int, *, most: Floats, fewest: Floats, p: float, step: float
) -> _Echoes:
    """Return the echoes given ``start <= number < end``.

    Args:
        start: Smallest number.
        end: One more than the largest number.
        most: ``(m,)``, other reports at the smallest T of each bin: gives the largest mean.
        fewest: ``(m,)``, other reports at the largest T of each bin.
        p: Probability that one of them is an echo.
        step: Width of a bin of coins in standard deviations.
    """
    enough = _between(start, end, most, p)
    partial_mean = most * p * _between(start - 1, end - 1, most - 1, p)
    mean = np.divide(partial_mean, enough, out=np.zeros_like(enough), where=enough > 0)
    inner = np.floor(start / 2 + math.sqrt(start) / 2 * np.arange(-8.0, 9.0, step))
    edges = np.unique(np.clip(np.concatenate([[0], inner, [start + 1]]), 0, start + 1))
    weights = _bin_masses(edges, start)
    centers = start / 2 * _bin_masses(edges - 1, start - 1)
    held = weights > 0
    nodes = np.clip(centers[held] / weights[held], edges[:-1][held], edges[1:][held] - 1)
    return _Echoes(
        nodes=nodes - start / 2,
        weights=weights[held],
        mean=np.clip(mean, start, end - 1)[:, None],
        probability=np.minimum(enough, _between(start, end, fewest, p)),
    )


def _between(start: int, end: int, trials: Floats, p: float) -> Floats:
    """Return P(start <= Bin(trials, p) < end)."""
    return upper_tail(start, trials, p) - upper_tail(end, trials, p)


def _bin_masses(edges: Floats, trials: int) -> Floats:
    """Return P(edges[i] <= Bin(trials, 1/2) < edges[i + 1]), each tail from its own side."""
    left = np.diff(lower_tail(edges - 1, trials, 0.5))
    right = -np.diff(upper_tail(edges, trials, 0.5))
    return np.asarray(np.where(edges[:-1] > trials / 2, right, left), dtype=np.float64)


def subset_selection_lower_bound(
    *, local_epsilon: float, num_reports: int, domain_size: int, subset_size: int
) -> ShuffleLowerBound:
    """Return a lower bound on what shuffled Subset Selection really reveals.

    The data: all other clients hold one third value, and the multiset of reports is published.
    No valid upper bound can be below it.
    """
    distribution = Selection(
        local_epsilon=local_epsilon, domain_size=domain_size, subset_size=subset_size
    )
    growth, blanket = math.exp(local_epsilon), distribution.blanket
    return ShuffleLowerBound(
        local_epsilon=local_epsilon,
        num_reports=num_reports,
        one=blanket * distribution.uniform_pattern(True, False, False),
        echo=growth * blanket * distribution.uniform_pattern(True, False, True),
        rest=blanket
        * (
            growth * distribution.uniform_pattern(True, True, False)
            + distribution.uniform_pattern(False, False, False)
            + growth * distribution.uniform_pattern(True, True, True)
            + distribution.uniform_pattern(False, False, True)
        ),
    )
