"""Clients who tell the server what they sent: how many honest ones a cohort has at least.

Amplification by shuffling counts reports that the reader cannot take out again, so those of honest
clients: with c colluders among n clients it is that of the n - c others, since the reader subtracts
what it is told. A guarantee that is local, or a trusted aggregator's own noise, does not rest on
other clients, and colluders change nothing. Noise that clients make in shares is known to the
server as far as the shares are.

**Cohorts drawn at random.** Of N clients M collude, fixed before a cohort of n is drawn. It has
C ~ Hypergeometric(N, M, n) colluders. With probability at least 1 - eta, C is at most its quantile
c; given such a cohort the guarantee of n - c reports holds, and the other cohorts have probability
at most eta, which adds to delta. For a client whom the cohort has, that probability is smaller: its
cohort has n - 1 of the N - 1 others, and C given that an honest client is in it is stochastically
smaller than C (the number of honest clients is biased by its own size). A client in t rounds adds
t eta, by the union bound; disjoint cohorts have it in one round, so that layers add nothing.

**Cohorts that the server chooses.** All M colluders may be in a cohort: c = min(M, n), and nothing
adds to delta.

Where some clients never answer a round, those may all be honest: the fewest answers, less c.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Literal, TypeVar

import numpy as np
from annotated_types import Ge, Gt, Lt

from fedhh.accounting.guarantees import Guarantee
from fedhh.accounting.plan import Plan
from fedhh.accounting.rounds import PlannedRound
from fedhh.privacy_loss.binomial import log_hypergeometric
from fedhh.privacy_loss.search import smallest_true
from fedhh.settings import Settings
from fedhh.validation import InputError, require_at_least

AnyPlan = TypeVar("AnyPlan", bound=Plan)

UNCHANGED = (
    "Colluding clients change no guarantee here: the noise, or the sample, is the servers' own."
)
"""The note of a plan whose guarantees do not rest on clients."""

_WIDE = 8
"""Roots of a cohort over which a tail is summed: 16 standard deviations at least."""


@dataclass(frozen=True, kw_only=True)
class Collusion(Settings):
    """Some clients tell the server their reports, and their shares of noise.

    Attributes:
        colluders: M of them.
        num_clients: N, clients of the population, colluders included.
        cohorts_by: "chance" if cohorts are drawn at random; "server" if it chooses who is in them.
        excess_chance: eta, chance of more colluders in a cohort than is stated; it is added to
            delta for each round of a client. Without a meaning where the server chooses.

    Raises:
        InputError: A value is out of range, or no client is honest.
    """

    colluders: Annotated[int, Ge(0)]
    num_clients: Annotated[int, Ge(2)]
    cohorts_by: Literal["chance", "server"] = "chance"
    excess_chance: Annotated[float, Gt(0), Lt(0.1)] = 1e-12

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.colluders >= self.num_clients:
            raise InputError(
                f"Expected colluders < num_clients={self.num_clients}, got "
                f"colluders={self.colluders}: a guarantee is for an honest client."
            )

    def most_colluders(self, cohort: int) -> int:
        """Return c: a cohort has more colluders with probability at most `excess_chance`.

        Args:
            cohort: n, clients that a round asks, at most N.
        """
        require_at_least(1, cohort=cohort)
        if cohort > self.num_clients:
            raise InputError(
                f"Expected a cohort of at most num_clients={self.num_clients}, got cohort={cohort}."
            )
        if self.cohorts_by == "server":
            return min(self.colluders, cohort)
        return _quantile(self.num_clients, self.colluders, cohort, self.excess_chance)

    def fewest_honest(self, cohort: int, answers: int | None = None) -> int:
        """Return how many honest clients answer at least, one of them whom the guarantee is for.

        Args:
            cohort: n, clients that a round asks.
            answers: That it accepts at least; all if None.
        """
        answers = cohort if answers is None else answers
        return max(1, answers - self.most_colluders(cohort))

    def added_delta(self, rounds: int) -> float:
        """Return what is added to delta for a client that takes part in so many rounds."""
        if self.cohorts_by == "server" or not self.colluders:
            return 0.0
        return rounds * self.excess_chance

    def fewest_honest_of(self, planned: PlannedRound) -> int:
        """Return how many honest clients answer a planned round at least."""
        return self.fewest_honest(planned.num_clients, planned.fewest_clients)

    def honest_part(self, plan: AnyPlan) -> AnyPlan:
        """Return a plan whose rounds accept as few answers as honest clients may give.

        What it guarantees is what remains under collusion, but for `added_delta`. Where all clients
        of an epoch hide each other, so do all its colluders.
        """
        if plan.hides_epochs:
            left = (one for each in plan.shuffles for one in self._left(each))
            return replace(plan, layers=tuple(left))
        fewest: dict[int, int] = {}
        for planned in plan.layers:
            honest = self.fewest_honest_of(planned)
            fewest[planned.num_clients] = min(honest, fewest.get(planned.num_clients, honest))
        return plan.accepting(fewest.__getitem__)

    def _left(self, epoch: Sequence[PlannedRound]) -> Iterator[PlannedRound]:
        """Yield an epoch's rounds, accepting so few answers in all as honest clients may give."""
        taken = self.most_colluders(sum(each.num_clients for each in epoch))
        for each in epoch:
            least = max(1, each.fewest_clients - taken)
            taken -= each.fewest_clients - least
            yield replace(each, least_clients=least)

    def stated(self, guarantee: Guarantee, *, rounds: int) -> Guarantee:
        """Return a central guarantee of an honest part with its delta and what it assumes.

        Args:
            guarantee: Where nothing is amplified it is the local one, and stays as it is.
            rounds: That a client takes part in at most.
        """
        if guarantee.delta == 0:
            return guarantee
        honest = f"at least {guarantee.smallest_cohort:,} honest clients in each cohort"
        return replace(
            guarantee,
            delta=guarantee.delta + self.added_delta(rounds),
            assumptions=f"{guarantee.assumptions}; {honest}",
        )

    def __str__(self) -> str:
        who = f"{self.colluders:,} of {self.num_clients:,} clients tell the server their reports"
        if self.cohorts_by == "server":
            return f"{who}, and the server chooses who is in a cohort"
        return (
            f"{who}; a cohort drawn at random has more of them than stated with chance at most "
            f"{self.excess_chance:g}, which is added to delta"
        )


def honest_part_of(number: int, honest_share: float) -> int:
    """Return how many of a number of clients or reports are an honest share, rounded down."""
    if not 0 < honest_share <= 1:
        raise InputError(f"Expected 0 < honest_share <= 1, got honest_share={honest_share!r}.")
    # A product such as 0.29 * 100 may fall short of a whole number by a rounding.
    return math.floor(number * honest_share * (1 + 1e-15))


@lru_cache(maxsize=1024)
def _quantile(num_clients: int, colluders: int, cohort: int, chance: float) -> int:
    """Return the smallest c with P(Hypergeometric > c) <= chance."""
    low, high = max(0, cohort - (num_clients - colluders)), min(colluders, cohort)
    return smallest_true(
        lambda count: tail_beyond(count, num_clients, colluders, cohort) <= chance,
        low=low,
        high=high,
    )


def tail_beyond(count: int, num_clients: int, colluders: int, cohort: int) -> float:
    """Return P(C > count) for C ~ Hypergeometric(N, M, n), rounded up.

    The first term is `log_hypergeometric`, rounded up; the others come from exact ratios of
    neighbors. Ratios fall, so what is not summed is below a geometric series.

    Args:
        count: From which on; at least the fewest that a cohort can have, less one.
        num_clients: N.
        colluders: M.
        cohort: n.
    """
    first, last = count + 1, min(colluders, cohort)
    if first > last:
        return 0.0
    honest = num_clients - colluders
    if first <= max(0, cohort - honest):
        return 1.0
    mode = (cohort + 1) * (colluders + 1) // (num_clients + 2)
    if first <= mode:
        # Below the mode the tail is no small number; as if it were certain, which rounds up.
        return 1.0
    log_first = float(log_hypergeometric(num_clients, colluders, cohort, first))
    width = _WIDE * (1 + math.isqrt(cohort))
    at = np.arange(first, min(last + 1, first + width), dtype=np.float64)
    ratios = (colluders - at) * (cohort - at) / ((at + 1) * (honest - cohort + at + 1))
    terms = np.cumprod(ratios)
    total = 1.0 + float(terms.sum() + terms[-1] * ratios[-1] / (1 - ratios[-1]))
    return min(1.0, math.exp(min(0.0, log_first)) * total * (1 + 1e-12))
