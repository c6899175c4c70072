"""Central privacy from sampling and a threshold, without noise: what TrieHH rests on.

The mechanism is that of Zhu, Kairouz, McMahan, Sun, Li (2020), "Federated heavy hitters discovery
with differential privacy", AISTATS, Algorithm 1. Its privacy is computed, not taken from that
paper, whose theorem needs samples of at least sqrt(n) clients and does not cover all replacements:
the divergence of a round is bounded over all numbers of holders (docs/accounting.md, section 8),
and rounds are composed by their privacy losses (Zhu, Dong, Wang 2022, "Optimal accounting of
differential privacy via characteristic function", Theorem 10, dominating pairs compose adaptively;
Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022, "Connect the Dots", Algorithm 1; numbering not
verified). The unit is a user with one vote, drawn from its words, per round. Neighbors replace all
data of one user.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np

from fedhh.accounting.guarantees import (
    ITEM_OF_USER,
    NEIGHBORS,
    Guarantee,
    NotApplicable,
    Unit,
    unprotected,
)
from fedhh.accounting.plan import Participation, Plan
from fedhh.accounting.rounds import Rounds
from fedhh.accounting.sampled_votes import SampledVotes
from fedhh.accounting.sources import SAMPLED_VOTES
from fedhh.accounting.terms import PrivacyTerms
from fedhh.arrays import Floats
from fedhh.privacy_loss.convex_hull import lower_hull
from fedhh.privacy_loss.distribution import PrivacyLossDistribution
from fedhh.privacy_loss.sums import epsilon_of_sum
from fedhh.validation import InputError, require_at_least, require_inside, require_positive

_TOLD = (
    "sampled clients know that they were: a word whose other votes colluders tell is kept by the "
    "vote of one client, and the guarantee rests on not knowing who was sampled"
)

_GROWTH = 1.25
"""Of one sample size to the next that is tried."""
_PARTS = 1000
"""A sample is the largest to one in so many."""
_INFINITE = 50.0
"""Losses of one round above this count as infinite."""
_FINE, _CELLS = 24, 1024
"""Gaps between 0 and the lowest epsilon; at most so many up to the largest finite loss."""
_ROUNDING = 1e-9
"""Relative, of what lies on a line between two bounds."""


@dataclass(frozen=True, kw_only=True)
class SampledThreshold(Plan):
    """Every round samples clients from all; what too few of them vote for is dropped.

    Attributes:
        sample_size: Clients m asked per round.
        threshold: Votes theta that keep a prefix.
    """

    sample_size: int
    threshold: int
    participation: Participation = "every-round"

    draws_samples: ClassVar[bool] = True
    trusted: ClassVar[str] = "the server, which reads their words"
    without_event: ClassVar[str] = "sampling with a threshold and without noise; it has none."

    def guarantees(self, unit: Unit, terms: PrivacyTerms, rounds: Rounds = ()) -> list[Guarantee]:
        """Return what TrieHH guarantees: central and of a user, nothing local.

        A sampled client that does not answer is as one that abstains. Given who would answer in
        each round, which must not depend on the data, a round is that of all clients on data in
        which the others hold nothing; its bound holds for all data, so for each such choice, and
        for their mix. A run that stops early has used no fewer rounds, since when it stops depends
        on the data.

        Sampled clients know that they were: under collusion nothing is proven.
        """
        epsilon = NotApplicable(_TOLD) if _is_told(terms) else self._epsilon(terms)
        central = self._central(unit, epsilon, delta=terms.delta)
        if central.best:
            return [central]
        return [replace(self.local_guarantee(unit), trust="central"), central]

    def notes(
        self, terms: PrivacyTerms, rounds: Rounds, central: Sequence[Guarantee]
    ) -> Sequence[str]:
        return (
            NEIGHBORS,
            "Votes are not randomized: the server, or a secure sum in its place, is trusted.",
            "Numbers of votes are exact, and no guarantee covers their publication: the columns "
            "estimate and variance are for evaluation.",
            *((f"{terms.collusion}.",) if _is_told(terms) else ()),
        )

    @property
    def why_nothing(self) -> str:
        return "No word was sampled as often as the threshold asks: ask more clients."

    def local_guarantee(self, unit: Unit) -> Guarantee:
        return unprotected(unit, self.fewest_answers)

    def _epsilon(self, terms: PrivacyTerms) -> float | NotApplicable:
        rounds = len(self.layers)
        epsilon = triehh_epsilon(
            num_clients=terms.num_clients,
            sample_size=self.sample_size,
            threshold=self.threshold,
            num_rounds=rounds,
            delta=terms.delta,
        )
        if epsilon < math.inf:
            return epsilon
        return NotApplicable(
            f"no epsilon is proven at delta={terms.delta:g} for sample_size={self.sample_size:,} "
            f"of num_clients={terms.num_clients:,}, threshold={self.threshold} and "
            f"num_rounds={rounds}; raise delta or the population, or let triehh_parameters choose"
        )

    def _central(self, unit: Unit, epsilon: float | NotApplicable, *, delta: float) -> Guarantee:
        answers = "every sampled client answers"
        if self.may_miss_answers:
            answers = (
                "which sampled clients answer does not depend on the data, those that do not count "
                "as abstaining"
            )
        assumptions = (
            f"all {len(self.layers)} rounds sample afresh, {answers}, and only which prefixes are "
            "kept is published"
        )
        if unit == "item":
            assumptions += ITEM_OF_USER
        return Guarantee(
            unit=unit,
            trust="central",
            method="sampling and threshold",
            epsilon=epsilon,
            delta=delta,
            theorem=SAMPLED_VOTES,
            assumptions=assumptions,
            smallest_cohort=self.fewest_answers,
            best=not isinstance(epsilon, NotApplicable),
        )


def _is_told(terms: PrivacyTerms) -> bool:
    return terms.collusion is not None and terms.collusion.colluders > 0


@dataclass(frozen=True, kw_only=True)
class TrieHHParameters:
    """Settings that a privacy target allows.

    Attributes:
        threshold: Votes theta that keep a prefix.
        sample_size: Users m asked per round.
    """

    threshold: int
    sample_size: int


@lru_cache(maxsize=4096)
def triehh_epsilon(
    *, num_clients: int, sample_size: int, threshold: int, num_rounds: int, delta: float
) -> float:
    """Return an epsilon that TrieHH has at delta; infinite if none is proven.

    The unit is a user, neighbors are replace-one; docs/accounting.md, section 8, has the proof.

    Args:
        num_clients: Users n.
        sample_size: Users m asked per round.
        threshold: Votes theta that keep a prefix.
        num_rounds: Rounds L.
        delta: Above 0 and below 1.

    >>> round(triehh_epsilon(num_clients=650_000, sample_size=14_286, threshold=15,
    ...                      num_rounds=10, delta=2.3e-12), 2)
    0.42
    """
    require_at_least(
        1,
        num_clients=num_clients,
        sample_size=sample_size,
        threshold=threshold,
        num_rounds=num_rounds,
    )
    require_inside(0, 1, delta=delta)
    if threshold > sample_size:
        return 0.0  # Nothing is ever kept.
    if sample_size >= num_clients:
        return math.inf
    votes = SampledVotes(num_clients=num_clients, sample_size=sample_size, threshold=threshold)
    return epsilon_of_rounds(
        votes.deltas, lowest=votes.absence_epsilon, num_rounds=num_rounds, delta=delta
    )


@lru_cache(maxsize=256)
def triehh_parameters(
    *, num_clients: int, epsilon: float, delta: float, num_rounds: int
) -> TrieHHParameters:
    """Return the threshold and the sample with (epsilon, delta) privacy that keep most prefixes.

    That is the least share theta / m of a sample that a prefix needs: the threshold is a local
    optimum of it, the sample the largest one for that threshold.

    Args:
        num_clients: Users n of the population.
        epsilon: Central privacy of the whole discovery.
        delta: Its delta.
        num_rounds: Rounds L: symbols of the longest word, the end symbol included.

    Raises:
        InputError: The population is too small for the target.

    >>> triehh_parameters(num_clients=650_000, epsilon=4.0, delta=2.3e-12, num_rounds=10)
    TrieHHParameters(threshold=17, sample_size=112674)
    """
    require_at_least(1, num_clients=num_clients, num_rounds=num_rounds)
    require_positive(epsilon=epsilon)
    require_inside(0, 1, delta=delta)
    search = _ParameterSearch(
        num_clients=num_clients, epsilon=epsilon, delta=delta, num_rounds=num_rounds
    )
    found = search.best()
    if found is None:
        raise InputError(
            f"Expected more clients for epsilon={epsilon} and delta={delta}: no sample of "
            f"num_clients={num_clients:,} and no threshold have this privacy over "
            f"num_rounds={num_rounds}. Raise epsilon or delta, or ask a larger population."
        )
    return found


@dataclass(frozen=True, kw_only=True)
class _ParameterSearch:
    """The search for the best parameters of a target."""

    num_clients: int
    epsilon: float
    delta: float
    num_rounds: int

    def best(self) -> TrieHHParameters | None:
        """Return a threshold none of whose neighbors has a smaller share, with its sample."""
        best = self._start()
        if best is None:
            return None
        for step in (4, 2, 1):
            while (better := self._better(best, -step) or self._better(best, step)) is not None:
                best = better
        return best

    def _start(self) -> TrieHHParameters | None:
        """Return parameters that do, for a threshold near the best one of large populations."""
        threshold = max(2, math.ceil(-0.7 * math.log(self.delta)))
        # More than (1 - m / n)**-L of losses is rarely affordable.
        top = math.ceil(-math.expm1(-1.5 * self.epsilon / self.num_rounds) * self.num_clients)
        while threshold < self.num_clients:
            sample_size = min(top, self.num_clients - 1)
            while sample_size >= threshold:
                if self._enough(threshold, sample_size):
                    return self._largest(threshold, sample_size)
                sample_size = min(sample_size - 1, math.floor(sample_size / _GROWTH))
            threshold *= 2
        return None

    def _better(self, than: TrieHHParameters, step: int) -> TrieHHParameters | None:
        threshold = than.threshold + step
        # By more than samples are apart, so that the search ends.
        share = (1 - 2 / _PARTS) * than.threshold / than.sample_size
        sample_size = math.ceil(threshold / share)
        if threshold < 1 or not self._enough(threshold, sample_size):
            return None
        return self._largest(threshold, sample_size)

    def _largest(self, threshold: int, enough: int) -> TrieHHParameters:
        low, high = enough, self.num_clients
        tried = math.ceil(_GROWTH * low)
        while tried < high and self._enough(threshold, tried):
            low, tried = tried, math.ceil(_GROWTH * tried)
        high = min(high, tried)
        while high - low > max(1, low // _PARTS):
            middle = (low + high) // 2
            low, high = (middle, high) if self._enough(threshold, middle) else (low, middle)
        return TrieHHParameters(threshold=threshold, sample_size=low)

    def _enough(self, threshold: int, sample_size: int) -> bool:
        if not threshold <= sample_size < self.num_clients:
            return False
        return self.epsilon >= triehh_epsilon(
            num_clients=self.num_clients,
            sample_size=sample_size,
            threshold=threshold,
            num_rounds=self.num_rounds,
            delta=self.delta,
        )


def epsilon_of_rounds(
    deltas: Callable[[Floats], Floats], *, lowest: float, num_rounds: int, delta: float
) -> float:
    """Return an epsilon that so many rounds have at delta; infinite if none has it.

    The relation of neighbors is symmetric: the bounds are for both orders.

    Args:
        deltas: Upper bounds on the divergence of one round, ``(k,) float64`` for rising epsilons.
        lowest: The least epsilon that it may be asked for, above 0.
        num_rounds: Rounds L.
        delta: Above 0 and below 1.
    """
    beyond = float(deltas(np.array([max(_INFINITE, lowest)]))[0])
    room = -math.expm1(math.log1p(-delta) / num_rounds) - beyond
    if room <= 0:
        return math.inf
    probes = np.geomspace(lowest, max(_INFINITE, 2 * lowest), 128)
    fine = deltas(probes) <= beyond + room / 10
    top = float(probes[np.argmax(fine)]) if fine.any() else float(probes[-1])
    first = max(1, min(_FINE, math.floor(_CELLS * lowest / top)))
    gap = max(lowest / first, top / _CELLS)
    last = max(first + 1, math.ceil(top / gap))
    epsilons: Floats = gap * np.arange(first, last + 1, dtype=np.float64)
    # The product may fall short of `lowest` by a rounding.
    epsilons[0] = max(epsilons[0], lowest)
    bounds = _on_hull(epsilons, deltas(epsilons), gap * np.arange(last + 1, dtype=np.float64))
    bounds = np.minimum(bounds * (1 + _ROUNDING), 1.0)
    losses = PrivacyLossDistribution.dominating(bounds, gap=gap).from_loss(-first)
    return epsilon_of_sum([(losses, num_rounds)], delta=delta)


def _on_hull(epsilons: Floats, bounds: Floats, at: Floats) -> Floats:
    """Return bounds on a divergence by the convex hull of bounds at other epsilons, in both orders.

    The largest divergence is convex in x = e**epsilon and 1 at x = 0, and its value at 1 / x
    follows from that at x by symmetry.

    Args:
        epsilons: ``(k,) float64``, rising, above 0.
        bounds: ``(k,) float64``, of the divergence there.
        at: ``(m,) float64``, rising, from 0 on.
    """
    x = np.exp(epsilons)
    points = np.concatenate([[0.0], 1 / x[::-1], x])
    heights = np.concatenate([[1.0], (1 - (1 - bounds) / x)[::-1], bounds])
    corners = lower_hull(points, heights)
    return np.asarray(np.interp(np.exp(at), points[corners], heights[corners]))
