"""Counting over random groups: the median of the groups' estimates in place of their mean.

A median ignores what a minority of groups says. It helps against fake clients that a few groups
hold. It does not help against those that are spread at random, as attackers among the clients of a
random order are: they move every group's estimate by as much as the mean.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.integrate import quad
from scipy.special import betaln, ndtr

from fedhh.oracles.families import PureVotes
from fedhh.validation import InputError, require_between

_Floats = npt.NDArray[np.float64]
_Counts = npt.NDArray[np.int64]

MOST_GROUPS = 10_001
"""Of a median."""

_FARTHEST = 40.0


def random_groups(
    num_clients: int, num_groups: int, *, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Return ``(num_clients,) int64``: each client's group; sizes differ by at most one."""
    return rng.permutation(np.arange(num_clients) % num_groups)


def median_of_groups(oracle: PureVotes, tallies: _Counts, num_reports: _Counts) -> _Floats:
    """Return ``(c,) float64``: the median of the groups' estimated shares, times all reports.

    Args:
        oracle: What the votes are of.
        tallies: ``(g, c) int64``: of each group, for an odd g.
        num_reports: ``(g,) int64``: reports of each group, at least 1.
    """
    _check_groups(len(tallies))
    shares = [
        oracle.estimate(tally, int(reports)) / reports
        for tally, reports in zip(tallies, num_reports, strict=True)
    ]
    return np.asarray(np.median(shares, axis=0) * num_reports.sum())


def noise_factor(num_groups: int) -> float:
    """Return the standard deviation of the median of g groups over that of their mean.

    For estimates with normal noise, which a group's are if it has many votes: sqrt(g Var), with the
    variance of the middle one of g standard normal variables, whose density is
    g! / m!**2 (F (1 - F))**m f for g = 2 m + 1. It grows with g to sqrt(pi / 2).

    Args:
        num_groups: g, odd.

    >>> round(noise_factor(3), 4), round(noise_factor(101), 4)
    (1.1602, 1.2506)
    """
    _check_groups(num_groups)
    middle = (num_groups - 1) // 2
    log_factor = -betaln(middle + 1, middle + 1) - math.log(2 * math.pi) / 2

    def weighted(x: float) -> float:
        tails = middle * (math.log(ndtr(x)) + math.log(ndtr(-x))) if middle else 0.0
        return x * x * math.exp(log_factor + tails - x * x / 2)

    # The density falls off within a few of its standard deviations, 1 / sqrt(g).
    reach = min(_FARTHEST / math.sqrt(num_groups), 30.0)
    variance, _ = quad(weighted, -reach, reach, epsabs=0, epsrel=1e-10, limit=200)
    return math.sqrt(num_groups * variance)


def _check_groups(num_groups: int) -> None:
    require_between(1, MOST_GROUPS, num_groups=num_groups)
    if num_groups % 2 == 0:
        raise InputError(
            f"Expected an odd num_groups, whose median is one group's estimate, got {num_groups}."
        )
