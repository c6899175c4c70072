"""From numbers of fake clients and what they achieved to the number that achieves it half the time.

A target is found with probability Phi((ln m - mu) / sigma) if m fake clients push it: a probit in
the logarithm of the dose. What is known of mu and sigma after some targets is their posterior under
a flat prior on mu and on ln sigma, on a grid. It has no trouble where all smaller doses fail and
all larger ones succeed, for which a maximum of the likelihood does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtri

from fedhh.arrays import Floats

CHANCES = (0.5, 0.95)
"""The chances of being found for which numbers are stated."""

_SIGMAS = np.geomspace(0.02, 3.0, 61)
_MUS = 1_201
_TAIL = 0.025


class Dose(NamedTuple):
    """Targets that as many fake clients pushed.

    Attributes:
        clients: Fake clients of each.
        targets: Targets.
        found: How many of them were found.
    """

    clients: int
    targets: int
    found: int


class Needed(NamedTuple):
    """How many fake clients a target takes to be found with some chance.

    Attributes:
        clients: The smallest whole number: of the posterior median.
        low: Lower end of the central 95 % of the posterior.
        high: Upper end.
    """

    clients: int
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class DoseResponse:
    """The posterior of the response to doses.

    Attributes:
        mus: ``(a,) float64``: the grid of mu.
        weights: ``(a, b) float64``: posterior over mu and `_SIGMAS`; sums to 1.
    """

    mus: Floats
    weights: Floats

    @classmethod
    def of(cls, doses: Sequence[Dose]) -> DoseResponse:
        """Return the posterior after some doses, of which some target was found and some not."""
        logs = np.log([dose.clients for dose in doses])
        found = np.array([dose.found for dose in doses], dtype=np.float64)
        missed = np.array([dose.targets for dose in doses]) - found
        mus = np.linspace(logs.min() - 1.0, logs.max() + 1.0, _MUS)
        weights = np.zeros((len(mus), len(_SIGMAS)))
        for column, sigma in enumerate(_SIGMAS):
            z = (logs[None, :] - mus[:, None]) / sigma
            weights[:, column] = log_ndtr(z) @ found + log_ndtr(-z) @ missed
        weights = np.exp(weights - weights.max())
        return cls(mus=mus, weights=weights / weights.sum())

    def needed(self, chance: float) -> Needed:
        """Return the number of fake clients with which a target is found with this chance."""
        numbers = np.exp(self.mus[:, None] + _SIGMAS[None, :] * ndtri(chance))
        order = np.argsort(numbers, axis=None)
        numbers, cumulated = numbers.ravel()[order], np.cumsum(self.weights.ravel()[order])
        low, median, high = (
            float(numbers[min(int(np.searchsorted(cumulated, p)), len(numbers) - 1)])
            for p in (_TAIL, 0.5, 1 - _TAIL)
        )
        return Needed(clients=int(np.ceil(median - 1e-9)), low=low, high=high)

    def chance(self, clients: npt.ArrayLike) -> Floats:
        """Return ``float64``: the posterior mean of the chance with so many fake clients."""
        logs = np.log(np.asarray(clients, dtype=np.float64))
        z = (logs[..., None, None] - self.mus[:, None]) / _SIGMAS
        return np.asarray((np.exp(log_ndtr(z)) * self.weights).sum(axis=(-2, -1)))


def merged(doses: Sequence[Dose]) -> tuple[Dose, ...]:
    """Return doses in ascending order, those of the same number as one."""
    totals: dict[int, tuple[int, int]] = {}
    for dose in doses:
        targets, found = totals.get(dose.clients, (0, 0))
        totals[dose.clients] = (targets + dose.targets, found + dose.found)
    return tuple(Dose(clients, *totals[clients]) for clients in sorted(totals))


def next_doses(doses: Sequence[Dose], number: int) -> list[int]:
    """Return further doses to try: between what always fails and what always succeeds.

    Args:
        doses: Tried ones, merged.
        number: How many at most.
    """
    missed = [dose.clients for dose in doses if not dose.found]
    found = [dose.clients for dose in doses if dose.found == dose.targets]
    partly = [dose.clients for dose in doses if 0 < dose.found < dose.targets]
    largest = doses[-1].clients
    high = min((each for each in found if each > max(partly, default=0)), default=largest)
    low = max((each for each in missed if each < min(partly, default=high)), default=1)
    return sorted({round(each) for each in np.geomspace(low, max(high, low), number)})
