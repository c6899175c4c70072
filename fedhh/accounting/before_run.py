"""What a plan claims of an item and of a user before its run, against both kinds of readers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from fedhh.accounting.account import account, epsilon_before_run
from fedhh.accounting.bounds.shuffle_bound import check_delta
from fedhh.accounting.guarantees import UNITS, Unit, or_infinite
from fedhh.accounting.local import local_guarantees
from fedhh.accounting.local_reports import LocalReports
from fedhh.accounting.plan import Plan
from fedhh.accounting.run_facts import RunFacts
from fedhh.validation import require_choice

_ALPHA = 0.5
"""Of approximate k-anonymity, which is not asked for before a run."""


def local_before_run(plan: Plan, *, num_clients: int, unit: Unit, delta: float) -> float:
    """Return the local epsilon of a unit over all rounds that a plan asks its client in.

    Args:
        plan: What a run of settled settings does.
        num_clients: Clients of the population.
        unit: "item" or "user".
        delta: Of central guarantees, from 1e-14 to 0.1, which some plans are made for.

    Returns:
        The epsilon, infinite where the server reads what a client did not randomize.
    """
    require_choice(UNITS, unit=unit)
    check_delta(delta)
    if isinstance(plan, LocalReports):
        found = local_guarantees(RunFacts.planned(plan, delta=delta))
        return next(or_infinite(each.epsilon) for each in found if each.unit == unit)
    report = account(plan, (), num_clients=num_clients, delta=delta, alpha=_ALPHA)
    return or_infinite(report.best(unit, "local").epsilon)


@dataclass(frozen=True, kw_only=True)
class EpsilonsBeforeRun:
    """What a plan claims of an item and of a user before its run; infinite where it is nothing.

    Attributes:
        item_central: Of an item, against readers of the results.
        item_local: Of an item, against the server.
        user_central: Of all items of a user, against readers of the results.
        user_local: Of all items of a user, against the server.
    """

    item_central: float
    item_local: float
    user_central: float
    user_local: float

    @classmethod
    def of(cls, plan: Plan, *, num_clients: int, delta: float) -> EpsilonsBeforeRun:
        """Return those of a plan of settled settings; central ones at this delta."""
        found = {}
        for unit in UNITS:
            given: dict[str, Any] = {"num_clients": num_clients, "unit": unit, "delta": delta}
            found[f"{unit}_central"] = epsilon_before_run(plan, **given)
            found[f"{unit}_local"] = local_before_run(plan, **given)
        return cls(**found)

    def to_dict(self) -> dict[str, float | None]:
        """Return them as JSON values, by the names of a run's result; None for an infinite one."""
        named = {
            "central_epsilon_before_run": self.item_central,
            "local_epsilon": self.item_local,
            "central_epsilon_user_before_run": self.user_central,
            "local_epsilon_user": self.user_local,
        }
        return {name: value if value < math.inf else None for name, value in named.items()}
