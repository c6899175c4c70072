"""The privacy report of a run: every guarantee that holds, from what took part in it.

`account` goes by the mechanism's type. Layers ask disjoint cohorts, so epsilons are maxima over
layers; where clients are asked again, their rounds compose.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatch

from fedhh.accounting.bounds.composition import QUICK, Precision
from fedhh.accounting.bounds.shuffle_bound import check_delta
from fedhh.accounting.collusion import Collusion
from fedhh.accounting.guarantees import (
    UNITS,
    Guarantee,
    PrivacyReport,
    Unit,
    epsilon_text,
    or_infinite,
)
from fedhh.accounting.layer_anonymity import anonymity_of_run
from fedhh.accounting.local import local_guarantees
from fedhh.accounting.local_reports import LocalReports, RapporReports
from fedhh.accounting.plan import Plan
from fedhh.accounting.run_facts import LayerRecord, RunFacts
from fedhh.accounting.run_guarantees import (
    REACHABLE,
    central_guarantees,
    guarantee_before_run,
    realised_guarantees,
)
from fedhh.validation import InputError, require_choice, require_inside

_ALPHA = 0.5
"""Of approximate k-anonymity, which is not asked for before a run."""


@singledispatch
def account(
    plan: Plan,
    layers: Sequence[LayerRecord],
    *,
    num_clients: int,
    delta: float,
    alpha: float,
) -> PrivacyReport:
    """Return the privacy report of a run.

    A mechanism of another type brings its own: ``account.register`` a function for it.

    Args:
        plan: What the run did with its clients' data.
        layers: What took part, one record for each round that took place; none before the run.
        num_clients: Clients of the population.
        delta: Central target.
        alpha: Required probability that a rare value does not surface.

    Raises:
        InputError: No accounting is known for the mechanism, or a value is out of range.
    """
    raise InputError(
        f"Expected accounting for the mechanism {type(plan).__name__}, got none; register a "
        "function with fedhh.accounting.account.register."
    )


def account_local(
    plan: LocalReports,
    layers: Sequence[LayerRecord],
    *,
    delta: float,
    alpha: float,
    collusion: Collusion | None = None,
) -> PrivacyReport:
    """Return the privacy report of a run whose clients randomize what they contribute.

    Subset Selection has bounds of its own; for other randomizers those that hold for all. All
    claims are the plan's, and hold before the run, but for those that say that they are realised.

    Args:
        plan: How clients report, and the plan.
        layers: What took part, one record for each round that took place; none before the run.
        delta: Central target, from 1e-14 to 0.1.
        alpha: Required probability that a rare value does not surface, in (0, 1).
        collusion: Clients who tell the server their reports, if any; central claims are then for
            the honest ones. k-anonymity stays as it is: it is about what a run returns.

    Raises:
        InputError: A value is out of range, or the records contradict the mechanism.
    """
    check_delta(delta)
    require_inside(0, 1, alpha=alpha)
    if plan.padded:
        _check_records(layers, max_items=plan.max_items)
    run = RunFacts.planned(plan, delta=delta)
    honest, heard = plan, tuple(layers)
    if collusion is not None:
        honest = collusion.honest_part(plan)
        heard = tuple(_of_honest(each, plan, collusion) for each in layers)
    central = central_guarantees(
        RunFacts.planned(honest, delta=delta), broken=_below_plan(honest, heard)
    )
    realised = realised_guarantees(RunFacts(plan=honest, layers=heard, delta=delta, realised=True))
    notes = _notes(run, layers, has_realised=bool(realised))
    if collusion is not None:
        central, realised = (
            [collusion.stated(each, rounds=run.uses) for each in some]
            for some in (central, realised)
        )
        notes.append(f"{collusion}.")
    return PrivacyReport(
        guarantees=(*local_guarantees(run), *central, *realised),
        anonymity=tuple(anonymity_of_run(layers, plan, alpha=alpha)),
        notes=tuple(notes),
    )


def _of_honest(record: LayerRecord, plan: LocalReports, collusion: Collusion) -> LayerRecord:
    """Return what honest clients contributed to a round that took place, at least."""
    planned = plan.planned(record.pass_index - 1, record.layer)
    honest = collusion.fewest_honest(planned.num_clients, record.num_clients)
    told = (record.num_clients - honest) * plan.max_items
    return replace(record, num_clients=honest, num_reports=max(1, record.num_reports - told))


account.register(
    LocalReports,
    lambda plan, layers, *, num_clients, delta, alpha: account_local(
        plan, layers, delta=delta, alpha=alpha
    ),
)


def _check_records(layers: Sequence[LayerRecord], *, max_items: int) -> None:
    for record in layers:
        if record.num_reports != record.num_clients * max_items:
            raise InputError(
                f"Expected num_reports = num_clients * max_items = "
                f"{record.num_clients * max_items} in pass {record.pass_index}, layer "
                f"{record.layer}, got {record.num_reports}; if clients do not send exactly "
                "max_items reports, say padded=False."
            )


def _below_plan(plan: LocalReports, layers: Sequence[LayerRecord]) -> str | None:
    """Return which round had fewer answers than the plan accepts; None if none had."""
    fewest = {(each.pass_index + 1, each.layer): each.fewest_clients for each in plan.layers}
    for record in layers:
        needed = fewest.get((record.pass_index, record.layer), 0)
        if record.num_clients < needed:
            return (
                f"pass {record.pass_index}, layer {record.layer} had {record.num_clients:,} "
                f"clients, fewer than the {needed:,} of the plan"
            )
    return None


def _note_on_participation(run: RunFacts) -> str:
    uses = run.uses
    if len(run.groups) > 1:
        apart, others = run.groups
        return (
            f"The first {len(apart.layers)} of {len(run.layers)} planned rounds have clients of "
            f"their own; a client of the others may take part in up to {others.uses}, which are "
            "composed, however many took place. The maximum of the two groups holds."
        )
    if run.plan.participation == "epochs":
        known = f"{run.plan.smallest_cohort:,}"
        hidden = f"who answers in which round is not secret: {known} clients hide each other"
        if run.plan.hides_epochs:
            hidden = (
                f"at least {run.cohort:,} of one hide each other from readers who do not learn who "
                f"answered in which round; from others, the {known} of a round do"
            )
        return f"A client answers once in each of {uses} epochs, all composed; {hidden}."
    if uses > 1:
        return (
            f"A client may take part in up to {uses} rounds, all that the settings allow, so "
            "as many are composed, however many took place; with disjoint cohorts the maximum "
            "over rounds would hold."
        )
    return "Cohorts are disjoint and chosen without the data: maximum over layers."


def _notes(run: RunFacts, layers: Sequence[LayerRecord], *, has_realised: bool) -> list[str]:
    padded = run.plan.padded
    notes = ["Neighbors are swaps: one item, or all items of one client, replaced by others."]
    notes.append(_note_on_participation(run))
    if has_realised:
        before = "what is not marked R"
        if run.domains_vary and padded and not _below_plan(run.plan, layers):
            before = f'"{REACHABLE}"'
        elif not padded:
            before = "the local epsilon"
        notes.append(
            "R: realised, for the rounds, domains and reports that this run had. Before the run, "
            f"for all that the plan allows, {before} holds."
        )
    if not padded:
        notes.append(
            "Clients did not send exactly max_items reports each: the composition over slots "
            "does not hold and is dropped, and how many reports a client sends is not hidden."
        )
    lost = sum(record.lost_clients for record in layers)
    if run.plan.may_miss_answers:
        notes.append(
            "Before the run, claims hold for every number of answers that it accepts, at least "
            f"{run.cohort:,} in each layer (devices.least_clients, devices.least_share)"
            f"{'; R is for those that came' if has_realised else ''}. Who answers must not depend "
            "on the data."
        )
    elif lost:
        notes.append(
            f"{lost} clients' reports were lost: what the plan amplifies does not hold for "
            "cohorts without them. R is for those that came, which is valid if what is lost does "
            "not depend on the data."
        )
    if isinstance(run.plan, RapporReports):
        bound = epsilon_text(run.plan.epsilon_of_all_reports)
        notes.append(
            "One report is collected about each contribution. Any number of reports made from the "
            f"same permanent response would have epsilon {bound} together."
        )
    if run.local_epsilon == math.inf:
        notes.append("Without a randomizer nothing is private.")
    return notes


def central_before_run(
    plan: Plan, *, num_clients: int, unit: Unit, delta: float, precision: Precision = QUICK
) -> Guarantee:
    """Return the central guarantee of a plan that holds before the run, and compute no other.

    Args:
        plan: What a run of settled settings does.
        num_clients: Clients of the population.
        unit: "item" or "user".
        delta: Of the guarantee, from 1e-14 to 0.1.
        precision: Of what is composed; a run's claims are `QUICK`.

    Raises:
        InputError: A value is out of range, or no accounting is known for the mechanism.
    """
    require_choice(UNITS, unit=unit)
    check_delta(delta)
    if isinstance(plan, LocalReports):
        return guarantee_before_run(RunFacts.planned(plan, delta=delta), unit, precision)
    report = account(plan, (), num_clients=num_clients, delta=delta, alpha=_ALPHA)
    return report.before_run(unit)


def epsilon_before_run(
    plan: Plan, *, num_clients: int, unit: Unit, delta: float, precision: Precision = QUICK
) -> float:
    """Return the epsilon of `central_before_run`, infinite where there is none at this delta."""
    found = central_before_run(
        plan, num_clients=num_clients, unit=unit, delta=delta, precision=precision
    )
    return or_infinite(found.epsilon) if found.delta <= delta else math.inf
