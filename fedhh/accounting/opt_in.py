"""What BLENDER's mix costs: one guarantee for clients who opted in, another for the others.

The arithmetic of the curator's part, with its proof, is in `fedhh.mechanisms.opt_in`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from fedhh.accounting.guarantees import Guarantee, NotApplicable, Unit
from fedhh.accounting.layer_anonymity import claim_of_validation
from fedhh.accounting.layer_record import LayerRecord
from fedhh.accounting.report import PrivacyReport, account_local
from fedhh.mechanisms.opt_in import OptInBlend

_THEOREM = (
    "Avent et al. (2017), head list after Korolova et al. (2009) and Laplace counts; proof in "
    "fedhh.mechanisms.opt_in"
)
_UNITS: tuple[Unit, Unit] = ("item", "user")


def account_opt_in(
    mechanism: OptInBlend, layers: Sequence[LayerRecord], *, delta: float, alpha: float
) -> PrivacyReport:
    """Return the privacy report of a run in which some clients trust a curator.

    Each guarantee says whom it is for. The best ones of the report are those that hold for every
    client, whichever group it is in: locally none, as the curator reads plain words.

    Args:
        mechanism: What the groups do.
        layers: What took part, one record for each round that took place; none before the run.
        delta: Central target for the clients who randomize.
        alpha: Of approximate k-anonymity, which only a validation round claims here.
    """
    planned = {(each.pass_index, each.layer) for each in mechanism.local.layers}
    asked = [each for each in layers if (each.pass_index - 1, each.layer) in planned]
    cohort = min(
        each.num_clients
        for each in mechanism.layers
        if (each.pass_index, each.layer) not in planned
    )
    opt_in = [_opt_in(mechanism, unit, cohort) for unit in _UNITS]
    plain = [
        replace(
            each,
            trust="local",
            method="no randomizer",
            epsilon=math.inf,
            delta=0.0,
            theorem="no randomizer",
            assumptions="for clients who opted in: the curator reads their words as they are",
            best=True,
        )
        for each in opt_in
    ]
    local = account_local(mechanism.local, asked, delta=delta, alpha=alpha)
    notes = [
        "Neighbors are swaps: one item, or all items of one client, replaced by others.",
        "Who opted in does not depend on the data, and no client is in two groups: what holds for "
        "both groups holds for every client.",
        "Clients who opted in trust the curator; all others trust nobody.",
    ]
    others = [_of_others(each) for each in local.guarantees]
    everybody = [_of_all(each, local.before_run(each.unit)) for each in opt_in]
    notes += [note for note in local.notes if "swaps" not in note]
    validation = claim_of_validation(mechanism.local, alpha=alpha)
    return PrivacyReport(
        guarantees=(*plain, *opt_in, *others, *everybody),
        anonymity=() if validation is None else (validation,),
        notes=tuple(notes),
    )


def _opt_in(mechanism: OptInBlend, unit: Unit, cohort: int) -> Guarantee:
    assumptions = "for clients who opted in; each is in one of the curator's two layers"
    if unit == "item":
        assumptions += "; a user's guarantee covers each of its items"
    return Guarantee(
        unit=unit,
        trust="central",
        method="opted in: Laplace and threshold",
        epsilon=mechanism.opt_in_epsilon,
        delta=mechanism.opt_in_delta,
        theorem=_THEOREM,
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
    if not isinstance(epsilon, NotApplicable) and not isinstance(opt_in.epsilon, NotApplicable):
        epsilon = max(epsilon, opt_in.epsilon)
    return replace(
        opt_in,
        method="either group",
        epsilon=epsilon,
        delta=max(opt_in.delta, other.delta),
        theorem=f"the larger of both groups': {opt_in.theorem}; {other.theorem}",
        assumptions=f"for every client; {other.assumptions}",
        smallest_cohort=min(opt_in.smallest_cohort, other.smallest_cohort),
        best=True,
    )
