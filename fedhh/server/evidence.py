"""What fresh clients say about words that were chosen before they were asked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from fedhh.found import Found
from fedhh.oracles import PureOracle
from fedhh.queries.base import Aggregate
from fedhh.server.false_discoveries import (
    benjamini_hochberg,
    interval_quantile,
    p_values,
    p_values_of_rare,
)

MISSES = 0.05
"""Share of the intervals of returned words that may miss, in expectation."""

_Counts = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """Votes about candidate words, ``(c,) float64``: sums over the rounds that asked about each.

    Attributes:
        votes: Reports that support the word.
        num_reports: Reports of those rounds, n.
        expected: Sum of n q: the votes of a word that nobody holds.
        support: The largest p of those rounds, not a sum: the probability that a report for the
            word supports it.
        estimate: Unbiased estimate of the contributions for the word among those reports.
        variance: Variance of the estimate for a word that nobody holds.
        excess: What a contribution for the word adds to it, times the clients asked.
        num_clients: Clients asked.
    """

    votes: _Floats
    num_reports: _Floats
    expected: _Floats
    support: _Floats
    estimate: _Floats
    variance: _Floats
    excess: _Floats
    num_clients: _Floats

    @classmethod
    def nothing(cls, num_words: int) -> Evidence:
        """Return no vote for so many words."""
        return cls(**{name: np.zeros(num_words) for name in cls.__dataclass_fields__})

    def heard(self, oracle: PureOracle, votes: _Counts, aggregate: Aggregate) -> Evidence:
        """Return the evidence after a round that asked about the first words.

        Args:
            oracle: The round's.
            votes: ``(k,) int64``, for the first k words.
            aggregate: The round's answers.
        """
        reports, clients = aggregate.num_reports, aggregate.num_clients
        alone, one = np.asarray(oracle.variance(np.array([0.0, 1.0]), max(reports, 1)))
        fresh: dict[str, float | _Floats | _Counts] = {
            "votes": votes,
            "num_reports": reports,
            "expected": reports * oracle.q,
            "estimate": oracle.estimate(votes, reports),
            "variance": alone,
            "excess": (one - alone) * clients,
            "num_clients": clients,
        }
        sums = {name: getattr(self, name).copy() for name in fresh}
        for name, values in fresh.items():
            sums[name][: len(votes)] += values
        support = self.support.copy()
        support[: len(votes)] = np.maximum(support[: len(votes)], oracle.p)
        return Evidence(**sums, support=support)

    def and_nothing(self, num_words: int) -> Evidence:
        """Return the evidence with none for so many more words."""
        other = Evidence.nothing(num_words)
        return Evidence(
            **{
                name: np.concatenate([getattr(self, name), getattr(other, name)])
                for name in self.__dataclass_fields__
            }
        )

    def accepted(
        self, found: Found, rate: float, *, recount: Evidence, anonymity_k: int = 0
    ) -> tuple[Found, npt.NDArray[np.bool_]]:
        """Return the words to believe, with what a validation round says of them, and which.

        Estimates are the validation round's alone: there a client's B contributions are about
        words only, so that fewer are left unsaid than where prefixes compete with them.

        Args:
            found: The words, whose choice did not depend on the evidence.
            rate: Of false discoveries among those returned, at most, in expectation.
            recount: The part of the evidence that the validation round gave.
            anonymity_k: k: a discovery is false if at most k clients hold the word.
        """
        chosen = benjamini_hochberg(
            p_values_of_rare(
                self.votes,
                self.num_reports,
                self.expected,
                support=self.support,
                holders=anonymity_k,
            ),
            rate,
        )
        p = p_values(self.votes, self.num_reports, self.expected)
        clients = np.maximum(recount.num_clients, 1)
        held = np.clip(recount.estimate, 0, clients)
        variance = recount.variance + held / clients * recount.excess
        num_chosen = int(chosen.sum())
        reach = interval_quantile(num_chosen, len(p), MISSES) if num_chosen else 0.0
        spread = np.sqrt(np.maximum(self.expected, 1e-300))
        beyond = (self.votes - self.expected) / spread
        # Beyond 37 deviations the tail underflows; the normal value is as good as any there.
        z = np.where(p > 0, -ndtri(np.maximum(p, 1e-300)), beyond)
        words = Found(
            codes=found.codes[chosen],
            pass_index=found.pass_index[chosen],
            layer=found.layer[chosen],
            estimate=recount.estimate[chosen],
            variance=variance[chosen],
            z=z[chosen],
            num_clients=recount.num_clients[chosen].astype(np.int64),
            interval_z=np.full(num_chosen, reach),
        )
        return words, chosen
