"""What a plan claims of an item and of a user before its run, against both kinds of readers."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fedhh.accounting.guarantees import UNITS, or_infinite
from fedhh.accounting.plan import Plan
from fedhh.accounting.terms import PrivacyTerms


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
    def of(cls, plan: Plan, terms: PrivacyTerms) -> EpsilonsBeforeRun:
        """Return those of a plan of settled settings."""
        found = {}
        for unit in UNITS:
            found[f"{unit}_central"] = plan.central_epsilon(unit, terms)
            found[f"{unit}_local"] = or_infinite(plan.local_guarantee(unit).epsilon)
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
