"""How often a guess about a client is right, and how often a local epsilon allows it to be.

**One report.** With m hypotheses, all equally likely, and reports of local epsilon e, each report's
likelihood under one hypothesis is at most e**e times that under any other. The likeliest
hypothesis has a posterior of at most E / (E + m - 1), E = e**e, whatever the report, and so a guess
is right with at most that chance. Two hypotheses: E / (E + 1), a total variation distance of at
most (E - 1) / (E + 1) = tanh(e / 2).

**t reports**, each about the same hypothesis, with fresh coins, by queries that may depend on the
earlier ones: epsilons add up, so the chance is at most that of t e. For two hypotheses there is a
better bound: each report is a function of a randomized response of epsilon e to which of the two
holds (Kairouz, Oh, Viswanath 2015, Theorem 3.3), so a guess is right no more often than the
majority of t such responses.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import special

from fedhh.accounting.empirical_epsilon import clopper_pearson
from fedhh.accounting.guarantees import SWAP
from fedhh.privacy_loss.binomial import pmf
from fedhh.validation import require_at_least, require_epsilon

_ROUNDING = 1e-9


def allowed_success(*, local_epsilon: float, hypotheses: int, reports: int = 1) -> float:
    """Return the largest chance of a right guess among equally likely hypotheses.

    Args:
        local_epsilon: Privacy of one report.
        hypotheses: m, at least 2.
        reports: t, each about the same hypothesis.

    >>> round(allowed_success(local_epsilon=1.0, hypotheses=2), 4)
    0.7311
    >>> round(allowed_success(local_epsilon=1.0, hypotheses=2, reports=3), 4)
    0.8219
    """
    require_epsilon(local_epsilon=local_epsilon)
    require_at_least(2, hypotheses=hypotheses)
    require_at_least(1, reports=reports)
    composed = float(special.expit(reports * local_epsilon - math.log(hypotheses - 1)))
    if hypotheses > 2:
        return composed
    truth = float(special.expit(local_epsilon))
    if truth == 1:
        return 1.0
    votes = np.arange(reports + 1)
    chances = pmf(votes, reports, truth)
    chances[[0, -1]] = (1 - truth) ** reports, truth**reports
    majority = chances[2 * votes > reports].sum() + chances[2 * votes == reports].sum() / 2
    return float(min(majority * (1 + _ROUNDING), composed))


@dataclass(frozen=True, kw_only=True)
class GuessesMade:
    """How many guesses were right, of as many clients, by reports that they really made.

    Attributes:
        right: Right ones.
        clients: All.
    """

    right: int
    clients: int

    @property
    def share(self) -> float:
        return self.right / self.clients

    def at_least(self, error: float) -> float:
        """Return a lower bound on the chance of a right guess, wrong with chance ``error``."""
        return clopper_pearson(self.right, self.clients, error=error)[0]


@dataclass(frozen=True, kw_only=True)
class Success:
    """How often an attacker guesses right after some reports of a client.

    Attributes:
        attack: What the server does.
        reports: t.
        hypotheses: m, equally likely.
        stated: Local epsilon of one report, as stated.
        exact: By the stated distribution of reports; None if they differ in too many ways.
        made: Simulated, by the reports that the code really makes.
    """

    attack: str
    reports: int
    hypotheses: int
    stated: float
    exact: float | None
    made: GuessesMade

    @property
    def allowed(self) -> float:
        """The most that the stated epsilon allows."""
        return allowed_success(
            local_epsilon=self.stated, hypotheses=self.hypotheses, reports=self.reports
        )

    def epsilon_at_least(self, error: float) -> float:
        """Return a lower bound on the epsilon of all reports together, at least 0."""
        chance = self.made.at_least(error)
        if chance <= 0:
            return 0.0
        return max(0.0, float(special.logit(chance)) + math.log(self.hypotheses - 1))

    def is_refuted(self, error: float) -> bool:
        """Return whether guesses were right more often than is allowed; wrong with ``error``."""
        too_much = self.exact is not None and self.exact > self.allowed * (1 + _ROUNDING)
        return too_much or self.made.at_least(error) > self.allowed

    def to_dict(self, error: float) -> dict[str, Any]:
        return {
            "attack": self.attack,
            "reports": self.reports,
            "hypotheses": self.hypotheses,
            "by_chance": 1 / self.hypotheses,
            "success": self.exact,
            "simulated": self.made.share,
            "simulated_at_least": self.made.at_least(error),
            "clients": self.made.clients,
            "allowed": self.allowed,
            "stated_epsilon": self.stated * self.reports,
            "epsilon_at_least": self.epsilon_at_least(error),
            "verdict": "refuted" if self.is_refuted(error) else "consistent",
        }


@dataclass(frozen=True, kw_only=True)
class InferenceVerdict:
    """An attacker's success next to what is stated; unit: an item, neighbors: swaps.

    Attributes:
        audited: What was attacked.
        successes: By attack and number of reports.
        confidence: Of the verdict, all of them together.
        facts: Of the attack.
    """

    audited: str
    successes: Sequence[Success]
    confidence: float
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def error(self) -> float:
        """Of the bound of each success."""
        return (1 - self.confidence) / len(self.successes)

    @property
    def refuted(self) -> bool:
        return any(each.is_refuted(self.error) for each in self.successes)

    def to_dict(self) -> dict[str, Any]:
        return {
            "audited": self.audited,
            "unit": "item",
            "neighboring": SWAP,
            **self.facts,
            "confidence": self.confidence,
            "successes": [each.to_dict(self.error) for each in self.successes],
            "verdict": "refuted" if self.refuted else "consistent",
        }
