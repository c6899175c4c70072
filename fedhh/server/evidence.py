"""What fresh clients say about words that were chosen before they were asked, and which to believe.

A p-value bounds the probability that a word which at most k clients hold gets at least so many
votes, by the exact distribution of the oracle's reports. The votes must come from clients who were
asked after the word was chosen as a candidate: then nothing about the choice can have favored their
noise. docs/accounting.md, section 5, has the proof.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy

from fedhh.arrays import Bools, Floats, Ints
from fedhh.found import Found
from fedhh.oracles.base import PureVotes
from fedhh.privacy_loss.binomial import binomial_excess, upper_tail
from fedhh.questions.noise import Noise

MISSES = 0.05
"""Share of the intervals of returned words that may miss, in expectation."""

_SLACK = 1.05
"""What the limits of several rounds are above the largest chances of the domains looked at."""
_SUMS = ("votes", "num_reports", "expected", "score", "planned")
"""Fields of `Evidence` that have a number for each word."""

_THRESHOLDS, _FARTHEST = 400, 12.0
"""Thresholds u of a tail, and how many deviations above the mean they reach."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a plan fixes of all rounds that may ask about a word, before there is any vote.

    Votes of several rounds are compared with what these allow, since how many rounds there are, and
    their chances p and q, may follow from earlier votes for the same word.

    Attributes:
        support: At least what p of a round that counts becomes where q becomes ``chance``.
        chance: At least q of it.
    """

    support: float
    chance: float

    @classmethod
    def of(cls, oracles: Iterable[PureVotes]) -> Self:
        """Return limits that are above the chances of some oracles."""
        chances = [(oracle.p, oracle.q) for oracle in oracles]
        chance = min(0.99, max(_SLACK * max(q for _, q in chances), 1e-12))
        # What of 1 - p is left as in `scores`.
        support = max(1 - (1 - p) * (1 - chance) / (1 - q) for p, q in chances)
        return cls(support=min(1.0, _SLACK * support), chance=chance)

    def scores(self, oracle: PureVotes, votes: Ints, num_reports: int, planned: int) -> Floats:
        """Return ``(k,) float64``: the votes of a round, and what is expected of what it lacks.

        Each report that does not support the word would do so with the chance that makes q the
        limit, and reports that are planned but missing with the limit. A round whose chances or
        reports exceed the limits counts as one without reports.

        Args:
            oracle: Of the round.
            votes: ``(k,) int64``.
            num_reports: Of the round.
            planned: Its most reports, by the plan.
        """
        more = (self.chance - oracle.q) / (1 - oracle.q)
        exceeds = oracle.p + (1 - oracle.p) * more > self.support
        if more < 0 or exceeds or num_reports > planned:
            return np.full(len(votes), planned * self.chance)
        missing = (planned - num_reports) * self.chance
        return np.asarray(votes + (num_reports - votes) * more + missing, dtype=np.float64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """Votes about candidate words, ``(c,) float64``: sums over the rounds that asked about each.

    Attributes:
        votes: Reports that support the word.
        num_reports: Reports of those rounds, n; clients, where each has one vote for a value.
        expected: Sum of n q: the votes of a word that no client holds.
        score: Sum of `Limits.scores`; 0 without limits.
        planned: Most reports of those rounds, by the plan.
        limits: Of all rounds that may ask about a word; None where only the validation round does.
    """

    votes: Floats
    num_reports: Floats
    expected: Floats
    score: Floats
    planned: Floats
    limits: Limits | None = None

    @classmethod
    def nothing(cls, num_words: int, limits: Limits | None = None) -> Evidence:
        """Return no vote for so many words."""
        return cls(**dict.fromkeys(_SUMS, np.zeros(num_words)), limits=limits)

    def with_votes(self, noise: Noise, votes: Ints, planned: int) -> Evidence:
        """Return the evidence after a round that asked about the first words.

        Args:
            noise: What chance does in the round.
            votes: ``(k,) int64``, for the first k words.
            planned: Most reports of the round, by the plan.
        """
        oracle, reports, limits = noise.oracle, noise.num_reports, self.limits
        fresh: dict[str, float | Floats | Ints] = {
            "votes": votes,
            "num_reports": reports,
            "expected": reports * oracle.q,
            "score": 0.0 if limits is None else limits.scores(oracle, votes, reports, planned),
            "planned": planned,
        }
        sums = {name: getattr(self, name).copy() for name in _SUMS}
        for name, values in fresh.items():
            sums[name][: len(votes)] += values
        return Evidence(**sums, limits=limits)

    def without_round(self, planned: int) -> Evidence:
        """Return the evidence after a round of so many planned reports that does not take place."""
        chance = 0.0 if self.limits is None else self.limits.chance
        score = self.score + planned * chance
        return replace(self, score=score, planned=self.planned + planned)

    def and_nothing(self, num_words: int) -> Evidence:
        """Return the evidence with none for so many more words."""
        more = np.zeros(num_words)
        sums: dict[str, Any] = {name: np.append(getattr(self, name), more) for name in _SUMS}
        return replace(self, **sums)

    def accepted(
        self,
        found: Found,
        rate: float,
        *,
        support: float,
        anonymity_k: int = 0,
    ) -> tuple[Found, Bools]:
        """Return the words to believe, with how sure that is, and which.

        Args:
            found: The words, whose choice did not depend on the evidence, with the validation
                round's estimates.
            rate: Of false discoveries among those returned, at most, in expectation.
            support: p of the validation round: with what probability a report for a word supports
                it. Without limits no other round asked; limits know the p of all rounds.
            anonymity_k: k: a discovery is false if at most k clients hold the word.
        """
        if self.limits is None:
            tested = p_values_of_rare(
                self.votes,
                self.num_reports,
                self.expected,
                support=np.full(len(self.votes), support),
                holders=anonymity_k,
            )
        else:
            tested = p_values_of_rounds(
                self.score, self.planned, limits=self.limits, holders=anonymity_k
            )
        chosen = benjamini_hochberg(tested, rate)
        # What is shown as z takes the rounds of the run for fixed; no word returns by it.
        p = p_values(self.votes, self.num_reports, self.expected)
        num_chosen = int(chosen.sum())
        reach = interval_quantile(num_chosen, len(p), MISSES) if num_chosen else 0.0
        spread = np.sqrt(np.maximum(self.expected, 1e-300))
        beyond = (self.votes - self.expected) / spread
        # Beyond 37 deviations the tail underflows; the normal value is as good as any there.
        z = np.where(p > 0, -scipy.special.ndtri(np.maximum(p, 1e-300)), beyond)
        words = replace(
            found.only(np.flatnonzero(chosen)),
            z=z[chosen],
            interval_z=np.full(num_chosen, reach),
        )
        return words, chosen


def p_values(votes: Floats, num_reports: Floats, expected: Floats) -> Floats:
    """Return an upper bound on P(at least so many votes) for words that no client holds.

    Votes of one round are Binomial(n, q), and the bound is its tail. Votes added up over rounds
    with different n and q are a sum of independent Bernoullis with expectation e. Above e + 1 its
    tail is at most that of the binomial distribution with as many trials and the same expectation
    (Hoeffding 1956, Theorem 4); below, 1 is returned.

    Args:
        votes: ``(c,) float64``, whole numbers.
        num_reports: ``(c,) float64``: reports of the rounds that asked about each.
        expected: ``(c,) float64``: the sum of n q over these rounds.
    """
    rate = np.where(num_reports > 0, expected / np.maximum(num_reports, 1), 0.0)
    return np.where(votes >= expected + 1, upper_tail(votes, num_reports, rate), 1.0)


def p_values_of_rare(
    votes: Floats, num_reports: Floats, expected: Floats, *, support: Floats, holders: int
) -> Floats:
    """Return an upper bound on P(at least so many votes) for words that at most k clients hold.

    Each holder has at most one report (or, where clients are counted, one vote) for the word in all
    rounds together, which supports it with probability at most ``support``: J ~ Bin(k, support)
    votes, whichever cohorts the holders are in. All other votes are at most those of a word that no
    client holds, and independent of these, so that P(J + others >= votes) = sum over j of P(J = j)
    times the bound of `p_values` at votes - j. With k = 0 that is `p_values` itself.

    Args:
        votes: ``(c,) float64``, whole numbers.
        num_reports: ``(c,) float64``: reports of the rounds that asked about each.
        expected: ``(c,) float64``: the sum of n q over these rounds.
        support: ``(c,) float64``: the largest p of these rounds.
        holders: k, at least 0.
    """
    p = np.ones(len(votes))
    (above,) = np.nonzero(votes >= expected + 1)
    if not len(above):
        return p
    # Most candidates have few votes, so that rows repeat.
    rows, which = np.unique(
        np.stack([votes, num_reports, expected, support], axis=1)[above],
        axis=0,
        return_inverse=True,
    )
    votes, num_reports, expected, support = rows.T
    bound = np.zeros(len(rows))
    for held in range(holders + 1):
        bound += _chance(held, holders, support) * p_values(votes - held, num_reports, expected)
    p[above] = np.minimum(bound, 1.0)[which.reshape(-1)]
    return p


def p_values_of_rounds(scores: Floats, planned: Floats, *, limits: Limits, holders: int) -> Floats:
    """Return an upper bound on P(at least this score) for words that at most k clients hold.

    Whatever earlier votes decide about later rounds, expectations of increasing convex functions of
    the score are at most those of Y = Bin(k, support) + Bin(planned, chance), so that
    P(score >= s) <= E(Y - u)_+ / (s - u) for every u < s: docs/accounting.md, section 5.

    Args:
        scores: ``(c,) float64``, sums of `Limits.scores`.
        planned: ``(c,) float64``: most reports of the rounds that may ask about each.
        limits: Of all these rounds.
        holders: k, at least 0.
    """
    found = np.ones(len(scores))
    held = np.arange(holders + 1.0)
    chances = _chance(held, holders, limits.support)
    for trials in np.unique(planned[planned > 0]):
        mean = trials * limits.chance
        deviation = np.sqrt(mean * (1 - limits.chance) + holders)
        highest = mean + holders + _FARTHEST * deviation
        thresholds = np.unique(np.floor(np.linspace(mean, highest, _THRESHOLDS)))
        left = (thresholds[:, None] - held).ravel()
        excess = binomial_excess(np.full(left.size, trials), left, limits.chance)
        excess = excess.reshape(-1, holders + 1) @ chances
        (which,) = np.nonzero(planned == trials)
        # Many words have the same score, that of no vote.
        values, place = np.unique(scores[which], return_inverse=True)
        above = values[:, None] - thresholds
        bound = np.where(above > 0, excess / np.maximum(above, 1e-300), 1.0).min(axis=1)
        found[which] = np.minimum(bound, 1.0)[place.reshape(-1)]
    return found


def _chance(held: float | Floats, holders: int, support: float | Floats) -> Floats:
    """Return P(Bin(holders, support) = held)."""
    from scipy.special import gammaln, xlog1py, xlogy

    rest = holders - held
    choices = gammaln(holders + 1) - gammaln(held + 1) - gammaln(rest + 1)
    return np.asarray(np.exp(choices + xlogy(held, support) + xlog1py(rest, -support)))


def benjamini_hochberg(p: Floats, rate: float) -> Bools:
    """Return which hypotheses to reject so that the false discovery rate is at most ``rate``.

    Benjamini and Hochberg (1995), Theorem 1: with R the largest r for which r of the m p-values are
    at most ``rate * r / m``, reject those R.

    The theorem is about independent p-values. Votes of Subset Selection are not quite: a report
    has exactly d members, so a vote for one word is one less to share for the others, by d / s on
    average. One candidate's excess of z standard deviations lowers every other one by z / (s - 1)
    of one, so the number of rejections that the proof conditions on hardly moves. In every case
    that `tests/server/test_false_discoveries.py` enumerates where somebody holds a candidate, what
    remains is below the slack of the theorem, which gives ``rate`` times the share of candidates
    that no client holds. Where no client holds any, there is no slack, and on domains of 3 to 5
    values the exact rate can be above ``rate``, by less than rate**2 / (2 (s - 1)): by 0.033 of
    0.451 at worst, and by 0.0002 of 0.05.

    Args:
        p: ``(m,) float64``; each at least uniform where the hypothesis holds.
        rate: In (0, 1).

    Returns:
        ``(m,) bool``.
    """
    if not len(p):
        return np.zeros(0, dtype=np.bool_)
    ordered = np.sort(p)
    (enough,) = np.nonzero(ordered <= rate * np.arange(1, len(p) + 1) / len(p))
    if not len(enough):
        return np.zeros(len(p), dtype=np.bool_)
    return np.asarray(p <= ordered[enough[-1]])


def interval_quantile(num_chosen: int, num_tested: int, level: float) -> float:
    """Return how many standard errors an interval reaches to each side, after a choice.

    Words that were chosen by the votes that also estimate them are overestimated. Of intervals with
    1 - level * R / m coverage each, for R of m chosen by Benjamini and Hochberg's rule, the
    expected share that miss is at most ``level`` (Benjamini and Yekutieli 2005, Theorem 1: the
    false coverage-statement rate).

    Args:
        num_chosen: R, at least 1.
        num_tested: m, at least R.
        level: Share of intervals that may miss, in (0, 1).

    >>> round(interval_quantile(10, 10, 0.05), 2)
    1.96
    """
    return float(-scipy.special.ndtri(level * num_chosen / num_tested / 2))
