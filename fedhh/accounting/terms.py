"""The terms on which a plan states what it guarantees: numbers, and whom it is against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Self

from annotated_types import Gt, Lt

from fedhh.accounting.bounds.composition import QUICK, Precision
from fedhh.accounting.collusion import Collusion
from fedhh.settings import Settings

if TYPE_CHECKING:
    from fedhh.accounting.plan import Plan

EXCESS_SHARE = 0.01
"""Share of delta that the chance of more colluders than stated takes, where delta is to be kept."""


@dataclass(frozen=True, kw_only=True)
class PrivacyTerms(Settings):
    """What the guarantees of a plan are stated for.

    Attributes:
        num_clients: Clients of the population.
        delta: Of the central guarantees, in (0, 1); from 1e-14 to 0.1 where clients make the noise.
        alpha: Of approximate k-anonymity: the least probability that a rare value does not surface,
            in (0, 1).
        collusion: Clients who tell the reader what they sent; central guarantees are then for the
            others, and their delta is ``delta`` and `Collusion.added_delta`.
        precision: Of what is composed from local reports.
        one_way: Whether local reports of a user are looked at in one way alone, for a search: see
            `fedhh.accounting.user_level.user_guarantees`.

    Raises:
        InputError: A value is out of range.
    """

    num_clients: int
    delta: float
    alpha: Annotated[float, Gt(0), Lt(1)] = 0.95
    collusion: Collusion | None = None
    precision: Precision = QUICK
    one_way: bool = False

    @classmethod
    def within(
        cls, plan: Plan, *, num_clients: int, delta: float, colluders: int = 0, alpha: float = 0.95
    ) -> Self:
        """Return terms under which a plan's central guarantees have one delta in all.

        Where they rest on other clients' coins, `EXCESS_SHARE` of it is for cohorts that have more
        colluders than stated.

        Args:
            plan: What the run does.
            num_clients: Clients of the population, colluders included.
            delta: Of the whole guarantee.
            colluders: Clients whose reports the reader knows.
            alpha: Of approximate k-anonymity.
        """
        if not colluders:
            return cls(num_clients=num_clients, delta=delta, alpha=alpha)
        collusion, left = Collusion(colluders=colluders, num_clients=num_clients), delta
        if plan.rests_on_clients:
            excess = EXCESS_SHARE * delta / plan.most_rounds_per_client
            collusion = Collusion(
                colluders=colluders, num_clients=num_clients, excess_chance=excess
            )
            left -= collusion.added_delta(plan.most_rounds_per_client)
        return cls(num_clients=num_clients, delta=left, alpha=alpha, collusion=collusion)

    def added_delta(self, plan: Plan) -> float:
        """Return what colluders add to the delta of a plan's guarantees."""
        if self.collusion is None:
            return 0.0
        return self.collusion.added_delta(plan.most_rounds_per_client)
