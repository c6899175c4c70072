"""What runs cost whose clients trust an aggregator with plain words: central, and of a user.

The proofs stand with the plans: `fedhh.accounting.trusted_aggregator` and those below its class.
"""

from __future__ import annotations

import math

from fedhh.accounting.account import account
from fedhh.accounting.guarantees import (
    UNITS,
    AnonymityGuarantee,
    Guarantee,
    NotApplicable,
    PrivacyReport,
    Unit,
)
from fedhh.accounting.trusted_aggregator import TrustedAggregatorPlan
from fedhh.validation import require_inside

_NOTHING = "no randomizer"
_ROUNDING = 1e-12


def account_trusted_aggregator(plan: TrustedAggregatorPlan, *, alpha: float) -> PrivacyReport:
    """Return the privacy report of a run: the plan's guarantees, which hold before it.

    A word's chance of being published is known for every number of contributors, so approximate
    k-anonymity is claimed at any ``alpha``.

    Args:
        plan: What the run does.
        alpha: Required probability that a rare word is not published, in (0, 1).
    """
    require_inside(0, 1, alpha=alpha)
    cohort = min(each.num_clients for each in plan.layers)
    notes = [
        "Neighbors are swaps: one item, or all items of one client, replaced by others.",
        "Words are sent in clear: clients trust the aggregator, and every word of every client is "
        "known to whoever breaks into it.",
        "Published are words with their noisy numbers, or numbers in a random sample; what else a "
        "run's files hold is for evaluation.",
    ]
    if len(plan.layers) > 1:
        notes.append(f"The guarantee is for all {len(plan.layers)} rounds together.")
    central = [_central(plan, unit, cohort) for unit in UNITS]
    nothing = [_nothing(unit, cohort) for unit in UNITS]
    return PrivacyReport(
        guarantees=(*nothing, *central),
        anonymity=(_anonymity(plan, cohort, alpha),),
        notes=tuple(notes),
    )


account.register(
    TrustedAggregatorPlan,
    lambda plan, layers, *, num_clients, delta, alpha: account_trusted_aggregator(
        plan, alpha=alpha
    ),
)


def _central(plan: TrustedAggregatorPlan, unit: Unit, cohort: int) -> Guarantee:
    found = plan.epsilon if unit == "user" else plan.item_epsilon
    assumptions = f"a client contributes at most {plan.max_items:,} distinct words to a round"
    if unit == "item" and plan.item_epsilon == plan.epsilon:
        assumptions += "; a user's guarantee covers each of its items"
    epsilon: float | NotApplicable = found
    if found == math.inf:
        epsilon = NotApplicable(
            f"no epsilon is proven at delta={plan.delta:g} for this sample and threshold; raise "
            'delta or the threshold, or let both be "auto"'
        )
    return Guarantee(
        unit=unit,
        trust="central",
        method=plan.method,
        epsilon=epsilon,
        delta=plan.delta,
        theorem=plan.theorem,
        assumptions=assumptions,
        smallest_cohort=cohort,
        best=True,
    )


def _nothing(unit: Unit, cohort: int) -> Guarantee:
    return Guarantee(
        unit=unit,
        trust="local",
        method=_NOTHING,
        epsilon=math.inf,
        delta=0.0,
        theorem=_NOTHING,
        assumptions="words are read as they are",
        smallest_cohort=cohort,
        best=True,
    )


def _anonymity(plan: TrustedAggregatorPlan, cohort: int, alpha: float) -> AnonymityGuarantee:
    """Return the largest k of which k contributors are published with chance at most 1 - alpha."""
    k = plan.contributors_for((1 - alpha) * (1 + _ROUNDING)) - 1
    return AnonymityGuarantee(
        k=k,
        alpha=alpha,
        variant="tight",
        probability=plan.release_chance(k),
        theorem="the aggregator's noise or sample alone (fedhh.accounting)",
        assumptions="by design, for every word published, whatever other words are held",
        smallest_cohort=cohort,
    )
