"""Claims of privacy as trade-off functions: the most power at each probability of a false alarm.

A test says which of two neighboring inputs an output came from. Its power is the probability of
saying so rightly under the first input; its false alarm, that of saying so under the second one.
Privacy bounds the power by a concave function of the false alarm: Dong, Roth, Su (2022), "Gaussian
differential privacy", JRSS B 84(1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Self

import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Lt
from scipy import special, stats

from fedhh.arrays import Floats
from fedhh.settings import Positive, Settings

_CLOSE = 1e-12
_ROUNDING = 1e-11
"""Relative error of binomial probabilities, generously."""


@dataclass(frozen=True, kw_only=True)
class EpsilonDelta(Settings):
    """(epsilon, delta)-differential privacy, of one report or of any output.

    Attributes:
        epsilon: At least 0; math.inf claims nothing.
        delta: In [0, 1): the power that is allowed without any false alarm.
    """

    step: ClassVar[float] = 0.0
    """Distance of levels; 0 if they are real numbers."""
    most: ClassVar[float] = 100.0
    """The largest level that is looked at."""
    epsilon: Annotated[float, Ge(0)]
    delta: Annotated[float, Ge(0), Lt(1)] = 0.0

    @property
    def level(self) -> float:
        """What an audit bounds from below."""
        return self.epsilon

    @property
    def unit(self) -> str:
        """What the level counts."""
        return f"epsilon at delta {self.delta:g}" if self.delta else "epsilon"

    def at(self, level: float) -> Self:
        """Return the claim of another level."""
        return replace(self, epsilon=level)

    def power(self, false_alarms: npt.ArrayLike) -> Floats:
        """Return the largest powers, ``(m,)``, at ``(m,)`` false alarms; concave, rounded up."""
        rare = np.asarray(false_alarms, dtype=np.float64)
        growth = math.exp(min(self.epsilon, self.most))
        steep, flat = growth * rare + self.delta, 1 - (1 - self.delta - rare) / growth
        return np.asarray(np.minimum(np.minimum(steep, flat), 1.0))


@dataclass(frozen=True, kw_only=True)
class Answers(Settings):
    """So many answers at most, each epsilon-private, and each perhaps chosen by the earlier ones.

    They show at most what as many binary randomized responses show: Kairouz, Oh, Viswanath (2015),
    "The composition theorem for differential privacy", ICML, Theorem 3.3. All k together show far
    less than k times epsilon in any event that is ever seen, so that more of them are seen long
    before they exceed the sum.

    Attributes:
        each: Epsilon of each, for any two values; above 0.
        times: How many at most, at least 0.
        what: What they are called.
    """

    step: ClassVar[float] = 1
    most: ClassVar[float] = 10_000
    delta: ClassVar[float] = 0.0
    each: Positive
    times: Annotated[int, Ge(0)]
    what: str = "answers"

    @property
    def level(self) -> float:
        return self.times

    @property
    def unit(self) -> str:
        return f"{self.what} of {self.each:.3g}"

    @property
    def epsilon(self) -> float:
        """Basic composition: the sum over all answers."""
        return self.each * self.times

    def at(self, level: float) -> Self:
        return replace(self, times=int(level))

    def power(self, false_alarms: npt.ArrayLike) -> Floats:
        # The likeliest events are those of at least so many responses for the first input.
        fewest = np.arange(self.times, -2, -1)
        rare, likely = (
            stats.binom.sf(fewest, self.times, special.expit(sign * self.each)) for sign in (-1, 1)
        )
        rare[-1] = likely[-1] = 1.0
        found = np.interp(np.asarray(false_alarms, dtype=np.float64), rare, likely)
        return np.asarray(np.minimum(found * (1 + _ROUNDING), 1.0))


Claim = EpsilonDelta | Answers
"""A trade-off function, of a family that is ordered by its level: 0 claims that nothing is told."""


def least(claim: Claim, holds: Callable[[Claim], bool], *, above: float = 0) -> float | None:
    """Return the least level of a claim's kind, from ``above`` on, at which a monotone test holds.

    Of real levels the largest that is known to fail, within 1e-12 of it; None if even the largest
    level fails.
    """
    if holds(claim.at(above)):
        return above
    low, high = above, max(2 * above, 1)
    while not holds(claim.at(high)):
        if high >= claim.most:
            return None
        low, high = high, min(2 * high, claim.most)
    while high - low > max(claim.step, _CLOSE):
        middle = (low + high) / 2 if not claim.step else (low + high) // 2
        low, high = (low, middle) if holds(claim.at(middle)) else (middle, high)
    return high if claim.step else low
