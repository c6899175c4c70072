"""The user-level epsilon of a bound by name, as of `account_user`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fedhh.accounting import NotApplicable, ShuffleBound, Use, shuffle_bound, user_guarantees
from fedhh.accounting.guarantees import or_infinite


@dataclass(frozen=True)
class UserLevelEpsilon:
    """By groups and by slots."""

    groups: float
    slots: float | NotApplicable

    @property
    def epsilon(self) -> float:
        return min(self.groups, or_infinite(self.slots))

    @property
    def method(self) -> str:
        return "slots" if or_infinite(self.slots) < self.groups * (1 - 1e-7) else "groups"


def user_level_from(bound: ShuffleBound, **settings: Any) -> UserLevelEpsilon:
    uses = [Use(bound=bound, times=settings.pop("rounds", 1))]
    groups, slots = user_guarantees(uses, **settings)
    assert (groups.method, slots.method) == (f"{bound.name}, groups", f"{bound.name}, slots")
    assert groups.delta == slots.delta == settings["delta"]
    return UserLevelEpsilon(groups.epsilon, slots.epsilon)


def user_level_epsilon(
    *, bound: str, local_epsilon: float, num_clients: int, max_items: int, delta: float,
    **settings: Any,
) -> UserLevelEpsilon:  # fmt: skip
    rounds = settings.pop("rounds", 1)
    of_item = shuffle_bound(
        bound, local_epsilon=local_epsilon, num_reports=max(2, num_clients), **settings
    )
    return user_level_from(
        of_item, num_clients=num_clients, max_items=max_items, delta=delta, rounds=rounds
    )
