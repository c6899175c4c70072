"""Second opinions on a run's composed epsilons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fedhh.accounting.bounds.blanket import Blanket
from fedhh.accounting.bounds.composition import QUICK, Use
from fedhh.accounting.bounds.selection import dominating_blanket
from fedhh.accounting.bounds.shuffle_bound import NUM_REPORTS_RANGE, ShuffleBound
from fedhh.accounting.guarantees import Guarantee, NotApplicable, PrivacyReport
from fedhh.accounting.run_guarantees import blankets_of, reachable_of
from fedhh.accounting.second_opinion import SecondOpinion, opinion_on_uses
from fedhh.accounting.shuffling import shuffle_bound
from fedhh.plans.base import Plan
from fedhh.plans.local_reports import LocalReports
from fedhh.plans.opt_in import OptInBlend

_SLOTS = ", slots"
_OTHERS = "others: "
_WITHOUT_DOMAIN = ("clones", "clones-2023")


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
        use = _use(guarantee, local, layers)
        if use is not None and not isinstance(guarantee.epsilon, NotApplicable):
            opinion = opinion_on_uses(
                [use],
                delta=guarantee.delta,
                precision=QUICK,
                stated=guarantee.epsilon,
                claim=f"{guarantee.unit}, {guarantee.method}",
            )
            opinions.append(opinion)
    return tuple(opinions)


def _use(guarantee: Guarantee, plan: LocalReports, layers: Sequence[tuple[int, int]]) -> Use | None:
    """Return what a guarantee composes; None where it composes nothing."""
    if guarantee.trust != "central":
        return None
    method, rounds = guarantee.method.removeprefix(_OTHERS), plan.most_rounds_per_client
    cohort = guarantee.smallest_cohort
    if guarantee.unit == "user" and method.endswith(_SLOTS):
        # In a slot there is one report of each client.
        method, reports, times = method.removesuffix(_SLOTS), cohort, plan.max_items * rounds
    elif guarantee.unit == "item" and rounds > 1:
        reports = cohort * plan.max_items
        if not plan.padded:
            reports = min(num_reports for num_reports, _ in layers)
        times = rounds
    else:
        return None
    bound = _bound(method, guarantee, plan, layers)
    if bound is None:
        return None
    reports = min(reports, NUM_REPORTS_RANGE[1])
    return Use(bound=replace(bound, num_reports=reports), times=times)


def _bound(
    method: str, guarantee: Guarantee, plan: LocalReports, layers: Sequence[tuple[int, int]]
) -> ShuffleBound | None:
    """Return the bound on one use, for some number of reports; None for none of that name."""
    epsilon = plan.local_epsilon
    if method in _WITHOUT_DOMAIN:
        return shuffle_bound(method, local_epsilon=epsilon, num_reports=NUM_REPORTS_RANGE[0])
    if not method.startswith(Blanket.name):
        return None
    fewest = NUM_REPORTS_RANGE[0]
    if not guarantee.realised:
        return reachable_of(plan, num_reports=fewest)
    return dominating_blanket(blankets_of(plan, {(fewest, size) for _, size in layers}))
