"""Ledgers as events of dp-accounting, and its second opinion on them."""

from __future__ import annotations

from collections.abc import Sequence

from fedhh.accounting.dp_event import DpEvent, event_of_reports
from fedhh.accounting.guarantees import Guarantee
from fedhh.accounting.second_opinion import (
    SecondOpinion,
    check_delta,
    check_reports,
    opinion_on_reports,
)
from fedhh.longitudinal.ledger.cap import Charge
from fedhh.longitudinal.ledger.statements import PLD, guarantees, reports_of


def event_of_charges(charges: Sequence[Charge], counts: Sequence[int]) -> DpEvent:
    """Return the event of ``(use_cases,)`` records, or values of a charge once per value.

    Raises:
        NoDpEventError: See `fedhh.accounting.dp_event.event_of_reports`.
    """
    return event_of_reports(*reports_of(charges, counts))


def opinion_on_charges(
    charges: Sequence[Charge],
    counts: Sequence[int],
    *,
    delta: float,
    stated: Sequence[Guarantee] | None = None,
    claim: str = "all use cases",
) -> SecondOpinion:
    """Return a second opinion on the optimal composition of a ledger's records.

    Args:
        charges: One for each use case, with finite epsilons.
        counts: ``(use_cases,)``: records, or values where these are paid for; several in all.
        delta: From 1e-10 to 0.1.
        stated: Guarantees of these records; what a ledger states of them if None.
        claim: What the composition is called.

    Raises:
        RefutedClaimError: A stated epsilon is below dp-accounting's lower bound.
        InputError: A value is out of range, or there is nothing to compose.
    """
    check_delta(delta)
    epsilons, times = reports_of(charges, counts)
    check_reports(epsilons, times)
    if stated is None:
        stated = guarantees("user", charges, counts, delta=delta)
    # The reports of a single record are not composed further: the record's epsilon holds.
    composed = next((each for each in stated if each.method == PLD), stated[0])
    return opinion_on_reports(
        epsilons, times, delta=delta, stated=composed.epsilon, others=stated, claim=claim
    )
