"""User-level privacy: what all the contributions of one client together reveal.

A client sends exactly ``max_items`` reports. Two valid bounds on the shuffle of all clients'
reports, of which the smaller counts:

* groups: the N B reports are shuffled together; going from one client's items to any others takes
  B steps between item-level neighbors (`fedhh.accounting.bounds.group_privacy`).
* slots: cut the N B reports into B shuffles, the i-th with the i-th report of every client. The
  sum of all votes is a post-processing of the B shuffles. Each has N reports, of which the client
  changes one, so B mechanisms compose, each with n = N.

Composing B times the pair for n = N B is *not* valid: the other reports cannot hide the client B
times over. That is why the functions here take clients and items per client, never a number of
reports.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fedhh.accounting.bounds.composition import FINE, Precision, Use, composed_epsilon
from fedhh.accounting.bounds.group_privacy import group_epsilon
from fedhh.accounting.bounds.shuffle_bound import NUM_REPORTS_RANGE, ShuffleBound, check_delta
from fedhh.accounting.guarantees import NotApplicable
from fedhh.accounting.shuffling import shuffle_bound
from fedhh.validation import require_at_least, require_between


@dataclass(frozen=True, kw_only=True)
class UserLevelEpsilon:
    """Central user-level epsilon by both bounds.

    Attributes:
        groups: By group privacy, never above B times the local epsilon.
        slots: By composition over slots, or why not.
    """

    groups: float
    slots: float | NotApplicable

    @property
    def epsilon(self) -> float:
        """The smaller of the two."""
        return (
            self.groups if isinstance(self.slots, NotApplicable) else min(self.groups, self.slots)
        )

    @property
    def method(self) -> str:
        """Which of the two is the smaller."""
        return "groups" if self.epsilon == self.groups else "slots"


def user_level_epsilon(
    *,
    bound: str,
    local_epsilon: float,
    num_clients: int,
    max_items: int,
    delta: float,
    domain_size: int | None = None,
    subset_size: int | None = None,
) -> UserLevelEpsilon:
    """Return the central epsilon of one client's ``max_items`` contributions.

    Args:
        bound: Item-level bound that both methods build on: "clones", "clones-2023" or "blanket".
        local_epsilon: Privacy of one report.
        num_clients: N, clients in one cohort.
        max_items: B, reports of every client, dummies included; exactly so many.
        delta: Target, from 1e-14 to 0.1.
        domain_size: Values of Subset Selection; for "blanket" only.
        subset_size: Values in a report; for "blanket" only, Sun et al.'s choice if None.
    """

    def of_reports(num_reports: int) -> ShuffleBound:
        return shuffle_bound(
            bound,
            local_epsilon=local_epsilon,
            num_reports=num_reports,
            domain_size=domain_size,
            subset_size=subset_size,
        )

    return user_level_from(of_reports, num_clients=num_clients, max_items=max_items, delta=delta)


def user_level_from(
    of_reports: Callable[[int], ShuffleBound],
    *,
    num_clients: int,
    max_items: int,
    delta: float,
    num_reports: int | None = None,
    uses: int = 1,
    precision: Precision = FINE,
) -> UserLevelEpsilon:
    """Return `user_level_epsilon` for any family of bounds, and for clients that are reused.

    Args:
        of_reports: Gives the item-level bound for a number of reports, which is filled in here.
        num_clients: N, clients in one cohort, the fewest of all rounds.
        max_items: B, most reports of one client.
        delta: Target.
        num_reports: None if every client sends exactly B reports. Otherwise the reports of a
            cohort; then slots do not exist, and groups compare data sets in which the client sends
            the same number of reports.
        uses: Rounds in which one client takes part.
        precision: See `composed_epsilon`.
    """
    check_delta(delta)
    require_between(*NUM_REPORTS_RANGE, num_clients=num_clients)
    require_at_least(1, max_items=max_items, uses=uses)
    together = num_clients * max_items if num_reports is None else num_reports
    # More reports than the bounds' range hide no less.
    item_level = of_reports(min(together, NUM_REPORTS_RANGE[1]))
    groups = uses * group_epsilon(
        item_level, steps=max_items, delta=delta / uses, precision=precision
    )
    if num_reports is not None:
        return UserLevelEpsilon(
            groups=groups,
            slots=NotApplicable(
                "clients do not send exactly max_items reports each, so there are no slots"
            ),
        )
    slots = composed_epsilon(
        [Use(bound=of_reports(num_clients), times=max_items * uses)],
        delta=delta,
        precision=precision,
    )
    return UserLevelEpsilon(groups=groups, slots=slots)
