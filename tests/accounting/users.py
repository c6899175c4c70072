"""The user-level epsilon of a bound by name, as of `account_user`."""

from __future__ import annotations

from typing import Any

from fedhh.accounting import UserLevelEpsilon, shuffle_bound, user_level_from


def user_level_epsilon(
    *, bound: str, local_epsilon: float, num_clients: int, max_items: int, delta: float,
    **settings: Any,
) -> UserLevelEpsilon:  # fmt: skip
    uses = settings.pop("uses", 1)
    of_item = shuffle_bound(
        bound, local_epsilon=local_epsilon, num_reports=max(2, num_clients), **settings
    )
    return user_level_from(
        of_item, num_clients=num_clients, max_items=max_items, delta=delta, uses=uses
    )
