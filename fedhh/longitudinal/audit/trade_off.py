"""What several answers can show together at most: the trade-off of composed randomizers.

A test of one input against another with false alarms of probability beta has some power at most. Of
any k answers, each epsilon-differentially private and each perhaps chosen by the earlier ones, that
is at most the power for k times binary randomized response: Kairouz, Oh, Viswanath (2015), "The
composition theorem for differential privacy", ICML, Theorem 3.3; for answers of different epsilons,
Murtagh, Vadhan (2016), "The complexity of computing the optimal composition of differential
privacy", TCC, Theorem 1.5 (numbering not verified).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fedhh.accounting.bounds.pure_composition import responses
from fedhh.privacy_loss.sums import compose
from fedhh.validation import InputError, require_at_least, require_positive

Floats = npt.NDArray[np.float64]

_LARGEST_GRID = 20_000
_ROUNDING = 1e-14


@dataclass(frozen=True, kw_only=True)
class Answers:
    """Some answers of the same privacy.

    Attributes:
        epsilon: Of each, for any two values; above 0.
        times: How many at most, at least 0.
    """

    epsilon: float
    times: int

    def __post_init__(self) -> None:
        require_positive(epsilon=self.epsilon)
        require_at_least(0, times=self.times)


@dataclass(frozen=True)
class TradeOff:
    """The most that some answers together can show of one input against another."""

    answers: tuple[Answers, ...]

    @property
    def epsilon(self) -> float:
        """Basic composition: the sum over all answers."""
        return math.fsum(each.epsilon * each.times for each in self.answers)

    @property
    def num_answers(self) -> int:
        return sum(each.times for each in self.answers)

    def power(self, false_alarms: npt.ArrayLike) -> Floats:
        """Return the largest probabilities of events, concave in those under the other input.

        Rounded up, by 1e-11 of it and where the epsilons have no common measure. Both are ``(m,)``.
        """
        under_other, under_one = self.corners
        found = np.interp(np.asarray(false_alarms, dtype=np.float64), under_other, under_one)
        return np.minimum(found * (1 + _ROUNDING), 1.0)

    @cached_property
    def corners(self) -> tuple[Floats, Floats]:
        """Return the probabilities of all likeliest events, under the other input and under one."""
        present = [(each.epsilon, each.times) for each in self.answers if each.times]
        if not present:
            return np.array([0.0, 1.0]), np.array([0.0, 1.0])
        smallest = min(epsilon for epsilon, _ in present)
        if self.epsilon > _LARGEST_GRID * smallest:
            raise InputError(
                f"Expected answers of at most {_LARGEST_GRID} times the smallest epsilon, got "
                f"{self.epsilon:g} in all and epsilon={smallest:g}; audit fewer days, or parts "
                "alone."
            )
        return compose(responses(present, most=_LARGEST_GRID)).corners


def smallest(test: Callable[[int], bool], *, first: int, most: int) -> int | None:
    """Return the smallest number up to ``most`` that passes a monotone test, or None."""
    below, at = first - 1, first
    while not test(at):
        if at >= most:
            return None
        below, at = at, min(max(1, 2 * at), most)
    while at - below > 1:
        middle = (at + below) // 2
        if test(middle):
            at = middle
        else:
            below = middle
    return at


def fewest_answers(epsilon: float, *, false_alarm: float, power: float, most: int) -> int:
    """Return how few answers of some epsilon allow an event; ``most`` if it is not fewer.

    Its probability is at most ``false_alarm`` under one input, at least ``power`` under another.
    """

    def is_allowed(times: int) -> bool:
        allowed = TradeOff((Answers(epsilon=epsilon, times=times),)).power([false_alarm])
        return not power > allowed[0]

    enough = smallest(is_allowed, first=0, most=most)
    return most if enough is None else enough
