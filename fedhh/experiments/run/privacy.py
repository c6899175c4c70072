"""From what took part in a run to what it can claim, and what its discoveries show of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from fedhh.accounting.guarantees import Guarantee, PrivacyReport, or_infinite
from fedhh.accounting.layer_anonymity import claim_over_run
from fedhh.accounting.plan import Plan
from fedhh.accounting.terms import PrivacyTerms
from fedhh.devices import Devices
from fedhh.protocol import DiscoveryProtocol, RoundSummary

DEFAULT_DELTA = 1e-10
"""The paper's delta."""

DEFAULT_ALPHA = 0.95
"""The paper's alpha."""

MEASURED_ANONYMITY = ("fewest_holders", "fewest_holders_significant", "share_held_by_at_most_k")
"""What `measured_anonymity` returns; fields of `metrics.Metrics`."""


def accepted_plan(protocol: DiscoveryProtocol, devices: Devices | None) -> Plan:
    """Return a protocol's plan, with the fewest answers that its rounds accept of devices."""
    plan = protocol.plan
    return plan if devices is None else plan.accepting(devices.fewest_answers)


def privacy_of_run(
    protocol: DiscoveryProtocol,
    summaries: Sequence[RoundSummary] = (),
    *,
    num_clients: int,
    delta: float = DEFAULT_DELTA,
    alpha: float = DEFAULT_ALPHA,
    devices: Devices | None = None,
    colluders: int = 0,
) -> PrivacyReport:
    """Return what a run can claim, from the reports that each of its rounds counted.

    Args:
        protocol: The run's settled settings, whose plan says what it guarantees.
        summaries: What each round received; a round with fewer answers has a smaller cohort. None
            before the run.
        num_clients: All clients, fake ones included, from which central TrieHH samples.
        delta: Of the central guarantees.
        alpha: Of approximate k-anonymity.
        devices: When devices were there; claims before the run are for the fewest answers that it
            accepts of them.
        colluders: Clients whose reports somebody knows; claims are for the others.
    """
    plan = accepted_plan(protocol, devices)
    terms = PrivacyTerms.within(
        plan, num_clients=num_clients, delta=delta, colluders=colluders, alpha=alpha
    )
    return plan.report(terms, summaries)


def local_epsilon(report: PrivacyReport, unit: str) -> float:
    """Return the local epsilon of a unit over all rounds of its client, infinite if none."""
    return epsilon_of(report.best(unit, "local"))


def central_epsilon(report: PrivacyReport, unit: str) -> float:
    """Return the smallest valid central epsilon of a unit, infinite if there is none."""
    return epsilon_of(report.best(unit, "central"))


def central_before_run(report: PrivacyReport, unit: str) -> float:
    """Return the smallest central epsilon of a unit that holds before the run, infinite if none.

    It is for any domains that the run's votes may decide; `central_epsilon` may rest on those that
    they did.
    """
    return epsilon_of(report.before_run(unit))


def epsilon_of(guarantee: Guarantee) -> float:
    """Return a guarantee's epsilon, infinite where its theorem says nothing."""
    return or_infinite(guarantee.epsilon)


def claimed_k(report: PrivacyReport) -> int | None:
    """Return k of the claim over the whole run, or None where there is none."""
    claim = claim_over_run(report.anonymity)
    return claim.k if claim is not None and isinstance(claim.k, int) else None


def measured_anonymity(discoveries: pd.DataFrame, k: int | None) -> dict[str, Any]:
    """Return how many clients really hold the discovered words, which only a simulator knows.

    Returns:
        ``fewest_holders`` of a discovered word and of a significant one (0 for invented words),
        and ``share_held_by_at_most_k`` of all discoveries, None without a claim.
    """
    holders = discoveries["true_clients"]
    significant = holders[discoveries["is_significant"]]
    return {
        "fewest_holders": None if holders.empty else int(holders.min()),
        "fewest_holders_significant": None if significant.empty else int(significant.min()),
        "share_held_by_at_most_k": (
            None if k is None or holders.empty else float((holders <= k).mean())
        ),
    }
