"""The privacy report of a run some of whose clients tell the server what they sent, by its plan.

What colluders take away, and why, is the text of `fedhh.accounting.collusion`; it differs by what
a plan's guarantee rests on:

==========================  =======================================================================
local reports               amplification by the honest reports of a cohort; local claims stay
secure aggregation          the noise in honest clients' shares
two servers, trusted        the noise is the servers' own: nothing changes
aggregators
sampling and a threshold    rests on not knowing who was sampled: nothing is proven
==========================  =======================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatch

from fedhh.accounting.account import account, account_local
from fedhh.accounting.collusion import EXCESS_SHARE, Collusion
from fedhh.accounting.guarantees import NotApplicable, PrivacyReport
from fedhh.accounting.local_reports import LocalReports
from fedhh.accounting.noisy_sums import SecureSums, TwoServerSums
from fedhh.accounting.opt_in import OptInBlend
from fedhh.accounting.plan import Plan
from fedhh.accounting.reported_sums import account_secure_sums
from fedhh.accounting.run_facts import LayerRecord
from fedhh.accounting.sampled_threshold import SampledThreshold
from fedhh.accounting.trusted import account_opt_in_blend
from fedhh.accounting.trusted_aggregator import TrustedAggregatorPlan
from fedhh.validation import InputError

_UNCHANGED = (
    "Colluding clients change no guarantee here: the noise, or the sample, is the servers' own."
)
_SAMPLED = (
    "sampled clients know that they were: a word whose other votes colluders tell is kept by the "
    "vote of one client, and the guarantee rests on not knowing who was sampled"
)


@singledispatch
def account_with_colluders(
    plan: Plan,
    layers: Sequence[LayerRecord],
    *,
    collusion: Collusion,
    delta: float,
    alpha: float,
) -> PrivacyReport:
    """Return the privacy report of a run for its honest clients, when others collude.

    Central guarantees are against readers of the results who also know all that the colluders
    know. Their delta is ``delta`` and what `Collusion.added_delta` says.

    A plan of another type brings its own: ``account_with_colluders.register`` a function for it.

    Args:
        plan: What the run did with its clients' data.
        layers: What took part, one record for each round that took place; none before the run.
        collusion: Who tells the server what, of how many clients.
        delta: Central target.
        alpha: Required probability that a rare value does not surface.

    Raises:
        InputError: Nothing is known of colluders under the mechanism, or a value is out of range.

    >>> from fedhh.accounting import Collusion, LayeredPlan
    >>> plan = LayeredPlan(layers=10)(1_000_000, 6.0)
    >>> def item_epsilon(share: float) -> float:
    ...     collusion = Collusion.of_share(share, num_clients=1_000_000)
    ...     report = account_with_colluders(
    ...         plan, (), collusion=collusion, delta=1e-10, alpha=0.95
    ...     )
    ...     return round(report.before_run("item").epsilon, 3)
    >>> [item_epsilon(share) for share in (1.0, 0.9, 0.5)]
    [0.526, 0.559, 0.786]
    """
    require_accounting(plan)
    raise AssertionError(plan)


def require_accounting(plan: Plan) -> None:
    """Raise InputError unless something is known of colluders under a plan's mechanism."""
    known = account_with_colluders.dispatch(type(plan))
    if known is account_with_colluders.dispatch(object):
        raise InputError(
            f"Expected accounting of colluders for the mechanism {type(plan).__name__}, got none; "
            "register a function with fedhh.accounting.account_with_colluders.register."
        )


def account_for_honest(
    plan: Plan,
    layers: Sequence[LayerRecord],
    *,
    colluders: int,
    num_clients: int,
    delta: float,
    alpha: float,
) -> PrivacyReport:
    """Return the privacy report of a run for its honest clients, at one delta in all.

    Where guarantees rest on other clients' coins, `EXCESS_SHARE` of delta is for cohorts that have
    more colluders than stated.

    Args:
        plan: What the run did with its clients' data.
        layers: What took part, one record for each round that took place; none before the run.
        colluders: Clients whose reports the reader knows.
        num_clients: All clients, these included.
        delta: Central target.
        alpha: Required probability that a rare value does not surface.
    """
    if not isinstance(plan, LocalReports | OptInBlend | SecureSums):
        collusion = Collusion(colluders=colluders, num_clients=num_clients)
        return account_with_colluders(plan, layers, collusion=collusion, delta=delta, alpha=alpha)
    excess = EXCESS_SHARE * delta / plan.most_rounds_per_client
    collusion = Collusion(colluders=colluders, num_clients=num_clients, excess_chance=excess)
    left = delta - collusion.added_delta(plan.most_rounds_per_client)
    return account_with_colluders(plan, layers, collusion=collusion, delta=left, alpha=alpha)


account_with_colluders.register(LocalReports, account_local)
account_with_colluders.register(OptInBlend, account_opt_in_blend)


@account_with_colluders.register
def _of_secure_sums(
    plan: SecureSums,
    layers: Sequence[LayerRecord],
    *,
    collusion: Collusion,
    delta: float,
    alpha: float,
) -> PrivacyReport:
    return account_secure_sums(plan, layers, delta=delta, collusion=collusion)


@account_with_colluders.register(TwoServerSums)
@account_with_colluders.register(TrustedAggregatorPlan)
def _unchanged(
    plan: Plan,
    layers: Sequence[LayerRecord],
    *,
    collusion: Collusion,
    delta: float,
    alpha: float,
) -> PrivacyReport:
    report = account(plan, layers, num_clients=collusion.num_clients, delta=delta, alpha=alpha)
    return replace(report, notes=(*report.notes, _UNCHANGED))


@account_with_colluders.register
def _of_sampled_threshold(
    plan: SampledThreshold,
    layers: Sequence[LayerRecord],
    *,
    collusion: Collusion,
    delta: float,
    alpha: float,
) -> PrivacyReport:
    report = account(plan, layers, num_clients=collusion.num_clients, delta=delta, alpha=alpha)
    if not collusion.colluders:
        return report
    local = [each for each in report.guarantees if each.trust == "local"]
    nothing = [replace(each, trust="central") for each in local]
    unproven = [
        replace(each, epsilon=NotApplicable(_SAMPLED), best=False)
        for each in report.guarantees
        if each.trust == "central" and each.delta > 0
    ]
    return replace(
        report,
        guarantees=(*local, *nothing, *unproven),
        notes=(*report.notes, f"{collusion}."),
    )
