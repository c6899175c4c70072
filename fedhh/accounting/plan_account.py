"""A plan for a central target: its clients or its local epsilon, and all that it can claim."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from annotated_types import Ge, Gt, Le, Lt

from fedhh.accounting.guarantees import (
    UNITS,
    NotApplicable,
    PrivacyReport,
    Unit,
    epsilon_text,
    or_infinite,
)
from fedhh.accounting.local_reports import LocalReports
from fedhh.accounting.plan import Plan
from fedhh.accounting.plan_search import clients_of_plan, local_epsilon_of_plan, terms_with
from fedhh.accounting.rounds import PlannedRound
from fedhh.oracles import OracleSpec, oracle_names
from fedhh.settings import LARGEST_COUNT, Count, Settings
from fedhh.validation import (
    InputError,
    require_at_least,
    require_choice,
    require_epsilon,
    require_positive,
)

_START = 100_000
"""Clients at which a search starts."""
_ANY_DOMAIN = (2, LARGEST_COUNT)
_SYMBOLS = 27
_PROTECTED: Mapping[str, tuple[str, str]] = {
    "item": ("an item, one contribution of one user", "one item is replaced by any other"),
    "user": (
        "a user, with all that it contributes",
        "all items of one user are replaced by any others",
    ),
}
"""A unit, and how neighbors differ in it."""


@dataclass(frozen=True, kw_only=True)
class LayeredPlan(Settings):
    """Rounds of local reports, for any number of clients and any local epsilon.

    A client's contributions of a round are different values, but for the dummy.

    Attributes:
        layers: Layers of a pass, each with a cohort of its own.
        passes: Passes.
        validation_share: Share of all clients that a validation round asks; None for no such round.
        max_items: B, contributions of a client.
        oracle: The randomizer.
        domain_size: Values of every layer; any if neither this nor ``eta_max`` is given.
        eta_max: Prefixes that a layer keeps at most, so that votes decide the domain.
        alphabet_size: Symbols that extend each of them, the end symbol included.

    Raises:
        InputError: A value is out of range, or ``domain_size`` and ``eta_max`` are both given.
    """

    layers: Count = 1
    passes: Count = 1
    validation_share: Annotated[float, Gt(0), Lt(1)] | None = None
    max_items: Count = 1
    oracle: str = "ss"
    domain_size: Annotated[int, Ge(2), Le(LARGEST_COUNT)] | None = None
    eta_max: Count | None = None
    alphabet_size: Count = _SYMBOLS

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice([name for name in oracle_names() if name != "none"], oracle=self.oracle)
        if self.domain_size is not None and self.eta_max is not None:
            raise InputError("Expected domain_size or eta_max, got both; leave one out.")

    @property
    def title(self) -> str:
        return f"oracle {self.oracle}"

    def __call__(self, clients: int, local_epsilon: float) -> LocalReports:
        """Return the plan for so many clients in all; InputError if they are too few."""
        rounds, share = self.layers * self.passes, self.validation_share or 0.0
        validation = int(clients * share)
        cohort = (clients - validation) // rounds
        if cohort < 1 or (share and validation < 1):
            raise InputError(f"Expected a client for each of {rounds} layers, got {clients}.")
        smallest, largest = _ANY_DOMAIN
        if self.domain_size is not None:
            smallest = largest = self.domain_size
        elif self.eta_max is not None:
            smallest, largest = self.alphabet_size + 1, self.eta_max * self.alphabet_size + 1
        layers = [
            PlannedRound(
                pass_index=pass_index,
                layer=layer,
                num_clients=cohort,
                smallest_domain=smallest,
                largest_domain=largest,
                max_items=self.max_items,
                local_epsilon=local_epsilon,
            )
            for pass_index in range(self.passes)
            for layer in range(1, self.layers + 1)
        ]
        if share:
            last = layers[-1]
            layers.append(
                replace(last, layer=last.layer + 1, num_clients=validation, smallest_domain=2)
            )
        params = {"subset_size": "optimal"} if self.oracle == "ss" else {}
        return LocalReports(
            layers=tuple(layers),
            randomizers=(OracleSpec(name=self.oracle, epsilon=local_epsilon, params=params),),
        )


@dataclass(frozen=True, kw_only=True)
class FoundPlan:
    """A plan that meets a central target before the run; neighbors are replace-one.

    Attributes:
        title: Of the plans.
        unit: Whose guarantee the target is about, "item" or "user".
        honest_share: Of all clients, who tell nobody their reports.
        clients: In all.
        local_epsilon: Of one contribution.
        plan: The plan.
        report: All that it guarantees before the run.
    """

    title: str
    unit: Unit
    honest_share: float
    clients: int
    local_epsilon: float
    plan: Plan
    report: PrivacyReport

    @property
    def shape(self) -> str:
        """Clients, rounds and contributions of the plan, in a few words."""
        cohorts = [each.num_clients for each in self.plan.layers]
        items = self.plan.max_items
        fewest, most = f"{min(cohorts):,}", f"{max(cohorts):,}"
        sizes = fewest if fewest == most else f"{fewest} to {most}"
        rounds = "one round" if len(cohorts) == 1 else f"{len(cohorts)} rounds"
        contributions = f"{items} contribution{'' if items == 1 else 's'}"
        return (
            f"{self.clients:,} clients in all, in {rounds} of {sizes}, with {contributions} each "
            f"of local epsilon {self.local_epsilon:g}"
        )

    @property
    def statement(self) -> str:
        """What the plan guarantees to the target's unit, in a paragraph to quote.

        It has the unit, the neighboring relation, epsilon, delta, theorem and assumptions, and whom
        the guarantee is against.
        """
        central = self.report.before_run(self.unit)
        local = self.report.best(self.unit, "local")
        protected, replaced = _PROTECTED[self.unit]
        against_server = (
            "has no guarantee"
            if or_infinite(local.epsilon) == math.inf
            else f"has epsilon {epsilon_text(local.epsilon)} and delta {local.delta:g} "
            f"({local.theorem}; assumption: {local.assumptions})"
        )
        smallest = (
            f"; the smallest cohort has {central.smallest_cohort:,} clients"
            if self.honest_share == 1
            else f"; {self.honest_share:.4g} of all clients are honest"
        )
        return (
            f"Before it runs, this plan ({self.title}: {self.shape}) is differentially private at "
            f"the level of {protected}: for any two data sets of the same size in which "
            f"{replaced}, epsilon is {epsilon_text(central.epsilon)} and delta {central.delta:g}, "
            f"by {central.theorem}. This is for readers of all that the server publishes "
            "(prefixes, words and estimates) who see no single report. Assumptions: "
            f"{central.assumptions}{smallest}. Against the server, which reads each report, the "
            f"same unit {against_server}. All of it is for devices that run this plan; its "
            "simulation protects nobody."
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "of": self.title,
            "unit": self.unit,
            "honest_share": self.honest_share,
            "plan": {
                "local_epsilon": self.local_epsilon,
                "max_items": self.plan.max_items,
                "passes": self.plan.num_passes,
                "clients_per_layer": [each.num_clients for each in self.plan.layers],
                "clients": self.clients,
            },
            "statement": self.statement,
            **self.report.to_dict(),
        }


def account_plan(
    plan_at: LayeredPlan | Callable[[int, float], Plan],
    *,
    central_epsilon: float,
    unit: Unit = "item",
    delta: float = 1e-10,
    local_epsilon: float | None = None,
    clients: int | None = None,
    title: str = "",
    honest_share: float = 1.0,
) -> FoundPlan | NotApplicable:
    """Return the plan that meets a central target before the run: clients or local epsilon.

    The bound is the one that a run of the plan claims before it starts. Neighbors replace an item,
    or all items of a user.

    Args:
        plan_at: Returns the plan of so many clients in all at a local epsilon.
        central_epsilon: The target, above 0.
        unit: Whose guarantee the target is about, "item" or "user".
        delta: Of the target, from 1e-14 to 0.1.
        local_epsilon: Of a contribution, to find the fewest clients; either this or ``clients``.
        clients: In all, to find the local epsilon.
        title: Of the plans; a `LayeredPlan` has its own.
        honest_share: Of all clients: the others tell the server their reports, and cohorts are
            drawn at random. Guarantees are then those of `Collusion`, whose ``excess_chance`` of a
            hundredth of ``delta`` is taken from it, so that the whole has ``delta``.

    Returns:
        The plan; NotApplicable with the reason if none meets the target.

    Raises:
        InputError: A value is out of range, or there is not one of ``local_epsilon`` and
            ``clients``.

    >>> account_plan(LayeredPlan(layers=10), central_epsilon=1, local_epsilon=6).clients
    328860
    """
    require_positive(central_epsilon=central_epsilon)
    require_choice(UNITS, unit=unit)
    if clients is not None:
        require_at_least(1, clients=clients)
    if local_epsilon is not None:
        require_epsilon(local_epsilon=local_epsilon)
    if (local_epsilon is None) == (clients is None):
        got = "neither" if clients is None else "both"
        raise InputError(f"Expected either local_epsilon or clients, got {got}.")
    target: dict[str, Any] = {
        "unit": unit,
        "epsilon": central_epsilon,
        "delta": delta,
        "honest_share": honest_share,
    }
    stated: Any = local_epsilon if clients is None else clients
    found: Any
    if clients is None:
        found = clients_of_plan(lambda number: plan_at(number, stated), **target, start=_START)
        settled = found, stated
    else:
        found = local_epsilon_of_plan(
            lambda epsilon: plan_at(stated, epsilon), **target, num_clients=clients
        )
        settled = stated, found
    if isinstance(found, NotApplicable):
        return found
    plan = plan_at(*settled)
    report = plan.report(terms_with(plan, honest_share, num_clients=settled[0], delta=delta))
    return FoundPlan(
        title=plan_at.title if isinstance(plan_at, LayeredPlan) else title,
        unit=unit,
        honest_share=honest_share,
        clients=settled[0],
        local_epsilon=settled[1],
        plan=plan,
        report=report,
    )
