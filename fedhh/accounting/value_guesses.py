"""Bounds from guesses: how often a list of values, named by a report, has the value that was held.

Each report is about a value that is drawn uniformly from m. Whoever reads the report names a list
of s of them, or abstains. Under epsilon-local differential privacy the odds that the list has the
value are at most e**epsilon s / (m - s), given the report: each likelihood inside the list is at
most e**epsilon times each one outside. Reports are independent, so the number of right lists is
stochastically at most a sum of independent coins of these odds; a bound of Clopper and Pearson
(1934) on their mean is a lower bound on epsilon.

Lists of different sizes make coins of different chances. Their sum has a lighter upper tail than
as many coins of the mean chance, from one above its mean on: Hoeffding (1956), "On the distribution
of the number of successes in independent trials", Annals of Mathematical Statistics 27, Theorem 4
(numbering not verified). That condition is checked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy import special

from fedhh.accounting.empirical_epsilon import clopper_pearson

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]

Rule = Literal["upper half", "best", "all but the worst", "first", "second"]
"""Which values a list has, by their scores: those above the middle of the least and the largest
score; the best value; all but the worst value; the first or the second value if it is the better
one of two."""
RULES: tuple[Rule, ...] = get_args(Rule)[:3]
RULES_OF_PAIRS: tuple[Rule, ...] = ("best", "first", "second")

_HALVINGS = 60
_SHARES = (1.0, 0.7, 0.4, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005)


@dataclass(frozen=True, kw_only=True, eq=False)
class Guesses:
    """How many lists had the value, by their size.

    Attributes:
        made: ``(m - 1,) int64``: lists of 1 .. m - 1 values.
        right: How many of all lists had the value.
    """

    made: Numbers
    right: int

    @classmethod
    def of(cls, sizes: Numbers, right: npt.NDArray[np.bool_], num_values: int) -> Guesses:
        """Return the count of some lists.

        Args:
            sizes: ``(n,)`` values on each list, 1 .. m - 1.
            right: ``(n,)``: whether the held value is on it.
            num_values: m.
        """
        made = np.bincount(sizes - 1, minlength=num_values - 1)
        return cls(made=made, right=int(np.count_nonzero(right)))

    def __add__(self, other: Guesses) -> Guesses:
        return Guesses(made=self.made + other.made, right=self.right + other.right)

    @property
    def num_made(self) -> int:
        """Lists in all."""
        return int(self.made.sum())

    def lower_bound(self, *, error: float) -> float:
        """Return a lower bound on epsilon, at least 0, above epsilon with at most ``error``."""
        if not self.right:
            return 0.0
        mean = clopper_pearson(self.right, self.num_made, error=error)[0]
        of_one_size = np.count_nonzero(self.made) == 1
        if not of_one_size and self.num_made * mean > self.right - 1:
            return 0.0
        return max(0.0, self._epsilon_at(mean))

    @property
    def estimate(self) -> float:
        """The epsilon at which as many lists are right in the mean, at least 0."""
        if not self.right:
            return 0.0
        return max(0.0, self._epsilon_at(self.right / self.num_made))

    def largest_bound(self, *, error: float) -> float:
        """Return what `lower_bound` would be if all lists had been right."""
        if not self.num_made:
            return 0.0
        return Guesses(made=self.made, right=self.num_made).lower_bound(error=error)

    def _epsilon_at(self, mean: float) -> float:
        """Return the epsilon at which lists are right with this chance in the mean."""
        if mean >= 1:
            return math.inf
        sizes = np.flatnonzero(self.made) + 1
        log_odds = np.log(sizes / (len(self.made) + 1 - sizes))
        wanted = float(special.logit(mean))
        if sizes.size == 1:
            return wanted - float(log_odds[0])
        weights = self.made[sizes - 1] / self.num_made
        low, high = wanted - float(log_odds.max()), wanted - float(log_odds.min())
        # The mean grows with epsilon; halved so often, the interval is as short as a float allows.
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if float(weights @ special.expit(middle + log_odds)) < mean:
                low = middle
            else:
                high = middle
        return low


@dataclass(frozen=True, kw_only=True)
class Lists:
    """Which lists are made of scores, and when none is.

    Attributes:
        rule: Which values a list has.
        least_gain: The least log-ratio of the mean likelihoods, by the scores, on and off a list;
            below it there is no guess.
    """

    rule: Rule
    least_gain: float = 0.0

    def guesses(self, scores: Floats, held: Numbers) -> Guesses:
        """Return the count of lists that are made.

        Args:
            scores: ``(n, m)``: a report's log-likelihood under each value, up to a constant.
            held: ``(n,)`` numbers of the values that were held.
        """
        sizes, right, gains = listed(scores, held, self.rule)
        made = gains >= self.least_gain
        return Guesses.of(sizes[made], right[made], scores.shape[1])


def candidates(scores: Floats, held: Numbers, rule: Rule) -> list[tuple[Lists, Guesses]]:
    """Return lists by one rule, each with another least gain, and their guesses on these reports.

    Args:
        scores: As in `Lists.guesses`.
        held: Likewise.
        rule: Which values a list has.
    """
    sizes, right, gains = listed(scores, held, rule)
    possible = gains[gains > -math.inf]
    if not possible.size:
        return []
    ordered = np.sort(possible)[::-1]
    places = [max(0, math.ceil(share * ordered.size) - 1) for share in _SHARES]
    found = []
    for least in np.unique(ordered[places]).tolist():
        made = gains >= least
        guesses = Guesses.of(sizes[made], right[made], scores.shape[1])
        found.append((Lists(rule=rule, least_gain=least), guesses))
    return found


def listed(
    scores: Floats, held: Numbers, rule: Rule
) -> tuple[Numbers, npt.NDArray[np.bool_], Floats]:
    """Return each list's size, whether it has the held value, and its gain; -inf if none is made.

    Args:
        scores: ``(n, m)``.
        held: ``(n,)``.
        rule: Which values a list has.
    """
    on_list = _on_list(scores, rule)
    sizes = on_list.sum(axis=1)
    is_list = (sizes > 0) & (sizes < scores.shape[1])
    on_list, some = on_list[is_list], scores[is_list]
    gains = np.full(len(scores), -math.inf)
    if len(some):
        relative = np.exp(np.maximum(some - some.max(axis=1, keepdims=True), -700.0))
        size = sizes[is_list]
        inside = (relative * on_list).sum(axis=1) / size
        outside = (relative * ~on_list).sum(axis=1) / (scores.shape[1] - size)
        gains[is_list] = np.round(np.log(inside / outside), 9)
    right = np.zeros(len(scores), dtype=np.bool_)
    right[is_list] = on_list[np.arange(len(some)), held[is_list]]
    return np.where(is_list, sizes, 1).astype(np.int64), right, gains


def _on_list(scores: Floats, rule: Rule) -> npt.NDArray[np.bool_]:
    """Return ``(n, m)``: whether each value is on the list; all or none where scores are equal."""
    low, high = scores.min(axis=1), scores.max(axis=1)
    differ = (high > low)[:, None]
    if rule == "upper half":
        return np.asarray((scores > ((low + high) / 2)[:, None]) & differ)
    places = np.arange(scores.shape[1])
    if rule == "all but the worst":
        return np.asarray((places != scores.argmin(axis=1)[:, None]) & differ)
    best = (places == scores.argmax(axis=1)[:, None]) & differ
    if rule == "best":
        return np.asarray(best)
    wanted = ("first", "second").index(rule)
    return np.asarray(best & (scores.argmax(axis=1) == wanted)[:, None])
