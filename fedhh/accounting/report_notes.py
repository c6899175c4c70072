"""What has to be known about the guarantees of local reports, in a line each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fedhh.accounting.guarantees import NEIGHBORS, Guarantee

if TYPE_CHECKING:
    from fedhh.accounting.local_reports import LocalReports


def notes_of(plan: LocalReports, central: Sequence[Guarantee], *, lost: int) -> list[str]:
    """Return the notes of a report.

    Args:
        plan: How clients report.
        central: The central guarantees.
        lost: Clients that were asked and did not answer.
    """
    notes = [NEIGHBORS, _participation(plan)]
    realised = any(each.realised for each in central)
    if realised:
        had = "rounds, domains and reports that this run had"
        if plan.realises_answers:
            had = "answers that this run had; a round that it had not counts as planned"
        notes.append(
            f"R: realised, for the {had}. All else holds before the run, for all that the plan "
            "allows."
        )
    if not plan.padded:
        notes.append(
            "Clients did not send exactly max_items reports each: the composition over slots "
            "does not hold and is dropped, and how many reports a client sends is not hidden."
        )
    if plan.may_miss_answers:
        notes.append(
            "Before the run, claims hold for every number of answers that it accepts, at least "
            f"{plan.fewest_answers:,} in each {'epoch' if plan.hides_epochs else 'layer'} "
            "(devices.least_clients, devices.least_share)"
            f"{'; R is for those that came' if realised else ''}. Who answers must not depend on "
            "the data."
        )
    elif lost:
        notes.append(
            f"{lost} clients' reports were lost: what the plan amplifies does not hold for "
            "cohorts without them. R is for those that came, which is valid if what is lost does "
            "not depend on the data."
        )
    if plan.note:
        notes.append(plan.note)
    if plan.local_epsilon == math.inf:
        notes.append("Without a randomizer nothing is private.")
    return notes


def _participation(plan: LocalReports) -> str:
    uses = plan.most_rounds_per_client
    if len(groups := plan.groups) > 1:
        apart, others = groups
        return (
            f"The first {len(apart.layers)} of {len(plan.layers)} planned rounds have clients of "
            f"their own; a client of the others may take part in up to "
            f"{others.most_rounds_per_client}, which are composed, however many took place. The "
            "maximum of the two groups holds."
        )
    if plan.participation == "epochs":
        known = f"{plan.smallest_cohort:,}"
        hidden = f"who answers in which round is not secret: {known} clients hide each other"
        if plan.hides_epochs:
            hidden = (
                f"at least {plan.fewest_answers:,} of one hide each other from readers who do not "
                f"learn who answered in which round; from others, the {known} of a round do"
            )
        return f"A client answers once in each of {uses} epochs, all composed; {hidden}."
    if uses > 1:
        return (
            f"A client may take part in up to {uses} rounds, all that the settings allow, so "
            "as many are composed, however many took place; with disjoint cohorts the maximum "
            "over rounds would hold."
        )
    return "Cohorts are disjoint and chosen without the data: maximum over layers."
