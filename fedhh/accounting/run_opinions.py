"""Second opinions on a run's composed epsilons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fedhh.accounting.bounds.blanket import Blanket
from fedhh.accounting.bounds.composition import QUICK, Use
from fedhh.accounting.bounds.selection import dominating_blanket
from fedhh.accounting.bounds.shuffle_bound import NUM_REPORTS_RANGE, ShuffleBound
from fedhh.accounting.guarantees import Composed, NotApplicable, PrivacyReport, Unit
from fedhh.accounting.run_blankets import blankets_of, reachable_of
from fedhh.accounting.second_opinion import SecondOpinion, opinion_on_uses
from fedhh.accounting.shuffling import shuffle_bound
from fedhh.plans.base import Plan
from fedhh.plans.local_reports import LocalReports
from fedhh.plans.opt_in import OptInBlend


def opinions_on_run(
    report: PrivacyReport, plan: Plan, layers: Sequence[tuple[int, int]]
) -> tuple[SecondOpinion, ...]:
    """Return a second opinion on each epsilon of a run that privacy losses were composed for.

    These are the user level by slots, and, where clients serve in several rounds, the item level.

    Args:
        report: The run's.
        plan: Of its protocol.
        layers: Reports and values of each layer that took part.

    Returns:
        Nothing for a run that composes no privacy losses.

    Raises:
        RefutedClaimError: An epsilon of the run is below dp-accounting's lower bound.
        InputError: Delta is below 1e-10.
    """
    local = plan.local if isinstance(plan, OptInBlend) else plan
    if not isinstance(local, LocalReports):
        return ()
    opinions = []
    for guarantee in report.guarantees:
        if guarantee.composed is None or isinstance(guarantee.epsilon, NotApplicable):
            continue
        composed, realised = guarantee.composed, guarantee.realised
        reports = min(composed.num_reports, NUM_REPORTS_RANGE[1])
        group = _group_of(composed, guarantee.unit, local)
        bound = replace(_bound(composed.bound, realised, group, layers), num_reports=reports)
        opinion = opinion_on_uses(
            [Use(bound=bound, times=composed.times)],
            delta=guarantee.delta,
            precision=QUICK,
            stated=guarantee.epsilon,
            claim=f"{guarantee.unit}, {guarantee.method}",
        )
        opinions.append(opinion)
    return tuple(opinions)


def _group_of(composed: Composed, unit: Unit, plan: LocalReports) -> LocalReports:
    """Return the group of clients whose rounds an epsilon is composed over: by their number."""
    items = plan.max_items if unit == "user" else 1
    groups = plan.groups
    return next(
        (each for each in groups if composed.times == items * each.most_rounds_per_client), plan
    )


def _bound(
    name: str, realised: bool, plan: LocalReports, layers: Sequence[tuple[int, int]]
) -> ShuffleBound:
    """Return a bound on one use, for some number of reports."""
    fewest = NUM_REPORTS_RANGE[0]
    if name != Blanket.name:
        return shuffle_bound(name, local_epsilon=plan.local_epsilon, num_reports=fewest)
    if not realised:
        return reachable_of(plan, num_reports=fewest)
    return dominating_blanket(blankets_of(plan, {(fewest, size) for _, size in layers}))
