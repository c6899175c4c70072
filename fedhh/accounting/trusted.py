"""What runs cost in which a server or a curator is trusted: TrieHH, and BLENDER's mix.

The arithmetic of BLENDER's curator, with its proof, is in `fedhh.accounting.opt_in`; that of
TrieHH, sampling and a threshold without noise, in `fedhh.accounting.sampled_threshold`, its proof
in docs/accounting.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from fedhh.accounting.account import account, account_local
from fedhh.accounting.collusion import Collusion
from fedhh.accounting.guarantees import (
    UNITS,
    Guarantee,
    NotApplicable,
    PrivacyReport,
    Trust,
    Unit,
    or_infinite,
)
from fedhh.accounting.layer_anonymity import claim_of_validation
from fedhh.accounting.opt_in import OptInBlend
from fedhh.accounting.run_facts import LayerRecord
from fedhh.accounting.sampled_threshold import SampledThreshold, triehh_epsilon
from fedhh.accounting.sources import SAMPLED_VOTES

_METHOD, _NOTHING = "sampling and threshold", "no randomizer"
_CURATOR = (
    "Avent et al. (2017), head list after Korolova et al. (2009) and Laplace counts; proof in "
    "fedhh.accounting.opt_in"
)


def account_triehh(
    *,
    num_clients: int,
    sample_size: int,
    threshold: int,
    num_rounds: int,
    delta: float,
    least_clients: int | None = None,
) -> PrivacyReport:
    """Return the privacy report of a run of TrieHH: central and of a user, nothing local.

    A sampled client that does not answer is as one that abstains. Given who would answer in each
    round, which must not depend on the data, a round is that of all clients on data in which the
    others hold nothing; its bound holds for all data, so for each such choice, and for their mix.

    Args:
        num_clients: Users n of the population, from all of which every round samples.
        sample_size: Users m asked per round.
        threshold: Votes theta that keep a prefix.
        num_rounds: Rounds L at most; a run that stops early has used no fewer, since when it stops
            depends on the data.
        delta: Of the central guarantee.
        least_clients: Fewest answers that a round accepts; None if every sampled client answers.
    """
    answers = "every sampled client answers"
    if least_clients is not None:
        answers = (
            "which sampled clients answer does not depend on the data, those that do not count as "
            "abstaining"
        )

    def guarantee(
        unit: Unit, trust: Trust, method: str, epsilon: float | NotApplicable
    ) -> Guarantee:
        theorem, assumptions = _NOTHING, "votes are read as they are"
        if method != _NOTHING:
            theorem = SAMPLED_VOTES
            assumptions = (
                f"all {num_rounds} rounds sample afresh, {answers}, and only "
                "which prefixes are kept is published"
            )
            if unit == "item":
                assumptions += "; a user's guarantee covers each of its items"
        return Guarantee(
            unit=unit,
            trust=trust,
            method=method,
            epsilon=epsilon,
            delta=0.0 if method == _NOTHING else delta,
            theorem=theorem,
            assumptions=assumptions,
            smallest_cohort=sample_size if least_clients is None else least_clients,
            best=not isinstance(epsilon, NotApplicable),
        )

    guarantees = [guarantee(unit, "local", _NOTHING, math.inf) for unit in UNITS]
    epsilon: float | NotApplicable = triehh_epsilon(
        num_clients=num_clients,
        sample_size=sample_size,
        threshold=threshold,
        num_rounds=num_rounds,
        delta=delta,
    )
    if epsilon == math.inf:
        epsilon = NotApplicable(
            f"no epsilon is proven at delta={delta:g} for sample_size={sample_size:,} of "
            f"num_clients={num_clients:,}, threshold={threshold} and num_rounds={num_rounds}; "
            "raise delta or the population, or let triehh_parameters choose"
        )
        guarantees += [guarantee(unit, "central", _NOTHING, math.inf) for unit in UNITS]
    guarantees += [guarantee(unit, "central", _METHOD, epsilon) for unit in UNITS]
    return PrivacyReport(
        guarantees=tuple(guarantees),
        anonymity=(),
        notes=(
            "Neighbors are swaps: all data of one client, replaced by other data.",
            "Votes are not randomized: the server, or a secure sum in its place, is trusted.",
            "Numbers of votes are exact, and no guarantee covers their publication: the columns "
            "estimate and variance are for evaluation.",
        ),
    )


account.register(
    SampledThreshold,
    lambda plan, layers, *, num_clients, delta, alpha: account_triehh(
        num_clients=num_clients,
        sample_size=plan.sample_size,
        threshold=plan.threshold,
        num_rounds=len(plan.layers),
        delta=delta,
        least_clients=plan.layers[0].fewest_clients if plan.may_miss_answers else None,
    ),
)


@account.register
def _of_opt_in_blend(
    plan: OptInBlend,
    layers: Sequence[LayerRecord],
    *,
    num_clients: int,
    delta: float,
    alpha: float,
) -> PrivacyReport:
    """Return the privacy report of a run with a curator: `account_opt_in_blend`."""
    return account_opt_in_blend(plan, layers, delta=delta, alpha=alpha)


def account_opt_in_blend(
    plan: OptInBlend,
    layers: Sequence[LayerRecord],
    *,
    delta: float,
    alpha: float,
    collusion: Collusion | None = None,
) -> PrivacyReport:
    """Return the privacy report of a run in which some clients trust a curator.

    Each guarantee says whom it is for. The best ones of the report are those that hold for every
    client, whichever group it is in: locally none, as the curator reads plain words. ``delta`` is
    for the clients who randomize; only a validation round claims k-anonymity. Colluders change
    nothing for the clients who opted in, whose curator adds the noise by itself.

    Args:
        plan: What the run does.
        layers: What took part, one record for each round that took place; none before the run.
        delta: Of the clients who randomize.
        alpha: Required probability that a rare value does not surface.
        collusion: Clients who tell the server their reports, if any.
    """
    planned = {(each.pass_index, each.layer) for each in plan.local.layers}
    asked = [each for each in layers if (each.pass_index - 1, each.layer) in planned]
    cohort = min(
        each.fewest_clients for each in plan.layers if (each.pass_index, each.layer) not in planned
    )
    opt_in = [_opt_in(plan, unit, cohort) for unit in UNITS]
    plain = [
        replace(
            each,
            trust="local",
            method=_NOTHING,
            epsilon=math.inf,
            delta=0.0,
            theorem=_NOTHING,
            assumptions="for clients who opted in: the curator reads their words as they are",
            best=True,
        )
        for each in opt_in
    ]
    local = account_local(plan.local, asked, delta=delta, alpha=alpha, collusion=collusion)
    notes = [
        "Neighbors are swaps: one item, or all items of one client, replaced by others.",
        "Who opted in does not depend on the data, and no client is in two groups: what holds for "
        "both groups holds for every client.",
        "Clients who opted in trust the curator; all others trust nobody.",
    ]
    others = [_of_others(each) for each in local.guarantees]
    everybody = [_of_all(each, local.before_run(each.unit)) for each in opt_in]
    notes += [note for note in local.notes if "swaps" not in note]
    validation = claim_of_validation(plan.local, alpha=alpha)
    return PrivacyReport(
        guarantees=(*plain, *opt_in, *others, *everybody),
        anonymity=() if validation is None else (validation,),
        notes=tuple(notes),
    )


def _opt_in(plan: OptInBlend, unit: Unit, cohort: int) -> Guarantee:
    assumptions = "for clients who opted in; each is in one of the curator's two layers"
    if unit == "item":
        assumptions += "; a user's guarantee covers each of its items"
    return Guarantee(
        unit=unit,
        trust="central",
        method="opted in: Laplace and threshold",
        epsilon=plan.opt_in_epsilon,
        delta=plan.opt_in_delta,
        theorem=_CURATOR,
        assumptions=assumptions,
        smallest_cohort=cohort,
    )


def _of_others(guarantee: Guarantee) -> Guarantee:
    return replace(
        guarantee,
        method=f"others: {guarantee.method}",
        assumptions=f"for clients who did not opt in; {guarantee.assumptions}",
        best=False,
    )


def _of_all(opt_in: Guarantee, other: Guarantee) -> Guarantee:
    """Return what holds for a client of either group, readers of the results in view."""
    epsilon = other.epsilon
    return replace(
        opt_in,
        method="either group",
        epsilon=epsilon
        if isinstance(epsilon, NotApplicable)
        else max(epsilon, or_infinite(opt_in.epsilon)),
        delta=max(opt_in.delta, other.delta),
        theorem=f"the larger of both groups': {opt_in.theorem}; {other.theorem}",
        assumptions=f"for every client; {other.assumptions}",
        smallest_cohort=min(opt_in.smallest_cohort, other.smallest_cohort),
        best=True,
    )
