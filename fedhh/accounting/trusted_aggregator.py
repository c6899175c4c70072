"""One round or a few in which clients trust whoever counts their words: what such plans share.

The aggregator (a server behind the clients' trust, a trusted execution environment) reads plain
words, and publishes words with noisy counts, or words alone. Its privacy is central: of a user, for
neighbors that replace all data of one client. Which of its words a client contributes may be drawn
at random: divergences are jointly convex, so that these draws can be given, the same for all other
clients, and S and S' are what the client contributes before and after the swap.

**Noise and a threshold.** Noise is added to the number (or weight) of every word that somebody
contributes; a word is published, with its noisy number, if that reaches a threshold. Let U be the
words that only S has, and nobody else; U' likewise those of S'. All other words are held on both
sides. Let G and G' be the distributions of what is published of them, before and after, and suppose
that G is (epsilon, d)-private against G'. If a word of U is published before the swap with chance
at most r, and one of U' after it likewise, then the whole has

    delta(epsilon) <= r + (1 - r) d.                                                        (1)

*Proof.* Noise is independent from word to word. Before the swap, nothing of U is published with
some chance 1 - a, a <= r, and then the outputs have distribution G, since no word of U' is there.
Such outputs have (1 - r) G and (a <= r) more, so P(O) <= r + (1 - r) G(O) for every set O of
outputs, of which G counts those without U and U'. After it, P'(O) >= (1 - r) G'(O). With
G(O) <= e**epsilon G'(O) + d, P(O) <= r + (1 - r) d + e**epsilon P'(O). []

In words: U and U' cost r at once, not twice and not e**epsilon times, and what they have of the
sensitivity is not even taken off. **Several rounds**, each with its own noise, threshold and r_i,
that may ask about what earlier ones published: the proof says that a round is a function of a pair
that shows the swap with chance r_i on either side, and else is (G, G'). For Gaussian noise G and G'
are dominated by one normal variable moved by mu_i, the sensitivity over the standard deviation.
Pairs compose adaptively by their products (Zhu, Dong, Wang 2022, Theorem 10), and normal variables
moved by mu_1, mu_2, ... are one moved by mu = sqrt(mu_1**2 + mu_2**2 + ...) (Dong, Roth, Su 2022,
Corollary 3.3; numbering not verified). So all rounds have

    delta(epsilon) <= r + (1 - r) d(mu, epsilon),   r = 1 - (1 - r_1)(1 - r_2) ...          (2)

Noise is continuous, drawn in double precision. That suits a simulator; a deployment needs discrete
noise (Mironov 2012, "On significance of the least significant bits").
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from fedhh.accounting.plan import Plan
from fedhh.privacy_loss.search import smallest_true
from fedhh.validation import require_inside


@dataclass(frozen=True, kw_only=True)
class TrustedAggregatorPlan(Plan, ABC):
    """Clients send plain words to an aggregator that they trust; what it publishes is private.

    Attributes:
        epsilon: Central privacy of a user, for neighbors that swap all data of one client.
        delta: Its delta.
    """

    method: ClassVar[str]
    """Short name of the bound."""
    theorem: ClassVar[str]
    """What it rests on, as reports print it."""

    epsilon: float
    delta: float

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
        high = 1
        while self.release_chance(high) < chance:
            high *= 2
        found = smallest_true(lambda n: self.release_chance(n) >= chance, low=high // 2, high=high)
        return high if found is None else found
