"""Reports and plans as events of dp-accounting, for its accountants.

A report with local epsilon becomes a binary randomized response with that epsilon, its worst case:
whatever is composed, and however adaptively, no report with this epsilon has more delta at any
epsilon (Kairouz, Oh, Viswanath 2015, Theorem 3.3; numbering not verified). So the events bound what
they stand for. Their neighbors are replace-one, `NEIGHBORS`: one item, or all that one client
contributes, is replaced.

Each of several reports stands in an event by itself. `PLDAccountant` counts a `SelfComposedDpEvent`
of randomized responses once, whatever its count says (in 0.5.0 to 0.6.0 of dp-accounting).

dp-accounting has no event for a shuffle, nor for sampling with a threshold: `NoDpEventError`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from dp_accounting import NeighboringRelation
from dp_accounting.dp_event import (
    ComposedDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    RandomizedResponseDpEvent,
)
from dp_accounting.dp_event import DpEvent as DpEvent  # noqa: PLC0414 - for annotations elsewhere

from fedhh.accounting.guarantees import UNITS, Trust, Unit
from fedhh.accounting.plan import Plan
from fedhh.validation import InputError, require_at_least, require_choice, require_epsilon

__all__ = [
    "MOST_REPORTS",
    "NEIGHBORS",
    "NoDpEventError",
    "event_of_plan",
    "event_of_reports",
    "expression",
]

NEIGHBORS = NeighboringRelation.REPLACE_ONE
"""What to give an accountant as its neighboring relation."""

MOST_REPORTS = 100_000
"""Reports of an event, at most."""

_LARGEST_EPSILON = 700.0
"""Above, a randomized response's noise parameter is no double."""


class NoDpEventError(InputError):
    """dp-accounting has no event for what was asked."""


def event_of_reports(epsilons: Sequence[float], counts: Sequence[int]) -> DpEvent:
    """Return the event of reports that one client sends, each randomized by itself.

    Args:
        epsilons: ``(k,)``: local epsilon of each kind of report, at least 1e-6; infinite for no
            randomizer.
        counts: ``(k,)``: how many of each kind, at least 0.

    Raises:
        NoDpEventError: More than 100,000 reports, or a finite epsilon above 700.
        InputError: A value is out of range.

    >>> from dp_accounting.pld import PLDAccountant
    >>> accountant = PLDAccountant(NEIGHBORS).compose(event_of_reports([1.0], [10]))
    >>> round(accountant.get_epsilon(1e-3), 2)
    9.98
    """
    for epsilon, count in zip(epsilons, counts, strict=True):
        require_at_least(0, count=count)
        if epsilon != math.inf:
            require_epsilon(epsilon=epsilon)
    kinds = [(each, count) for each, count in zip(epsilons, counts, strict=True) if count]
    if any(epsilon == math.inf for epsilon, _ in kinds):
        return NonPrivateDpEvent()
    if (total := sum(counts)) > MOST_REPORTS:
        raise NoDpEventError(
            f"Expected at most {MOST_REPORTS:,} reports of an event, got {total:,}: each stands in "
            "it by itself."
        )
    events = [event for epsilon, count in kinds for event in [_randomized(epsilon)] * count]
    if not events:
        return NoOpDpEvent()
    return ComposedDpEvent(events) if len(events) > 1 else events[0]


def event_of_plan(plan: Plan, *, unit: Unit = "user", trust: Trust = "local") -> DpEvent:
    """Return the event of all that a run may ask of one item or one client.

    Args:
        plan: Of the run's protocol. Where clients send plain words it is `NonPrivateDpEvent`; for
            BLENDER's clients who did not opt in, ask for ``plan.local``.
        unit: "item" or "user".
        trust: "local", what the server reads, or "central", what is published.

    Raises:
        NoDpEventError: dp-accounting has none.
    """
    require_choice(UNITS, unit=unit)
    require_choice(("local", "central"), trust=trust)
    if trust == "central":
        raise NoDpEventError(
            f"Expected a mechanism that dp-accounting has an event for, got {plan.without_event}"
        )
    epsilons = plan.epsilons_of_contribution
    contributions = plan.most_rounds_per_client
    if unit == "user":
        contributions *= plan.max_items
    return event_of_reports(epsilons, [contributions] * len(epsilons))


def expression(event: DpEvent) -> str:
    """Return Python that evaluates to the event, given the names of `dp_accounting.dp_event`.

    Equal events in a row of a composed one are written as a multiple of a list.

    >>> expression(event_of_reports([2.0, 6.0], [1, 0]))
    'RandomizedResponseDpEvent(noise_parameter=0.2384058440442351, num_buckets=2)'
    >>> expression(ComposedDpEvent([NonPrivateDpEvent()] * 3))
    'ComposedDpEvent(events=[NonPrivateDpEvent()] * 3)'
    """
    if not isinstance(event, ComposedDpEvent):
        return repr(event)
    runs = [(each, len(list(equal))) for each, equal in groupby(event.events)]
    parts = [f"[{expression(each)}]" + (f" * {count}" if count > 1 else "") for each, count in runs]
    return f"ComposedDpEvent(events={' + '.join(parts) or '[]'})"


def _randomized(epsilon: float) -> DpEvent:
    """Return a binary randomized response, whose odds of the truth are e**epsilon."""
    if epsilon > _LARGEST_EPSILON:
        raise NoDpEventError(
            f"Expected epsilon <= {_LARGEST_EPSILON:g} of a report for its event, got {epsilon:g}."
        )
    return RandomizedResponseDpEvent(2 / (1 + math.exp(epsilon)), 2)
