"""One round or a few in which clients trust whoever counts their words: what such plans share.

The aggregator (a server behind the clients' trust, a trusted execution environment) reads plain
words, and publishes words with noisy counts, or words alone. Its privacy is central: of a user, for
neighbors that replace all data of one client. Which of its words a client contributes may be drawn
at random: divergences are jointly convex, so that these draws can be given, the same for all other
clients, and S and S' are what the client contributes before and after the replacement.

**Noise and a threshold.** Noise is added to the number (or weight) of every word that somebody
contributes; a word is published, with its noisy number, if that reaches a threshold. Let U be the
words that only S has, and nobody else; U' likewise those of S'. All other words are held on both
sides. Let G and G' be the distributions of what is published of them, before and after, and suppose
that G is (epsilon, d)-private against G'. If a word of U is published before the replacement with
chance at most r, and one of U' after it likewise, then the whole has

    delta(epsilon) <= r + (1 - r) d.                                                        (1)

*Proof.* Noise is independent from word to word. Before the replacement, nothing of U is published
with some chance 1 - a, a <= r, and then the outputs have distribution G, since no word of U' is
there. Such outputs have (1 - r) G and (a <= r) more, so P(O) <= r + (1 - r) G(O) for every set O of
outputs, of which G counts those without U and U'. After it, P'(O) >= (1 - r) G'(O). With G(O) <=
e**epsilon G'(O) + d, P(O) <= r + (1 - r) d + e**epsilon P'(O). []

In words: U and U' cost r at once, not twice and not e**epsilon times, and what they have of the
sensitivity is not even taken off. **Several rounds**, each with its own noise, threshold and r_i,
that may ask about what earlier ones published: the proof says that a round is a function of a pair
that shows the replacement with chance r_i on either side, and else is (G, G'). For Gaussian noise G
and G' are dominated by one normal variable moved by mu_i, the sensitivity over the standard
deviation. Pairs compose adaptively by their products (Zhu, Dong, Wang 2022, Theorem 10), and normal
variables moved by mu_1, mu_2, ... are one moved by mu = sqrt(mu_1**2 + mu_2**2 + ...) (Dong, Roth,
Su 2022, Corollary 3.3; numbering not verified). So all rounds have

    delta(epsilon) <= r + (1 - r) d(mu, epsilon),   r = 1 - (1 - r_1)(1 - r_2) ...          (2)

Noise is continuous, drawn in double precision. That suits a simulator; a deployment needs discrete
noise (Mironov 2012, "On significance of the least significant bits").
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from fedhh.accounting.collusion import UNCHANGED
from fedhh.accounting.guarantees import (
    ITEM_OF_USER,
    NEIGHBORS,
    AnonymityGuarantee,
    Guarantee,
    NotApplicable,
    Unit,
    unprotected,
)
from fedhh.accounting.plan import Plan
from fedhh.accounting.rounds import Rounds
from fedhh.accounting.terms import PrivacyTerms
from fedhh.privacy_loss.search import smallest_true
from fedhh.validation import require_inside

_ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True)
class TrustedAggregatorPlan(Plan, ABC):
    """Clients send plain words to an aggregator that they trust; what it publishes is private.

    Attributes:
        epsilon: Central privacy of a user, for neighbors that replace all data of one client.
        delta: Its delta.
    """

    method: ClassVar[str]
    """Short name of the bound."""
    theorem: ClassVar[str]
    """What it rests on, as reports print it."""

    trusted: ClassVar[str] = "the aggregator, which reads their words"
    without_event: ClassVar[str] = (
        "words from a threshold on, which may be nobody else's; it has none."
    )

    epsilon: float
    delta: float

    def guarantees(self, unit: Unit, terms: PrivacyTerms, rounds: Rounds = ()) -> list[Guarantee]:
        """Return what a run guarantees before it, at the plan's own delta, whoever colludes."""
        found = self.epsilon if unit == "user" else self.item_epsilon
        assumptions = f"a client contributes at most {self.max_items:,} distinct words to a round"
        if unit == "item" and self.item_epsilon == self.epsilon:
            assumptions += ITEM_OF_USER
        epsilon: float | NotApplicable = found
        if found == math.inf:
            epsilon = NotApplicable(
                f"no epsilon is proven at delta={self.delta:g} for this sample and threshold; "
                'raise delta or the threshold, or let both be "auto"'
            )
        return [
            Guarantee(
                unit=unit,
                trust="central",
                method=self.method,
                epsilon=epsilon,
                delta=self.delta,
                theorem=self.theorem,
                assumptions=assumptions,
                smallest_cohort=self.smallest_cohort,
                best=True,
            )
        ]

    def notes(
        self, terms: PrivacyTerms, rounds: Rounds, central: Sequence[Guarantee]
    ) -> Sequence[str]:
        notes = [
            NEIGHBORS,
            "Words are sent in clear: clients trust the aggregator, and every word of every client "
            "is known to whoever breaks into it.",
            "Published are words with their noisy numbers, or numbers in a random sample; what "
            "else a run's files hold is for evaluation.",
        ]
        if len(self.layers) > 1:
            notes.append(f"The guarantee is for all {len(self.layers)} rounds together.")
        return notes if terms.collusion is None else [*notes, UNCHANGED]

    @property
    def why_nothing(self) -> str:
        return (
            f"A word is published in half of all cases from {self.contributors_for(0.5):,} "
            "contributors on: ask more clients, or raise central_epsilon or delta."
        )

    def local_guarantee(self, unit: Unit) -> Guarantee:
        return unprotected(unit, self.smallest_cohort, assumptions="words are read as they are")

    def anonymity(self, terms: PrivacyTerms, rounds: Rounds) -> Sequence[AnonymityGuarantee]:
        """Return the largest k whose contributors are published with chance at most 1 - alpha."""
        k = self.contributors_for((1 - terms.alpha) * (1 + _ROUNDING)) - 1
        return [
            AnonymityGuarantee(
                k=k,
                alpha=terms.alpha,
                variant="tight",
                probability=self.release_chance(k),
                theorem="the aggregator's noise or sample alone (fedhh.accounting)",
                assumptions="by design, for every word published, whatever other words are held",
                smallest_cohort=self.smallest_cohort,
            )
        ]

    @property
    def item_epsilon(self) -> float:
        """Central privacy of one contribution at ``delta``: never more than that of a user."""
        return self.epsilon

    @abstractmethod
    def release_chance(self, contributors: int) -> float:
        """Return an upper bound on the chance that a word is published.

        Args:
            contributors: Clients of the cohort that may contribute it, at least 0.
        """

    def contributors_for(self, chance: float) -> int:
        """Return the fewest contributors whose bound on being published is at least a chance.

        Args:
            chance: Above 0 and below 1.
        """
        require_inside(0, 1, chance=chance)
        return smallest_true(lambda n: self.release_chance(n) >= chance, low=1)
