"""Local privacy: what one report, or all reports of one client, tell the server that reads them."""

from __future__ import annotations

import math
from dataclasses import replace

from fedhh.accounting.guarantees import Guarantee
from fedhh.accounting.local_reports import BloomRecords, LocalReports, RapporReports
from fedhh.accounting.run_facts import RunFacts
from fedhh.accounting.sources import (
    APPLE_CMS,
    APPLE_HCMS,
    APPLE_SFP,
    PADDED_SAMPLE,
    RAPPOR,
    SUN_LOCAL,
)
from fedhh.validation import InputError, require_at_least

_ITEM_THEOREMS = {
    "ss": SUN_LOCAL,
    "cms": APPLE_CMS,
    "hcms": APPLE_HCMS,
    "none": "no randomizer",
}
_SEVERAL_REPORTS = f"basic composition: the epsilons of a record's reports add up; {APPLE_SFP}"
_ANY_RANDOMIZER = "definition of the randomizer"
USER_THEOREM = "basic composition over the reports of one client"
_OF_ITEM = "an item enters one report of each round its client takes part in"
_OF_WHOLE_SET = (
    "a client sends one report in each round it takes part in, about one value drawn from its set"
)


def item_theorem(plan: LocalReports) -> str:
    """Return why a contribution is private that goes through a mechanism's randomizers."""
    if plan.is_of_whole_set:
        return PADDED_SAMPLE
    if isinstance(plan, RapporReports):
        return RAPPOR
    if isinstance(plan, BloomRecords):
        return f"{RAPPOR}; basic composition over a record's {len(plan.epsilons)} reports"
    if len(plan.randomizers) > 1:
        return _SEVERAL_REPORTS
    return _ITEM_THEOREMS.get(plan.randomizers[0].name, _ANY_RANDOMIZER)


def local_item_epsilon(local_epsilon: float, *, uses: int = 1) -> float:
    """Return the local epsilon of one item, which at most ``uses`` reports tell about.

    Args:
        local_epsilon: Privacy of one report, above 0; math.inf for no randomizer.
        uses: Rounds in which one client takes part; in each, an item is in one report.
    """
    if not local_epsilon > 0:
        raise InputError(f"Expected 0 < local_epsilon <= inf, got local_epsilon={local_epsilon!r}.")
    require_at_least(1, uses=uses)
    return uses * local_epsilon if math.isfinite(local_epsilon) else math.inf


def local_user_epsilon(local_epsilon: float, *, max_items: int, uses: int = 1) -> float:
    """Return the local epsilon of one client: B reports in each of its rounds.

    Args:
        local_epsilon: Privacy of one report, above 0; math.inf for no randomizer.
        max_items: B, most reports of one client in one round.
        uses: Rounds in which one client takes part.
    """
    require_at_least(1, max_items=max_items)
    return max_items * local_item_epsilon(local_epsilon, uses=uses)


def local_guarantees(run: RunFacts) -> list[Guarantee]:
    """Return what holds against the server, which reads every report."""
    plan, uses = run.plan, run.uses
    whole = plan.is_of_whole_set
    item = Guarantee(
        unit="item",
        trust="local",
        method="randomizer",
        epsilon=local_item_epsilon(run.local_epsilon, uses=uses),
        delta=0.0,
        theorem=item_theorem(plan),
        assumptions=(_OF_WHOLE_SET if whole else _OF_ITEM) + run.same_size,
        smallest_cohort=run.cohort,
        best=True,
        claimed_in_paper=plan.is_subset_selection,
    )
    reports = "report" if plan.max_items == 1 else "reports"
    most = f"a client sends at most {plan.max_items} {reports} in one round{run.same_size}"
    user = replace(
        item,
        unit="user",
        epsilon=local_user_epsilon(run.local_epsilon, max_items=plan.max_items, uses=uses),
        theorem=item.theorem if whole and uses == 1 else USER_THEOREM,
        assumptions=item.assumptions if whole else most,
        claimed_in_paper=False,
    )
    return [item, user]
